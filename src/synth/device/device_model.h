#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/base/units.h"
#include "src/synth/job/step_job.h"
#include "src/trace/words/enums.h"

// How fast accelerators are at best. docs/models/roofline.md has the formula and the sources.
namespace etude {

// 292 years: nanoseconds in 64 bits.
constexpr double kMostSeconds = 9.2e9;

// Peaks of one device as programs see it, in operations a second; 0: not known.
struct DeviceModel {
  std::string name;
  // Of matrix products, by type.
  int64_t float32 = 0;
  int64_t float16 = 0;
  int64_t bfloat16 = 0;
  int64_t float8 = 0;
  int64_t vector = 0;  // of everything else
  Bytes memory;        // read and written a second
  Bytes capacity;      // of the device's memory; 0: not known
  // The part of the data sheet's peaks that the peaks above are.
  double compute_efficiency = 1;

  // nullopt: not known.
  std::optional<int64_t> MatrixPeak(DType type) const;
  // The same without `compute_efficiency`.
  std::optional<double> NominalMatrixPeak(DType type) const;
};

// The shortest time in which the device can do a computation, rounded up to nanoseconds.
// kBadInput: it has matrix products of a type for which the device has no peak, or takes longer
// than kMostSeconds.
Result<Nanos> RooflineTime(const DeviceModel& device, const StepWork& work);

struct DevicePreset {
  std::string_view name;
  std::string_view source;
  // In 10^9 operations and bytes a second.
  int64_t float32 = 0;
  int64_t float16 = 0;
  int64_t bfloat16 = 0;
  int64_t float8 = 0;
  int64_t vector = 0;
  int64_t memory = 0;
  int64_t capacity = 0;  // bytes; 0: not known
};
std::span<const DevicePreset> DevicePresets();
// nullopt: there is none of this name.
std::optional<DeviceModel> FindDevice(std::string_view name);

}  // namespace etude
