#include <cstdint>

#include "src/formats/fuzz_support.h"
#include "src/formats/job/job_json.h"

// job.json of a capture folder.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto job =
      etude::ParseJobFile("fuzz", etude::fuzz::Bytes(data, size), etude::fuzz::SmallLimits());
  if (!job) return 0;
  for (const auto& [number, rank] : job->ranks) (void)rank.ComparableSteps();
  return 0;
}
