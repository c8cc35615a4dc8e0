#pragma once

#include <string>
#include <utility>

#include <tl/expected.hpp>

// Errors are values. Every fallible function returns Result<T> or Status. Etude throws nothing;
// exceptions of third-party code are caught at the call and become an Error.
namespace etude {

// Coarse kind of an error. It determines the exit code (base/exit_code.h); the message has the
// details.
enum class ErrorCode {
  kUsage,        // the command line requests something that does not exist
  kBadInput,     // malformed or hostile file, or not the expected kind
  kUnavailable,  // not possible on this machine or build
  kIo,           // the operating system refused a read or a write
  kInterrupted,  // the caller requested a stop (RunContext::stop)
  kInternal,     // bug in Etude
};

// `message` has the form "file:place: what was found, what was expected", as far as these are
// known.
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

// Returns the error of `expr`, a Status or Result, from the enclosing function if it has one.
#define ETUDE_RETURN_IF_ERROR(expr)                                           \
  do {                                                                        \
    if (auto etude_status = (expr); !etude_status) {                          \
      return tl::unexpected<::etude::Error>(std::move(etude_status).error()); \
    }                                                                         \
  } while (false)

// Binds `lhs` to the value of the Result `expr`, or returns its error from the enclosing function.
#define ETUDE_ASSIGN_OR_RETURN(lhs, expr)                          \
  auto ETUDE_CONCAT(etude_result_, __LINE__) = (expr);             \
  if (!ETUDE_CONCAT(etude_result_, __LINE__)) {                    \
    return tl::unexpected<::etude::Error>(                         \
        std::move(ETUDE_CONCAT(etude_result_, __LINE__)).error()); \
  }                                                                \
  lhs = *std::move(ETUDE_CONCAT(etude_result_, __LINE__))
