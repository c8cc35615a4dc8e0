#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/limits.h"
#include "src/base/result.h"

namespace etude {

// Returns the text of a TOML file that is expected to be `what` ("a recipe"). kBadInput for a trace
// or other JSON, and for more than `most` bytes.
Result<std::string> ReadTomlText(const std::string& path, std::string_view what, uint64_t most,
                                 const Limits& limits);

}  // namespace etude
