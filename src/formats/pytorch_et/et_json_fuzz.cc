#include <cstdint>

#include "src/formats/fuzz_support.h"
#include "src/formats/pytorch_et/et_json_reader.h"

// Execution traces and linked traces.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)etude::fuzz::ReadWith(etude::MakeEtJsonReader, etude::fuzz::Bytes(data, size));
  return 0;
}
