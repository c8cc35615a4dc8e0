#include "src/suite/energy_meter.h"

#include <fstream>

#include "src/base/text/folder_names.h"

namespace etude::suite {
namespace {

std::optional<double> NumberIn(const std::string& path) {
  std::ifstream file(path);
  double number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

// Selects packages: "intel-rapl:0" may be one; "intel-rapl:0:0" is a part of it,
// "intel-rapl-mmio:0" is a duplicate, and the platform ("psys") includes it.
bool IsPackage(const std::string& powercap, const std::string& zone) {
  if (!zone.starts_with("intel-rapl:")) return false;
  std::string name;
  std::ifstream(powercap + "/" + zone + "/name") >> name;
  return name.starts_with("package-");
}

}  // namespace

EnergyMeter::EnergyMeter(bool gpus, const std::string& powercap) {
  if (gpus) {
    gpus_ = GpuSensors::Open();
    gpu_first_ = gpus_.count() > 0 ? gpus_.Read().energy_j : std::nullopt;
    if (!gpu_first_)
      why_none_ = gpus_.count() > 0 ? "the GPU does not report energy" : gpus_.why_none();
  } else {
    for (const std::string& name : NamesIn(powercap).value_or(std::vector<std::string>())) {
      if (!IsPackage(powercap, name)) continue;
      const std::string place = powercap + "/" + name;
      const std::string path = place + "/energy_uj";
      const std::optional<double> now = NumberIn(path);
      if (!now) continue;
      const double range = NumberIn(place + "/max_energy_range_uj").value_or(0);
      counters_.push_back({path, range, *now});
    }
    if (counters_.empty()) why_none_ = "found no energy counter of a processor in " + powercap;
  }
  if (why_none_.empty()) joules_ = 0;
}

void EnergyMeter::Read() {
  if (!joules_) return;
  if (gpu_first_) {
    const std::optional<double> now = gpus_.Read().energy_j;
    if (now) joules_ = *now - *gpu_first_;
    return;
  }
  for (Counter& counter : counters_) {
    const std::optional<double> now = NumberIn(counter.path);
    if (!now) continue;
    const double more = *now - counter.last;
    *joules_ += (more < 0 ? more + counter.range : more) / 1e6;
    counter.last = *now;
  }
}

}  // namespace etude::suite
