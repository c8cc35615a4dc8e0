#include "src/sim/sim_compute_model.h"

#include <algorithm>

#include "src/sim/travel.h"

namespace etude {
namespace {

class RecordedCompute final : public SimComputeModel {
 public:
  std::string_view name() const override { return "astra-sim-2.0/recorded"; }
  std::optional<int64_t> Time(int64_t /*rank*/, const SimNode& node) const override {
    return RecordedTime(node);
  }
};

class RooflineCompute final : public SimComputeModel {
 public:
  explicit RooflineCompute(const SystemModel& system)
      : bytes_per_second_(system.memory_bandwidth * 1e9), peak_(system.peak * 1e12) {}

  std::string_view name() const override { return "astra-sim-2.0/roofline"; }
  std::optional<int64_t> Time(int64_t /*rank*/, const SimNode& node) const override {
    if (node.on_host) return RecordedTime(node);
    if (node.bytes == 0) return std::nullopt;
    const auto bytes = static_cast<double>(node.bytes);
    const auto flops = static_cast<double>(node.flops);
    if (node.flops == 0) return WholeNanos(bytes / bytes_per_second_ * 1e9);
    const double intensity = flops / bytes;
    return WholeNanos(flops / std::min(bytes_per_second_ * intensity, peak_) * 1e9);
  }

 private:
  const double bytes_per_second_;
  const double peak_;  // operations a second
};

}  // namespace

std::unique_ptr<SimComputeModel> MakeSimComputeModel(const SystemModel& system) {
  if (system.roofline) return std::make_unique<RooflineCompute>(system);
  return std::make_unique<RecordedCompute>();
}

}  // namespace etude
