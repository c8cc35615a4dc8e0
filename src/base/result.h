#pragma once

#include <string>
#include <utility>

#include <tl/expected.hpp>

// Errors are values. Every fallible function returns Result<T> or Status; nothing in Etude throws,
// and what third-party code throws is caught where it is called and turned into an Error.
namespace etude {

// What went wrong, coarsely: the code decides the exit code (base/exit_code.h), the message says
// the rest.
enum class ErrorCode {
  kUsage,        // the command line asks for something that does not exist
  kBadInput,     // a file is malformed, hostile, or not what was announced
  kUnavailable,  // this machine or this build cannot do it
  kIo,           // the operating system refused a read or a write
  kInterrupted,  // the caller asked to stop (RunContext::stop)
  kInternal,     // a fault of Etude
};

// `message` reads "file:place: what was found, what was expected" as far as these are known.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
};

template <typename T>
using Result = tl::expected<T, Error>;
using Status = tl::expected<void, Error>;

inline tl::unexpected<Error> MakeError(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}
inline tl::unexpected<Error> BadInput(std::string message) {
  return MakeError(ErrorCode::kBadInput, std::move(message));
}
inline tl::unexpected<Error> Unavailable(std::string message) {
  return MakeError(ErrorCode::kUnavailable, std::move(message));
}

}  // namespace etude

#define ETUDE_CONCAT_INNER(a, b) a##b
#define ETUDE_CONCAT(a, b) ETUDE_CONCAT_INNER(a, b)

// Leaves the enclosing function with the error of `expr`, a Status or Result, if it has one.
#define ETUDE_RETURN_IF_ERROR(expr)                                           \
  do {                                                                        \
    if (auto etude_status = (expr); !etude_status) {                          \
      return tl::unexpected<::etude::Error>(std::move(etude_status).error()); \
    }                                                                         \
  } while (false)

// Binds `lhs` to the value of the Result `expr`, or leaves the enclosing function with its error.
#define ETUDE_ASSIGN_OR_RETURN(lhs, expr)                          \
  auto ETUDE_CONCAT(etude_result_, __LINE__) = (expr);             \
  if (!ETUDE_CONCAT(etude_result_, __LINE__)) {                    \
    return tl::unexpected<::etude::Error>(                         \
        std::move(ETUDE_CONCAT(etude_result_, __LINE__)).error()); \
  }                                                                \
  lhs = *std::move(ETUDE_CONCAT(etude_result_, __LINE__))
