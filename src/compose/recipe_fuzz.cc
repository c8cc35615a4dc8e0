#include <cstdint>
#include <string_view>

#include "src/compose/recipe.h"
#include "src/formats/fuzz_support.h"

// A recipe for `etude compose`.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto recipe = etude::ParseRecipe(etude::fuzz::Bytes(data, size), "fuzz");
  if (recipe && recipe->parts.empty()) __builtin_trap();
  return 0;
}
