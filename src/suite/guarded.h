#pragma once

#include <string_view>

#include <fmt/format.h>

#include "src/base/container/guarded.h"
#include "src/torch/error_text.h"

namespace etude::suite {

// The result of `work`; what it throws is kInternal, after `what` was being done.
template <typename Work>
auto Guarded(std::string_view what, const Work& work) -> decltype(work()) {
  return etude::Guarded(
      work, [&](const char* thrown) { return fmt::format("{}: {}", what, FirstLine(thrown)); });
}

}  // namespace etude::suite
