#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/jobs/calibrate/calibration.h"
#include "src/report/text/table.h"
#include "src/sim/machine/machine_file.h"
#include "src/synth/device/device_model.h"

namespace etude {

// A computation's time as latency + work / rate.
struct ComputationFit {
  double latency_ns = 0;                // time of the smallest size
  double rate = 0;                      // bytes read and written, or operations, per second
  std::optional<CheckErrors> errors{};  // at other sizes
};

// Returns the rate of the largest size, and the errors at the sizes from a quarter of it. nullopt
// for times that do not grow.
std::optional<ComputationFit> FitComputation(const MeasuredComputation& computation);

// A measured computation, for the table.
struct CalibratedComputation {
  MeasuredComputation computation;
  std::string state;  // "measured", "kept", "noisy", "refused"
};
Table ComputationTable(const std::vector<CalibratedComputation>& all);

// Returns the rates of a machine file as a device: those of products by type, and of copies as its
// memory bandwidth, each of the most ranks. `name`: the file's. kBadInput without copies.
Result<DeviceModel> DeviceOf(const MachineFile& file, const std::string& name);

// Parses a device: a machine file with computations, or a device file (ParseDevice).
Result<DeviceModel> ParseDeviceOrMachine(std::string_view text, const std::string& path);

}  // namespace etude
