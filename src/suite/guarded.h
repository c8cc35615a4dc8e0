#pragma once

#include <string_view>

#include <fmt/format.h>

#include "src/base/container/guarded.h"
#include "src/torch/error_text.h"

namespace etude::suite {

// Returns the result of `work`. Exceptions become kInternal, prefixed with `what`.
template <typename Work>
auto Guarded(std::string_view what, const Work& work) -> decltype(work()) {
  return etude::Guarded(
      work, [&](const char* thrown) { return fmt::format("{}: {}", what, FirstLine(thrown)); });
}

}  // namespace etude::suite
