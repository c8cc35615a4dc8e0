#include <cstdint>
#include <string_view>

#include "src/formats/fuzz_support.h"
#include "src/synth/transformer_file.h"

// A model of `etude generate llm`.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto model = etude::ParseTransformer(etude::fuzz::Bytes(data, size), "fuzz");
  if (model && etude::ParameterCount(*model) <= 0) __builtin_trap();
  return 0;
}
