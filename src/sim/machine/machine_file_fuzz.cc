// Machine files, and the times of communications by them.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "src/sim/machine/machine_file.h"
#include "src/sim/machine/measured_times.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto file = etude::ParseMachineFile(text, "input");
  if (!file) return 0;
  const std::string written = etude::MachineFileText(*file);
  const auto again = etude::ParseMachineFile(written, "written");
  if (!again || etude::MachineFileText(*again) != written) std::abort();
  for (const etude::MeasuredSeries& series : file->series) {
    for (const etude::MeasuredSeries::Point& point : series.points) {
      for (const int64_t bytes : {point.bytes, point.bytes + 1, point.bytes * 4}) {
        const auto time = etude::Interpolate(series, bytes);
        if (time && time->nanos < 0) std::abort();
      }
    }
  }
  const std::array<int64_t, 2> ranks = {0, 1};
  const etude::MeasuredTimes times(*std::move(file), "input");
  static_cast<void>(times.TimeOf(etude::CollectiveType::kAllReduce, ranks, 1000));
  static_cast<void>(times.TimeOfMessage(0, 1, 1000));
  return 0;
}
