#include "src/jobs/calibrate/device_fit.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/format.h>

#include "src/formats/io/toml_reader.h"
#include "src/jobs/calibrate/calibration.h"
#include "src/synth/device/device_file.h"

namespace etude {
namespace {

// The largest size divided by the smallest that checks the rate: much smaller tensors fit caches.
constexpr int64_t kCheckedRange = 4;
constexpr double kMostRate = 1e18;  // bytes or operations per second

// Returns the computation of a type with the most ranks; nullptr if there is none.
const MeasuredComputation* OfMostRanks(const MachineFile& file, ComputationType type, DType dtype) {
  const MeasuredComputation* best = nullptr;
  for (const MeasuredComputation& one : file.computations) {
    if (one.type != type || one.dtype != dtype) continue;
    if (best == nullptr || one.ranks > best->ranks) best = &one;
  }
  return best;
}

}  // namespace

std::optional<ComputationFit> FitComputation(const MeasuredComputation& computation) {
  const MeasuredComputation::Point& first = computation.points.front();
  const MeasuredComputation::Point& last = computation.points.back();
  const int64_t least = last.bytes / kCheckedRange;
  ComputationFit fit;
  if (first.bytes < least) fit.latency_ns = static_cast<double>(first.time_ns);
  const double nanos = static_cast<double>(last.time_ns) - fit.latency_ns;
  if (!(nanos > 0)) return std::nullopt;
  const double per_nano = computation.WorkOf(last.bytes) / nanos;
  fit.rate = per_nano * 1e9;
  MeasuredCheck check;
  for (const MeasuredComputation::Point& point : computation.points) {
    if (point.bytes < least || point.bytes == last.bytes) continue;
    const double predicted = fit.latency_ns + computation.WorkOf(point.bytes) / per_nano;
    check.points.push_back({.bytes = point.bytes,
                            .time_ns = point.time_ns,
                            .predicted_ns = std::llround(std::min(predicted, 1e18))});
  }
  fit.errors = ErrorsOf(check);
  return fit;
}

Table ComputationTable(const std::vector<CalibratedComputation>& all) {
  Table table{.key = "computation",
              .title = "computations of ranks at the same time, as latency + work / rate",
              .columns = {{"type", "type"},
                          {"dtype", "dtype"},
                          {"ranks", "ranks", Unit::kCount},
                          {"bytes", "smallest", Unit::kBytes},
                          {"time_ns", "time", Unit::kTime},
                          {"largest_bytes", "largest", Unit::kBytes},
                          {"largest_time_ns", "time", Unit::kTime},
                          {"latency_ns", "latency", Unit::kTime},
                          {"bytes_per_second", "bytes", Unit::kRate},
                          {"gflops", "GFLOPS", Unit::kNumber},
                          {"error", "error", Unit::kChange},
                          {"worst_error", "worst", Unit::kChange},
                          {"state", "state"}},
              .rows = {}};
  for (const auto& [computation, state] : all) {
    const MeasuredComputation::Point& first = computation.points.front();
    const MeasuredComputation::Point& last = computation.points.back();
    const std::optional<ComputationFit> fit = FitComputation(computation);
    const bool is_product = computation.type == ComputationType::kProduct;
    const bool has_errors = fit && fit->errors;
    table.rows.push_back({std::string(NameOfComputation(computation.type)),
                          std::string(Name(computation.dtype)), computation.ranks, first.bytes,
                          first.time_ns, last.bytes, last.time_ns,
                          fit ? Cell(int64_t{std::llround(fit->latency_ns)}) : Cell(),
                          fit && !is_product ? Cell(fit->rate) : Cell(),
                          fit && is_product ? Cell(fit->rate / 1e9) : Cell(),
                          has_errors ? Cell(fit->errors->median) : Cell(),
                          has_errors ? Cell(fit->errors->worst) : Cell(), state});
  }
  return table;
}

Result<DeviceModel> DeviceOf(const MachineFile& file, const std::string& name) {
  DeviceModel device;
  device.name = name;
  const std::tuple<ComputationType, DType, int64_t*> rates[] = {
      {ComputationType::kProduct, DType::kFloat32, &device.float32},
      {ComputationType::kProduct, DType::kFloat16, &device.float16},
      {ComputationType::kProduct, DType::kBFloat16, &device.bfloat16},
      {ComputationType::kCopy, DType::kFloat32, &device.memory.count}};
  for (const auto& [type, dtype, rate] : rates) {
    const MeasuredComputation* found = OfMostRanks(file, type, dtype);
    const auto fit = found == nullptr ? std::nullopt : FitComputation(*found);
    if (!fit) continue;
    if (!(fit->rate >= 1 && fit->rate <= kMostRate)) {
      return BadInput(fmt::format("{}: found {:g} per second for {} of {}, expected 1 to {:g}",
                                  name, fit->rate, NameOfComputation(type), Name(dtype),
                                  kMostRate));
    }
    *rate = std::llround(fit->rate);
  }
  if (device.memory.count == 0) {
    return BadInput(name +
                    ": missing the [[computation]] 'copy' of several sizes, from which the "
                    "memory bandwidth follows: `etude calibrate --types copy,product` measures it");
  }
  return device;
}

Result<DeviceModel> ParseDeviceOrMachine(std::string_view text, const std::string& path) {
  ETUDE_ASSIGN_OR_RETURN(const bool is_machine,
                         ParseToml<bool>(text, path, [](const toml::table& root) -> Result<bool> {
                           return root.contains("machine");
                         }));
  if (!is_machine) return ParseDevice(text, path);
  ETUDE_ASSIGN_OR_RETURN(const MachineFile file, ParseMachineFile(text, path));
  return DeviceOf(file, path);
}

}  // namespace etude
