#include <cstdint>
#include <string_view>

#include "src/formats/fuzz_support.h"
#include "src/synth/device/device_file.h"
#include "src/synth/device/measured_products.h"

// A device, and a table of times, for `etude generate`.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto text = etude::fuzz::Bytes(data, size);
  const auto device = etude::ParseDevice(text, "fuzz");
  if (device && device->memory.count <= 0) __builtin_trap();
  static_cast<void>(etude::MeasuredProducts::Parse(text, "fuzz"));
  return 0;
}
