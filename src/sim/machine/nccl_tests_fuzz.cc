// Output of nccl-tests.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "src/sim/machine/machine_file.h"
#include "src/sim/machine/nccl_tests.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto file = etude::ParseNcclTests(text, "all_reduce");
  if (!file) return 0;
  if (!etude::ParseMachineFile(etude::MachineFileText(*file), "written")) std::abort();
  return 0;
}
