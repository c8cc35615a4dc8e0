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

// Peak rates of accelerators. docs/models/roofline.md has the formula and the sources.
namespace etude {

// 292 years: the max of nanoseconds in 64 bits.
constexpr double kMostSeconds = 9.2e9;

// Peaks of one device as seen by programs, in operations per second; 0: unknown.
struct DeviceModel {
  std::string name;
  // For matrix products, by type.
  int64_t float32 = 0;
  int64_t float16 = 0;
  int64_t bfloat16 = 0;
  int64_t float8 = 0;
  int64_t vector = 0;  // for everything else
  Bytes memory;        // read and written per second
  Bytes capacity;      // of the device's memory; 0: unknown
  // The fraction of the data sheet's peaks that the peaks above are.
  double compute_efficiency = 1;

  // Returns nullopt if unknown.
  std::optional<int64_t> MatrixPeak(DType type) const;
  // Returns the peak of the data sheet, without `compute_efficiency`.
  std::optional<double> NominalMatrixPeak(DType type) const;
};

// Returns the min time for a computation on the device, rounded up to nanoseconds. kBadInput if it
// has matrix products of a type without a peak, or takes longer than kMostSeconds.
Result<Nanos> RooflineTime(const DeviceModel& device, const StepWork& work);

struct DevicePreset {
  std::string_view name;
  std::string_view source;
  // In 10^9 operations and bytes per second.
  int64_t float32 = 0;
  int64_t float16 = 0;
  int64_t bfloat16 = 0;
  int64_t float8 = 0;
  int64_t vector = 0;
  int64_t memory = 0;
  int64_t capacity = 0;  // in bytes; 0: unknown
};
std::span<const DevicePreset> DevicePresets();
// Returns nullopt if there is none of this name.
std::optional<DeviceModel> FindDevice(std::string_view name);

}  // namespace etude
