#pragma once

#include <map>
#include <string>
#include <vector>

#include "src/base/units.h"
#include "src/trace/trace.h"

namespace etude {

// Peak memory of the tensors of a step, the maximum over ranks, by kind of device: "cpu", "cuda". A
// lower bound: TensorMemory. Ranks whose traces lack tensors do not count.
using TensorPeaks = std::map<std::string, Bytes>;
TensorPeaks TensorPeaksOf(const std::vector<Trace>& traces);

// Peak memory of a recorded job and of the edited one.
struct EditedMemory {
  TensorPeaks before;
  TensorPeaks after;  // lacks unknown ones
};

}  // namespace etude
