#pragma once

#include <exception>
#include <string>

#include "src/base/result.h"

namespace etude {

// Returns `work()`. An exception becomes a kInternal error with the message `text(what())`.
template <typename Work, typename Text>
auto Guarded(const Work& work, const Text& text) -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception& error) {
    return MakeError(ErrorCode::kInternal, text(error.what()));
  }
}
template <typename Work>
auto Guarded(const Work& work) -> decltype(work()) {
  return Guarded(work, [](const char* what) { return std::string(what); });
}

}  // namespace etude
