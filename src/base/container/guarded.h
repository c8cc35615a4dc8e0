#pragma once

#include <exception>
#include <string>

#include "src/base/result.h"

namespace etude {

// The result of `work`; what it throws is kInternal, in the words that `text` makes of what().
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
