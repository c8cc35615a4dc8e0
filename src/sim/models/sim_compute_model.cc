#include "src/sim/models/sim_compute_model.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "src/base/random_stream.h"
#include "src/sim/machine/travel.h"

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
  const double peak_;  // operations per second
};

class WithStragglers final : public SimComputeModel {
 public:
  WithStragglers(const SimMachine& machine, std::unique_ptr<SimComputeModel> model)
      : machine_(machine), model_(std::move(model)) {}

  std::string_view name() const override { return model_->name(); }
  std::optional<int64_t> Time(int64_t rank, const SimNode& node) const override {
    const std::optional<int64_t> time = model_->Time(rank, node);
    if (!time) return time;
    return StragglerTime(machine_, rank, *time);
  }

 private:
  const SimMachine& machine_;
  const std::unique_ptr<SimComputeModel> model_;
};

}  // namespace

int64_t StragglerTime(const SimMachine& machine, int64_t rank, int64_t time) {
  const auto factor = machine.stragglers.find(rank);
  if (factor == machine.stragglers.end()) return time;
  return WholeNanos(static_cast<double>(time) * factor->second);
}

int64_t NoisyTime(const SimMachine& machine, int64_t rank, uint32_t node, int64_t time) {
  if (machine.noise <= 0) return time;
  // The draw depends on the seed, the rank and the node only.
  const uint64_t of_rank = RandomStream(machine.noise_seed).Next() ^ static_cast<uint64_t>(rank);
  RandomStream random(RandomStream(of_rank).Next() ^ node);
  // A standard normal number by Box and Muller's transform.
  const double radius = std::sqrt(-2 * std::log1p(-random.UniformDouble()));
  const double normal = radius * std::cos(2 * std::numbers::pi * random.UniformDouble());
  const double variance = std::log1p(machine.noise * machine.noise);
  const double factor = std::exp(std::sqrt(variance) * normal - variance / 2);
  return std::max<int64_t>(1, WholeNanos(static_cast<double>(time) * factor + 0.5));
}

std::unique_ptr<SimComputeModel> MakeSimComputeModel(const SimMachine& machine) {
  std::unique_ptr<SimComputeModel> model;
  if (machine.system.roofline) {
    model = std::make_unique<RooflineCompute>(machine.system);
  } else {
    model = std::make_unique<RecordedCompute>();
  }
  if (machine.stragglers.empty()) return model;
  return std::make_unique<WithStragglers>(machine, std::move(model));
}

}  // namespace etude
