#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/units.h"
#include "src/trace/trace.h"

namespace etude {

// Peak memory of the tensors of a step, the maximum over ranks, by kind of device: "cpu", "cuda". A
// lower bound: TensorMemory. Ranks whose traces lack tensors do not count.
using TensorPeaks = std::map<std::string, Bytes>;
TensorPeaks TensorPeaksOf(const std::vector<Trace>& traces);
// Raises the peaks of `all` to those of one more rank.
void TakeMax(const TensorPeaks& rank, TensorPeaks& all);

// Peak memory of a recorded job and of the edited one.
struct EditedMemory {
  TensorPeaks before;
  TensorPeaks after;  // lacks unknown ones
};

// Memory of a device.
struct DeviceCapacity {
  std::string device;  // as given
  Bytes bytes;
};
// Parses a size with a unit ("80GB"), or the name of a device of `etude generate` ("h100-sxm").
// kUsage for anything else.
Result<DeviceCapacity> ParseCapacity(const std::string& text);

// Returns whether the tensors of each rank fit into a device after the edit: those on
// accelerators, or of a job without any those on the CPU. nullopt: unknown. As peaks are lower
// bounds, a job that does not fit is certain.
std::optional<bool> TensorsFit(const EditedMemory& memory, Bytes capacity);

}  // namespace etude
