#include <cstdint>

#include "src/formats/fuzz_support.h"
#include "src/formats/kineto/kineto_reader.h"

// Fuzzes the reader of Kineto and Chrome traces.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)etude::fuzz::ReadWith(etude::MakeKinetoReader, etude::fuzz::Bytes(data, size));
  return 0;
}
