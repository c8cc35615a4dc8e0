#include "src/sim/result/energy.h"

#include <cstddef>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/ceil_div.h"

namespace etude {
namespace {

using Joules = std::optional<double>;

double SecondsOf(int64_t nanos) { return static_cast<double>(nanos) / 1e9; }

// Returns the energy of a power that is unknown or applies for some time.
Joules EnergyOfPower(std::optional<double> watts, int64_t nanos) {
  if (nanos == 0) return 0;
  if (!watts) return std::nullopt;
  return *watts * SecondsOf(nanos);
}

std::optional<double> Above(std::optional<double> watts, std::optional<double> idle) {
  if (!watts || !idle) return std::nullopt;
  return *watts - *idle;
}

void AddTo(Joules& sum, Joules more) {
  if (sum && more) {
    *sum += *more;
  } else {
    sum.reset();
  }
}

// Returns the energy of the links; nullopt: unknown.
Result<Joules> EnergyOfLinks(const EnergyFigures& figures, const SimMachine& machine,
                             const SimResult& result) {
  if (figures.per_byte.empty() || machine.times != nullptr) return Joules();
  const size_t dims = machine.dims.size();
  if (figures.per_byte.size() != 1 && figures.per_byte.size() != dims) {
    const std::string& place = figures.per_byte_place;
    return BadInput(
        fmt::format("{}joules_per_byte: found {} numbers, expected one, or {} (one per "
                    "dimension of the network)",
                    place.empty() ? "" : place + ": ", figures.per_byte.size(), dims));
  }
  const std::vector<int64_t> sizes = result.ClassSizes();
  double sum = 0;
  for (const SimLinkUse& link : result.links) {
    const double per_byte = figures.per_byte[figures.per_byte.size() == 1 ? 0 : link.dim];
    // Without a far end, the traffic is that of each rank of a class.
    const double bytes = link.to ? static_cast<double>(link.bytes)
                                 : static_cast<double>(link.hop_bytes) *
                                       static_cast<double>(sizes[static_cast<size_t>(link.from)]);
    sum += per_byte * bytes;
  }
  return Joules(sum);
}

// Returns the missing figures by their keys in the file.
std::vector<std::string> MissingOf(const EnergyFigures& figures, const DeviceEnergy& devices) {
  std::vector<std::string> missing;
  if (!devices.total() && !figures.idle) missing.emplace_back("idle_watts");
  if (!devices.compute && !figures.compute) missing.emplace_back("compute_watts");
  if (!devices.communication && !figures.communication) {
    missing.emplace_back("communication_watts");
  }
  return missing;
}

}  // namespace

std::optional<double> DeviceEnergy::total() const {
  if (!idle || !compute || !communication) return std::nullopt;
  return *idle + *compute + *communication;
}

std::optional<double> StepEnergy::total() const {
  const std::optional<double> of_devices = devices.total();
  if (!of_devices) return std::nullopt;
  return *of_devices + hosts.value_or(0) + network.value_or(0);
}

Result<StepEnergy> EnergyOf(const EnergyFigures& figures, const SimMachine& machine,
                            const SimResult& result, const SimAccount& account) {
  StepEnergy energy{.classes = {},
                    .devices = {.idle = 0, .compute = 0, .communication = 0},
                    .hosts = {},
                    .network = {},
                    .notes = {}};
  int64_t ranks = 0;
  for (const SimClassAccount& one : account.classes) {
    const DeviceEnergy of_rank{
        .idle = EnergyOfPower(figures.idle, account.step),
        .compute = EnergyOfPower(Above(figures.compute, figures.idle), one.times.compute),
        .communication =
            EnergyOfPower(Above(figures.communication, figures.idle), one.times.communication)};
    energy.classes.push_back(of_rank);
    const auto count = static_cast<double>(one.ranks);
    const auto of_class = [&](Joules joules) { return joules ? Joules(*joules * count) : joules; };
    AddTo(energy.devices.idle, of_class(of_rank.idle));
    AddTo(energy.devices.compute, of_class(of_rank.compute));
    AddTo(energy.devices.communication, of_class(of_rank.communication));
    ranks += one.ranks;
  }
  if (figures.host) {
    const int64_t hosts = CeilDiv(ranks, figures.ranks_per_host);
    energy.hosts = *figures.host * SecondsOf(account.step) * static_cast<double>(hosts);
  }
  ETUDE_ASSIGN_OR_RETURN(energy.network, EnergyOfLinks(figures, machine, result));
  if (const auto missing = MissingOf(figures, energy.devices); !missing.empty()) {
    energy.notes.push_back(
        fmt::format("energy: unknown in total, [device] lacks {}", fmt::join(missing, ", ")));
  }
  if (!energy.hosts) energy.notes.emplace_back("energy: hosts are not counted, missing [host]");
  if (!energy.network) {
    energy.notes.emplace_back(machine.times != nullptr
                                  ? "energy: links are not counted, the machine has none"
                                  : "energy: links are not counted, missing [network]");
  }
  return energy;
}

}  // namespace etude
