// Execution plans of MSCCL++, unrolled and checked for deadlocks.
#include <cstddef>
#include <cstdint>
#include <string>

#include "src/sim/plan/collective_plan.h"
#include "src/sim/plan/plan_program.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto plan = etude::ParseCollectivePlan(text, "input");
  if (plan) static_cast<void>(etude::MakePlanProgram(*plan, 100'003));
  return 0;
}
