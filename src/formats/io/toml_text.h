#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/limits.h"
#include "src/base/result.h"

namespace etude {

// The text of a file that is to be `what` ("a recipe") in TOML. kBadInput for one that is a trace
// or other JSON, and for more than `most` bytes.
Result<std::string> ReadTomlText(const std::string& path, std::string_view what, uint64_t most,
                                 const Limits& limits);

}  // namespace etude
