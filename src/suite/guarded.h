#pragma once

#include <exception>
#include <string_view>

#include <fmt/format.h>

#include "src/base/result.h"
#include "src/torch/error_text.h"

namespace etude::suite {

// The result of `work`; what it throws is kInternal, after `what` was being done.
template <typename Work>
auto Guarded(std::string_view what, const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception& error) {
    return MakeError(ErrorCode::kInternal, fmt::format("{}: {}", what, FirstLine(error.what())));
  }
}

}  // namespace etude::suite
