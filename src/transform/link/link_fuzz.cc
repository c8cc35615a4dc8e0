#include "src/transform/link/native_profile.h"

#include <cstdint>
#include <string>

#include "src/formats/fuzz_support.h"
#include "src/formats/io/byte_source.h"
#include "src/formats/read_trace.h"
#include "src/transform/link/link.h"

namespace {

etude::Result<etude::Trace> Read(std::string_view bytes) {
  const etude::RunContext context = etude::fuzz::SmallLimits();
  auto source = etude::ByteSource::FromMemory("fuzz", std::string(bytes), context.limits);
  return etude::ReadTrace(source, {.keep_recorder_time = true}, context);
}

}  // namespace

// Two traces of one run, separated by a line "===": a native capture and the profile of its
// devices, or a host trace and a device trace.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto [first, second] = etude::fuzz::TwoFiles(etude::fuzz::Bytes(data, size));
  const auto host = Read(first);
  const auto device = Read(second);
  if (!host || !device) return 0;
  const etude::Limits limits = etude::fuzz::SmallLimits().limits;
  (void)etude::Link(*host, *device, {.limits = limits});
  if (!etude::IsOfDevicesOnly(*device)) return 0;
  const auto profile = etude::MakeNativeProfile(*host, *device, limits);
  if (profile) (void)etude::Link(*host, *profile, {.limits = limits});
  return 0;
}
