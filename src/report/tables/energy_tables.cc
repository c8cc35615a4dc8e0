#include "src/report/tables/energy_tables.h"

#include <optional>

#include <fmt/format.h>

#include "src/report/tables/simulated/sim_tables.h"

namespace etude {
namespace {

// Returns the mean power; unknown without a step.
Cell WattsOf(std::optional<double> joules, const SimAccount& account) {
  if (!joules || account.step <= 0) return {};
  return *joules / (static_cast<double>(account.step) / 1e9);
}

Table EnergyPartsTable(const EnergyFigures& figures, const StepEnergy& energy,
                       const SimAccount& account) {
  const std::string device = figures.device.empty() ? "" : ", " + figures.device;
  Table table{.key = kEnergyTables[0],
              .title = fmt::format("energy of the step ({}{})", kEnergyModel, device),
              .columns = {{"part", "part", Unit::kText},
                          {"joules", "joules", Unit::kNumber},
                          {"share", "of all", Unit::kShare},
                          {"watts", "mean watts", Unit::kNumber}},
              .rows = {}};
  const std::optional<double> total = energy.total();
  const auto add = [&](const char* part, std::optional<double> joules) {
    const bool has_share = joules && total && *total > 0;
    table.rows.push_back({std::string(part), ToCell(joules),
                          has_share ? Cell(*joules / *total) : Cell(), WattsOf(joules, account)});
  };
  add("idle", energy.devices.idle);
  add("compute", energy.devices.compute);
  add("communication", energy.devices.communication);
  if (energy.hosts) add("hosts", energy.hosts);
  if (energy.network) add("network", energy.network);
  add("total", total);
  return table;
}

Table EnergyRanksTable(const StepEnergy& energy, const SimResult& result,
                       const SimAccount& account) {
  Table table{.key = kEnergyTables[1],
              .title = "energy of a rank's device",
              .columns = {{"ranks", "ranks", Unit::kText},
                          {"count", "count", Unit::kCount},
                          {"idle_joules", "idle joules", Unit::kNumber},
                          {"compute_joules", "compute joules", Unit::kNumber},
                          {"communication_joules", "communication joules", Unit::kNumber},
                          {"joules", "joules", Unit::kNumber},
                          {"watts", "mean watts", Unit::kNumber}},
              .rows = {}};
  const std::vector<std::string> names = RankTexts(result);
  for (size_t i = 0; i < energy.classes.size(); ++i) {
    const DeviceEnergy& one = energy.classes[i];
    table.rows.push_back({names[i], account.classes[i].ranks, ToCell(one.idle), ToCell(one.compute),
                          ToCell(one.communication), ToCell(one.total()),
                          WattsOf(one.total(), account)});
  }
  return table;
}

}  // namespace

std::vector<Table> EnergyTables(const EnergyFigures& figures, const StepEnergy& energy,
                                const SimResult& result, const SimAccount& account) {
  return {EnergyPartsTable(figures, energy, account), EnergyRanksTable(energy, result, account)};
}

}  // namespace etude
