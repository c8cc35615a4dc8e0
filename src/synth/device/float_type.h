#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/trace/words/enums.h"

namespace etude {

// The types that weights of models may have, by name: "bfloat16". nullopt: none of them.
std::optional<DType> FloatType(std::string_view name);
// "float32, float16, bfloat16 or …".
std::string FloatTypeNames();

}  // namespace etude
