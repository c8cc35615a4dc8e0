#include <cstdint>
#include <string_view>

#include "src/formats/fuzz_support.h"
#include "src/synth/dlrm/dlrm_file.h"

// A model for `etude generate dlrm`.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto model = etude::ParseDlrm(etude::fuzz::Bytes(data, size), "fuzz");
  if (model && etude::TableParameters(*model) <= 0) __builtin_trap();
  if (model && etude::DenseParameters(*model) <= 0) __builtin_trap();
  return 0;
}
