#include "src/jobs/edited_memory.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/analysis/memory/memory_use.h"
#include "src/base/text/nearest.h"
#include "src/base/text/quantity.h"
#include "src/synth/device/device_model.h"

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

void TakeMax(const TensorPeaks& rank, TensorPeaks& all) {
  for (const auto& [device, bytes] : rank) {
    Bytes& peak = all[device];
    peak = std::max(peak, bytes);
  }
}

Result<DeviceCapacity> ParseCapacity(const std::string& text) {
  const std::optional<Bytes> bytes = ParseBytesWithUnit(text);
  if (bytes && bytes->count > 0) return DeviceCapacity{.device = text, .bytes = *bytes};
  const std::optional<DeviceModel> device = FindDevice(text);
  if (device && device->capacity.count > 0) {
    return DeviceCapacity{.device = text, .bytes = device->capacity};
  }
  std::vector<std::string> names;
  for (const DevicePreset& preset : DevicePresets()) names.emplace_back(preset.name);
  return MakeError(ErrorCode::kUsage,
                   fmt::format("--capacity: found '{}', expected a size with a unit, such as 80GB, "
                               "or a device: {}",
                               text, fmt::join(names, ", ")));
}

std::optional<bool> TensorsFit(const EditedMemory& memory, Bytes capacity) {
  if (memory.before.empty()) return std::nullopt;
  const bool has_accelerator = memory.before.size() > 1 || !memory.before.contains("cpu");
  bool fits = true;
  for (const auto& [device, before] : memory.before) {
    if (has_accelerator && device == "cpu") continue;
    const auto after = memory.after.find(device);
    if (after == memory.after.end()) return std::nullopt;
    fits = fits && after->second <= capacity;
  }
  return fits;
}

}  // namespace etude
