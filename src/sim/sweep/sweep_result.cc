#include "src/sim/sweep/sweep_result.h"

#include <algorithm>
#include <utility>

#include "src/base/sha256.h"
#include "src/base/text/bounded_json.h"
#include "src/base/version.h"
#include "src/sim/sweep/pareto.h"

namespace etude {
namespace {

using OutcomeJson = nlohmann::ordered_json;

constexpr SweepOutcome::State kOutcomeStates[] = {
    SweepOutcome::State::kDone, SweepOutcome::State::kUnfinished, SweepOutcome::State::kRefused};

// Returns the figure to rank by, lower is better; nullopt: unknown.
std::optional<double> OrderFigure(const SweepRow& row, SweepOrder order) {
  const std::optional<PlanRates> rates = row.rates();
  const bool has_plan = row.outcome && row.outcome->plan;
  switch (order) {
    case SweepOrder::kStep:
      if (!row.is_done()) return std::nullopt;
      return static_cast<double>(row.outcome->times->step);
    case SweepOrder::kThroughput:
      if (!rates) return std::nullopt;
      return -rates->items_per_second;
    case SweepOrder::kPerDevice:
      if (!rates) return std::nullopt;
      return -rates->items_per_second_per_device;
    case SweepOrder::kMfu:
      if (!rates || !rates->mfu) return std::nullopt;
      return -*rates->mfu;
    case SweepOrder::kMemory:
      if (!has_plan) return std::nullopt;
      return static_cast<double>(row.outcome->plan->memory.peak.count);
    case SweepOrder::kCost: return row.cost;
    case SweepOrder::kRankSeconds: return row.rank_seconds();
    case SweepOrder::kEnergy: return row.energy();
  }
  return std::nullopt;
}

std::optional<double> FigureOf(const SweepRow& row, SweepMeasure measure) {
  const SweepTimes times = row.outcome->times.value_or(SweepTimes());
  switch (measure) {
    case SweepMeasure::kStep: return static_cast<double>(times.step);
    case SweepMeasure::kExposed: return static_cast<double>(times.exposed_communication);
    case SweepMeasure::kCost: return row.cost;
    case SweepMeasure::kBandwidth: return row.bandwidth;
    case SweepMeasure::kNpus: return static_cast<double>(row.npus);
    case SweepMeasure::kThroughput: return OrderFigure(row, SweepOrder::kThroughput);
    case SweepMeasure::kMemory: return OrderFigure(row, SweepOrder::kMemory);
    case SweepMeasure::kRankSeconds: return row.rank_seconds();
    case SweepMeasure::kEnergy: return row.energy();
  }
  return std::nullopt;
}

// Returns a checksum of a result.
std::string CheckOf(const OutcomeJson& result) {
  return Sha256(result.dump(-1, ' ', false, OutcomeJson::error_handler_t::replace));
}

}  // namespace

std::string_view Name(SweepOutcome::State state) {
  switch (state) {
    case SweepOutcome::State::kDone: return "done";
    case SweepOutcome::State::kUnfinished: return "unfinished";
    case SweepOutcome::State::kRefused: return "refused";
    case SweepOutcome::State::kExcluded: return "excluded";
  }
  return "";
}

std::string SweepIdentity(const SweepPoint& point, const std::string& job,
                          const std::string& programs) {
  OutcomeJson json = {{"etude", kVersion}, {"machine", point.machine}, {"job", job}};
  if (!programs.empty()) json["programs"] = programs;
  return json.dump();
}

std::string SweepFileName(const std::string& identity) { return Sha256(identity) + ".json"; }

std::string SweepFileText(const std::string& identity, const SweepOutcome& outcome) {
  OutcomeJson result = {{"state", Name(outcome.state)}};
  if (!outcome.why.empty()) result["why"] = outcome.why;
  for (const SweepTimeColumn& column : kSweepTimes) {
    if (outcome.times) result[column.key] = (*outcome.times).*column.time;
  }
  if (!outcome.notes.empty()) result["notes"] = outcome.notes;
  if (outcome.plan) result["plan"] = ToJson(*outcome.plan);
  if (outcome.energy) result["energy_joules"] = *outcome.energy;
  if (outcome.ranks) result["ranks"] = *outcome.ranks;
  const std::string check = CheckOf(result);
  const OutcomeJson json = {{"format", "etude-sweep-point"},
                            {"version", 2},
                            {"inputs", OutcomeJson::parse(identity)},
                            {"result", std::move(result)},
                            {"check", check}};
  return json.dump(1, ' ', false, OutcomeJson::error_handler_t::replace) + "\n";
}

std::optional<SweepOutcome> ReadSweepFile(std::string_view text, const std::string& identity) {
  const OutcomeJson json = ParseBounded<OutcomeJson>(text);
  if (!json.is_object() || json.value("format", OutcomeJson()) != "etude-sweep-point" ||
      json.value("version", OutcomeJson()) != 2 || !json.contains("inputs") ||
      json["inputs"] != OutcomeJson::parse(identity, nullptr, false)) {
    return std::nullopt;
  }
  const auto result = json.find("result");
  if (result == json.end() || !result->is_object()) return std::nullopt;
  if (json.value("check", OutcomeJson()) != CheckOf(*result)) return std::nullopt;
  const OutcomeJson state = result->value("state", OutcomeJson());
  const auto found = std::ranges::find_if(
      kOutcomeStates, [&](SweepOutcome::State one) { return state == Name(one); });
  if (found == std::end(kOutcomeStates)) return std::nullopt;
  SweepOutcome outcome{.state = *found};
  if (const OutcomeJson why = result->value("why", OutcomeJson()); why.is_string()) {
    outcome.why = why.get<std::string>();
  }
  for (const OutcomeJson& note : result->value("notes", OutcomeJson::array())) {
    if (!note.is_string()) return std::nullopt;
    outcome.notes.push_back(note.get<std::string>());
  }
  if (const auto plan = result->find("plan"); plan != result->end()) {
    outcome.plan = ReadPlanFacts(*plan);
    if (!outcome.plan) return std::nullopt;
  }
  if (const OutcomeJson ranks = result->value("ranks", OutcomeJson()); !ranks.is_null()) {
    if (!ranks.is_number_unsigned()) return std::nullopt;
    outcome.ranks = ranks.get<int64_t>();
  }
  if (outcome.state != SweepOutcome::State::kDone) return outcome;
  if (const OutcomeJson joules = result->value("energy_joules", OutcomeJson()); !joules.is_null()) {
    if (!joules.is_number()) return std::nullopt;
    outcome.energy = joules.get<double>();
  }
  SweepTimes& times = outcome.times.emplace();
  for (const SweepTimeColumn& column : kSweepTimes) {
    const OutcomeJson time = result->value(column.key, OutcomeJson());
    if (!time.is_number_integer()) return std::nullopt;
    times.*column.time = time.get<int64_t>();
  }
  return outcome;
}

std::optional<Bytes> SweepRow::known_capacity() const {
  if (!outcome || !outcome->plan) return std::nullopt;
  return capacity ? capacity : outcome->plan->capacity;
}

std::optional<bool> SweepRow::fits() const {
  const std::optional<Bytes> limit = known_capacity();
  if (!limit) return std::nullopt;
  return outcome->plan->memory.peak <= *limit;
}

std::optional<PlanRates> SweepRow::rates() const {
  if (!is_done() || !outcome->plan) return std::nullopt;
  return RatesOf(*outcome->plan, Nanos{outcome->times->step});
}

std::optional<double> SweepRow::rank_seconds() const {
  if (!is_done()) return std::nullopt;
  return static_cast<double>(npus) * static_cast<double>(outcome->times->step) * 1e-9;
}

std::string ViolationOf(const SweepConstraints& constraints, const SweepRow& row,
                        const PlanFacts& plan) {
  if (!constraints.ranks.empty() &&
      std::ranges::find(constraints.ranks, plan.ranks) == constraints.ranks.end()) {
    return "other number of ranks";
  }
  if (constraints.memory && plan.memory.peak > *constraints.memory) return "memory above the limit";
  const std::optional<Bytes> capacity = row.capacity ? row.capacity : plan.capacity;
  if (constraints.fits && capacity && plan.memory.peak > *capacity) {
    return "does not fit into the memory of a device";
  }
  return "";
}

void Exclude(const SweepConstraints& constraints, std::vector<SweepRow>& rows) {
  for (SweepRow& row : rows) {
    if (!row.outcome || !row.outcome->plan) continue;
    std::string why = ViolationOf(constraints, row, *row.outcome->plan);
    if (why.empty()) continue;
    row.outcome->state = SweepOutcome::State::kExcluded;
    row.outcome->why = std::move(why);
    row.outcome->times.reset();
    row.outcome->notes.clear();
  }
}

std::string_view Name(SweepOrder order) {
  switch (order) {
    case SweepOrder::kStep: return "step";
    case SweepOrder::kThroughput: return "throughput";
    case SweepOrder::kPerDevice: return "per-device";
    case SweepOrder::kMfu: return "mfu";
    case SweepOrder::kMemory: return "memory";
    case SweepOrder::kCost: return "cost";
    case SweepOrder::kRankSeconds: return "rank-seconds";
    case SweepOrder::kEnergy: return "energy";
  }
  return "";
}

std::string_view Title(SweepOrder order) {
  switch (order) {
    case SweepOrder::kStep: return "step time";
    case SweepOrder::kPerDevice: return "throughput per device";
    case SweepOrder::kMfu: return "MFU";
    case SweepOrder::kThroughput:
    case SweepOrder::kMemory:
    case SweepOrder::kCost:
    case SweepOrder::kRankSeconds:
    case SweepOrder::kEnergy: break;
  }
  return Name(order);
}

SweepOrder DefaultOrder(const std::vector<SweepRow>& rows) {
  const SweepRow* first = nullptr;
  for (const SweepRow& row : rows) {
    if (!row.is_done()) continue;
    if (!row.rates()) return SweepOrder::kStep;
    if (first == nullptr) first = &row;
    if (row.outcome->plan->item != first->outcome->plan->item) return SweepOrder::kStep;
  }
  return first == nullptr ? SweepOrder::kStep : SweepOrder::kThroughput;
}

std::vector<const SweepRow*> Ranking(const std::vector<SweepRow>& rows, SweepOrder order) {
  struct Ranked {
    int group = 0;
    double figure = 0;
    const SweepRow* row = nullptr;
  };
  std::vector<Ranked> ranked;
  for (const SweepRow& row : rows) {
    if (!row.is_done()) {
      ranked.push_back({.group = 4, .row = &row});
      continue;
    }
    const std::optional<double> figure = OrderFigure(row, order);
    const int group = row.fits().value_or(true) ? 0 : 2;
    ranked.push_back(
        {.group = group + (figure ? 0 : 1), .figure = figure.value_or(0), .row = &row});
  }
  std::ranges::stable_sort(ranked, {},
                           [](const Ranked& one) { return std::pair(one.group, one.figure); });
  std::vector<const SweepRow*> sorted;
  for (const Ranked& one : ranked) sorted.push_back(one.row);
  return sorted;
}

std::vector<SweepMeasure> MeasuresOf(const SweepSpec& spec, const std::vector<SweepRow>& rows) {
  if (!spec.pareto.empty()) return spec.pareto;
  const SweepMeasure first = DefaultOrder(rows) == SweepOrder::kThroughput
                                 ? SweepMeasure::kThroughput
                                 : SweepMeasure::kStep;
  if (spec.prices) return {first, SweepMeasure::kCost};
  const auto differs = [&](auto member) {
    return std::ranges::adjacent_find(rows, std::ranges::not_equal_to{}, member) != rows.end();
  };
  if (differs(&SweepRow::bandwidth)) return {first, SweepMeasure::kBandwidth};
  if (differs(&SweepRow::npus)) return {first, SweepMeasure::kNpus};
  return {};
}

void MarkFront(const std::vector<SweepMeasure>& measures, std::vector<SweepRow>& rows) {
  std::vector<size_t> done;
  std::vector<std::vector<double>> points;
  for (size_t i = 0; i < rows.size() && !measures.empty(); ++i) {
    if (!rows[i].is_done() || !rows[i].fits().value_or(true)) continue;
    std::vector<double> figures;
    for (const SweepMeasure measure : measures) {
      if (const auto figure = FigureOf(rows[i], measure)) figures.push_back(*figure);
    }
    if (figures.size() != measures.size()) continue;
    done.push_back(i);
    points.push_back(std::move(figures));
  }
  const std::vector<bool> front = ParetoFront(points);
  for (size_t i = 0; i < done.size(); ++i) rows[done[i]].is_best = front[i];
}

}  // namespace etude
