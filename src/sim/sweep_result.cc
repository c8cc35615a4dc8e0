#include "src/sim/sweep_result.h"

#include <algorithm>
#include <utility>

#include "src/base/bounded_json.h"
#include "src/base/sha256.h"
#include "src/base/version.h"
#include "src/sim/pareto.h"

namespace etude {
namespace {

using OutcomeJson = nlohmann::ordered_json;

constexpr SweepOutcome::State kOutcomeStates[] = {
    SweepOutcome::State::kDone, SweepOutcome::State::kUnfinished, SweepOutcome::State::kRefused};

std::optional<double> FigureOf(const SweepRow& row, SweepMeasure measure) {
  const SweepTimes times = row.outcome->times.value_or(SweepTimes());
  switch (measure) {
    case SweepMeasure::kStep: return static_cast<double>(times.step);
    case SweepMeasure::kExposed: return static_cast<double>(times.exposed_communication);
    case SweepMeasure::kCost: return row.cost;
    case SweepMeasure::kBandwidth: return row.bandwidth;
    case SweepMeasure::kNpus: return static_cast<double>(row.npus);
  }
  return std::nullopt;
}

// Tells whether a result is the one that was written.
std::string CheckOf(const OutcomeJson& result) {
  return Sha256(result.dump(-1, ' ', false, OutcomeJson::error_handler_t::replace));
}

}  // namespace

std::string_view Name(SweepOutcome::State state) {
  switch (state) {
    case SweepOutcome::State::kDone: return "done";
    case SweepOutcome::State::kUnfinished: return "unfinished";
    case SweepOutcome::State::kRefused: return "refused";
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
  const std::string check = CheckOf(result);
  const OutcomeJson json = {{"format", "etude-sweep-point"},
                            {"version", 1},
                            {"inputs", OutcomeJson::parse(identity)},
                            {"result", std::move(result)},
                            {"check", check}};
  return json.dump(1, ' ', false, OutcomeJson::error_handler_t::replace) + "\n";
}

std::optional<SweepOutcome> ReadSweepFile(std::string_view text, const std::string& identity) {
  const OutcomeJson json = ParseBounded<OutcomeJson>(text);
  if (!json.is_object() || json.value("format", OutcomeJson()) != "etude-sweep-point" ||
      json.value("version", OutcomeJson()) != 1 || !json.contains("inputs") ||
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
  if (outcome.state != SweepOutcome::State::kDone) return outcome;
  SweepTimes& times = outcome.times.emplace();
  for (const SweepTimeColumn& column : kSweepTimes) {
    const OutcomeJson time = result->value(column.key, OutcomeJson());
    if (!time.is_number_integer()) return std::nullopt;
    times.*column.time = time.get<int64_t>();
  }
  return outcome;
}

std::vector<SweepMeasure> MeasuresOf(const SweepSpec& spec, const std::vector<SweepRow>& rows) {
  if (!spec.pareto.empty()) return spec.pareto;
  if (spec.prices) return {SweepMeasure::kStep, SweepMeasure::kCost};
  const auto differs = [&](auto member) {
    return std::ranges::adjacent_find(rows, std::ranges::not_equal_to{}, member) != rows.end();
  };
  if (differs(&SweepRow::bandwidth)) return {SweepMeasure::kStep, SweepMeasure::kBandwidth};
  if (differs(&SweepRow::npus)) return {SweepMeasure::kStep, SweepMeasure::kNpus};
  return {};
}

void MarkFront(const std::vector<SweepMeasure>& measures, std::vector<SweepRow>& rows) {
  std::vector<size_t> done;
  std::vector<std::vector<double>> points;
  for (size_t i = 0; i < rows.size() && !measures.empty(); ++i) {
    if (!rows[i].outcome || rows[i].outcome->state != SweepOutcome::State::kDone) continue;
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
