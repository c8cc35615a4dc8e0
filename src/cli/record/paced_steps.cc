#include "src/cli/record/paced_steps.h"

#include <algorithm>

#include "src/base/machine/process_usage.h"
#include "src/cli/tool/json_fields.h"

namespace etude {
void StepWatch::Mean::Add(const std::optional<double>& value) {
  if (!value) return;
  sum += *value;
  ++count;
}

std::optional<double> StepWatch::Mean::value() const {
  return count > 0 ? std::optional(sum / static_cast<double>(count)) : std::nullopt;
}

void StepWatch::Begin(pid_t process) {
  process_ = process;
  resident_ = power_ = utilisation_ = memory_utilisation_ = Mean();
  gpu_memory_.reset();
  gpus_before_ = Look();
  before_ = counters_.Read();
}

GpuSensors::Reading StepWatch::Look() {
  if (const auto resident = process_ > 0 ? ResidentBytes(process_) : std::nullopt) {
    resident_.Add(static_cast<double>(resident->count));
  }
  const GpuSensors::Reading gpus = gpus_->Read();
  power_.Add(gpus.power_w);
  utilisation_.Add(gpus.utilisation);
  memory_utilisation_.Add(gpus.memory_utilisation);
  if (gpus.memory_bytes) gpu_memory_ = std::max(gpu_memory_.value_or(0), *gpus.memory_bytes);
  return gpus;
}

Result<PacedStep> StepWatch::End(const std::string& answer) {
  const CounterSet::Counts counts = CounterSet::Between(before_, counters_.Read());
  const GpuSensors::Reading gpus = Look();
  const nlohmann::json json = nlohmann::json::parse(answer, nullptr, /*allow_exceptions=*/false);
  const auto wall = NumberIn(json, "wall_ns");
  const auto cpu = NumberIn(json, "cpu_ns");
  if (!wall || !cpu) {
    return MakeError(ErrorCode::kInternal, "a paced step: found '" + answer.substr(0, 200) +
                                               "', expected JSON with its times");
  }
  const nlohmann::json other = json.value("other_signature", nlohmann::json());
  PacedStep step{.counts = json.value("counts", nlohmann::json()) != false,
                 .other_signature = other.is_string() ? other.get<std::string>() : ""};
  using enum StepMetric;
  StepFigures& figures = step.figures;
  figures[kWallTime] = wall;
  figures[kCpuTime] = cpu;
  // Programs do not report the CPU time of gaps separately.
  const double busy = NumberIn(json, "busy_gaps_ns").value_or(0);
  figures[kWallTimeWithoutGaps] = *wall - busy - NumberIn(json, "idle_gaps_ns").value_or(0);
  figures[kCpuTimeWithoutGaps] = *cpu - busy;
  figures[kPageFaults] = NumberIn(json, "minor_faults");
  figures[kVoluntarySwitches] = NumberIn(json, "voluntary_switches");
  figures[kInvoluntarySwitches] = NumberIn(json, "involuntary_switches");
  figures[kPeakResident] = NumberIn(json, "peak_resident_bytes");
  figures[kAverageResident] = resident_.value();
  if (level_) {
    const auto level = static_cast<double>(*level_);
    const auto& peak = figures[kPeakResident];
    const auto& average = figures[kAverageResident];
    if (peak) figures[kPeakMemory] = *peak - level;
    if (average) figures[kAverageMemory] = *average - level;
  }
  figures[kInstructions] = counts[0];
  figures[kCycles] = counts[1];
  figures[kCacheMisses] = counts[2];
  figures[kBranchMisses] = counts[3];
  // NVML's counter is updated ten to twenty times per second.
  constexpr double kShortest = 0.5e9;
  if (gpus.energy_j && gpus_before_.energy_j && figures[kWallTime].value_or(0) >= kShortest) {
    figures[kGpuEnergy] = *gpus.energy_j - *gpus_before_.energy_j;
  }
  figures[kGpuPower] = power_.value();
  figures[kGpuUtilisation] = utilisation_.value();
  figures[kGpuMemoryUtilisation] = memory_utilisation_.value();
  figures[kGpuMemory] = gpu_memory_;
  return step;
}

Result<std::optional<std::string>> AwaitLine(ProcessTree& tree, LineChannel& channel,
                                             std::chrono::milliseconds time,
                                             const std::string& late,
                                             const std::function<void()>& look) {
  const auto deadline = std::chrono::steady_clock::now() + time;
  while (true) {
    if (auto line = channel.NextLine()) return line;
    if (!channel.open()) return std::nullopt;
    pollfd descriptor{.fd = channel.descriptor(), .events = POLLIN, .revents = 0};
    ETUDE_RETURN_IF_ERROR(tree.Await({&descriptor, 1}, StepWatch::kBetweenLooks));
    if (descriptor.revents != 0) {
      channel.Receive();
      continue;
    }
    if (look) look();
    if (std::chrono::steady_clock::now() >= deadline) {
      return Unavailable(late);
    }
  }
}

}  // namespace etude
