#include "src/jobs/edited_memory.h"

#include <algorithm>

#include "src/analysis/memory/memory_use.h"
#include "src/base/result.h"

namespace etude {

TensorPeaks TensorPeaksOf(const std::vector<Trace>& traces) {
  TensorPeaks peaks;
  for (const Trace& trace : traces) {
    const Result<std::vector<DeviceMemory>> devices = TensorMemory(trace);
    if (!devices) continue;
    for (const DeviceMemory& device : *devices) {
      Bytes& peak = peaks[device.device.substr(0, device.device.find(':'))];
      peak = std::max(peak, device.peak);
    }
  }
  return peaks;
}

}  // namespace etude
