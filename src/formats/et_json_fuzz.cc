#include <algorithm>
#include <cstdint>
#include <string_view>

#include "src/formats/et_json_reader.h"

// Execution traces and linked traces, in chunks whose size the input's first byte decides.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  etude::RunContext context;
  context.limits.element_bytes = size_t{1} << 20;
  context.limits.depth = 64;
  const size_t chunk = size == 0 ? 1 : 1 + size_t{data[0]} * 7;
  const auto reader = etude::MakeEtJsonReader("fuzz", {}, context);
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (!rest.empty()) {
    if (!reader->Push(rest.substr(0, chunk))) return 0;
    rest.remove_prefix(std::min(chunk, rest.size()));
  }
  (void)reader->Finish(/*cut=*/false);
  return 0;
}
