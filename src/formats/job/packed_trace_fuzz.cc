#include <cstdint>

#include "src/formats/fuzz_support.h"
#include "src/trace/job/packed_trace.h"

// A packed trace, as in a job folder.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto packed = etude::PackedTrace::FromBytes(etude::fuzz::Bytes(data, size));
  if (!packed) return 0;
  const auto trace = packed->Unpack(etude::fuzz::SmallLimits().limits);
  if (trace && !etude::PackedTrace::Pack(*trace)) __builtin_trap();
  return 0;
}
