#include "src/synth/device/device_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace etude {
namespace {

constexpr int64_t kBillion = 1'000'000'000;

// Matrix products without sparsity if a sheet gives both, half of the sparse peak otherwise.
// Capacities in bytes, as in the sheets. The sheet of V100 has two.
// clang-format off
constexpr auto kDevicePresets = std::to_array<DevicePreset>({
    {"v100-sxm2", "NVIDIA V100 data sheet, 2020",
     15'700, 125'000, 0, 0, 15'700, 900, 0},
    {"a100-sxm-40gb", "NVIDIA A100 data sheet, 2020",
     19'500, 312'000, 312'000, 0, 19'500, 1'555, 40 * kBillion},
    {"a100-sxm-80gb", "NVIDIA A100 80GB data sheet, 2021",
     19'500, 312'000, 312'000, 0, 19'500, 2'039, 80 * kBillion},
    {"h100-sxm", "NVIDIA H100 data sheet, 2023",
     67'000, 989'500, 989'500, 1'979'000, 67'000, 3'350, 80 * kBillion},
    {"h200-sxm", "NVIDIA H200 data sheet, 2024",
     67'000, 989'500, 989'500, 1'979'000, 67'000, 4'800, 141 * kBillion},
    {"b200-sxm", "NVIDIA HGX B200 and DGX B200 data sheets, 2024: one of eight devices",
     75'000, 2'250'000, 2'250'000, 4'500'000, 75'000, 8'000, 180 * kBillion},
    {"mi250x-gcd", "AMD Instinct MI250X data sheet, 2021: one of its two devices",
     47'850, 191'500, 191'500, 0, 23'950, 1'638, 64 * kBillion},
    {"mi300x", "AMD Instinct MI300X data sheet, 2023",
     163'400, 1'307'400, 1'307'400, 2'614'900, 163'400, 5'300, 192 * kBillion},
    {"tpu-v4", "Jouppi et al. 2023, arXiv 2304.01433, table 4",
     0, 0, 275'000, 0, 0, 1'200, int64_t{32} << 30},
    {"tpu-v5e", "Google Cloud documentation, TPU v5e",
     0, 0, 197'000, 0, 0, 819, 16 * kBillion},
    {"tpu-v5p", "Google Cloud documentation, TPU v5p",
     0, 0, 459'000, 0, 0, 2'765, 95 * kBillion},
});
// clang-format on

// Returns the time for `amount` at `rate` per second, rounded up to nanoseconds; nullopt on
// overflow.
std::optional<Nanos> TimeAt(int64_t amount, int64_t rate) {
  if (rate == 0) return Nanos{};
  __extension__ using Wide = __int128;
  const Wide nanos = (static_cast<Wide>(amount) * kBillion + rate - 1) / rate;
  if (nanos > INT64_MAX) return std::nullopt;
  return Nanos{static_cast<int64_t>(nanos)};
}

}  // namespace

std::optional<int64_t> DeviceModel::MatrixPeak(DType type) const {
  int64_t peak = 0;
  if (type == DType::kFloat32) peak = float32;
  if (type == DType::kFloat16) peak = float16;
  if (type == DType::kBFloat16) peak = bfloat16;
  if (type == DType::kFloat8E4M3Fn || type == DType::kFloat8E5M2) peak = float8;
  return peak == 0 ? std::nullopt : std::optional(peak);
}

std::optional<double> DeviceModel::NominalMatrixPeak(DType type) const {
  const std::optional<int64_t> peak = MatrixPeak(type);
  if (!peak) return std::nullopt;
  return std::round(static_cast<double>(*peak) / compute_efficiency);
}

Result<Nanos> RooflineTime(const DeviceModel& device, const StepWork& work) {
  std::optional<int64_t> peak = 0;
  if (work.matrix_flops != 0) peak = device.MatrixPeak(work.type);
  if (!peak) {
    return BadInput(fmt::format("{}: found no peak for matrix products of {}, which '{}' uses",
                                device.name, Name(work.type), work.name));
  }
  struct Demand {
    int64_t amount = 0;
    int64_t rate = 0;
    std::string_view unit;
  };
  Nanos longest;
  for (const Demand& demand : {Demand{work.matrix_flops, *peak, "operations"},
                               Demand{work.flops - work.matrix_flops, device.vector, "operations"},
                               Demand{work.memory.count, device.memory.count, "bytes"}}) {
    const std::optional<Nanos> time = TimeAt(demand.amount, demand.rate);
    if (!time) {
      return BadInput(fmt::format(
          "{}: '{}' takes {:.1e} s, {} {} at {} per second, expected at most {:.1e} s", device.name,
          work.name, static_cast<double>(demand.amount) / static_cast<double>(demand.rate),
          demand.amount, demand.unit, demand.rate, kMostSeconds));
    }
    longest = std::max(longest, *time);
  }
  return longest;
}

std::span<const DevicePreset> DevicePresets() { return kDevicePresets; }

std::optional<DeviceModel> FindDevice(std::string_view name) {
  const auto found = std::ranges::find(kDevicePresets, name, &DevicePreset::name);
  if (found == kDevicePresets.end()) return std::nullopt;
  return DeviceModel{.name = std::string(name),
                     .float32 = found->float32 * kBillion,
                     .float16 = found->float16 * kBillion,
                     .bfloat16 = found->bfloat16 * kBillion,
                     .float8 = found->float8 * kBillion,
                     .vector = found->vector * kBillion,
                     .memory = Bytes{found->memory * kBillion},
                     .capacity = Bytes{found->capacity}};
}

}  // namespace etude
