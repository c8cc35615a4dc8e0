#include <cstdint>
#include <string_view>

#include "src/formats/fuzz_support.h"
#include "src/synth/transformer/transformer_file.h"

// A model for `etude generate llm`.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = etude::ParseTransformerFile(etude::fuzz::Bytes(data, size), "fuzz");
  if (!file) return 0;
  if (etude::ParameterCount(file->model) <= 0) __builtin_trap();
  if (const auto plan = file->plan.PlanFor(file->model)) {
    (void)etude::CheckTransformerPlan(file->model, *plan);
  }
  return 0;
}
