#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/trace/words/enums.h"

namespace etude {

// Returns the type of model weights with this name: "bfloat16". nullopt: unsupported.
std::optional<DType> FloatType(std::string_view name);
// Returns "float32, float16, bfloat16 or …".
std::string FloatTypeNames();

}  // namespace etude
