#include "src/suite/subset/subset_page.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/text/format_count.h"
#include "src/report/text/json_output.h"

namespace etude::suite {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kRecalledNote =
    "recalled: from AIBench's papers, by memory and not verified; hours of one GPU at paper scale";

std::string IdList(const std::vector<const TaskFacts*>& tasks) {
  std::vector<std::string_view> ids;
  for (const TaskFacts* task : tasks) ids.push_back(task->id);
  return fmt::format("{}", fmt::join(ids, ", "));
}

Cell FiniteCell(std::optional<double> value) {
  return value && std::isfinite(*value) ? Cell(*value) : Cell();
}

std::string VerdictTextOf(const Repeatability& found, double limit) {
  using Verdict = Repeatability::Verdict;
  switch (found.verdict) {
    case Verdict::kShown: return fmt::format("shown to be at most {:.3g} %", limit * 100);
    case Verdict::kNotShown: return "not shown";
    case Verdict::kShownAbove: return fmt::format("shown to be above {:.3g} %", limit * 100);
    case Verdict::kUnknown: return "fewer than two runs";
  }
  return "";
}

// Returns "often enough", or "too rare: every 10 steps, at most 3".
std::string EvaluationsText(const Repeatability& found) {
  if (!*found.coarse) return "often enough";
  return fmt::format("too rare: every {}, at most {}",
                     FormatCount(static_cast<uint64_t>(*found.evaluate_every), "step"),
                     *found.MostSteps());
}

Table RepeatabilityTable(const Subset& subset) {
  Table table{.key = "repeatability",
              .title = "Repeatability",
              .columns = {{"task", "task"},
                          {"runs", "runs", Unit::kCount},
                          {"calibrated", "of the calibration", Unit::kCount},
                          {"missed", "missed", Unit::kCount},
                          {"epochs", "epochs", Unit::kNumber},
                          {"variation", "variation", Unit::kShare},
                          {"low", "at least", Unit::kShare},
                          {"high", "at most", Unit::kShare},
                          {"verdict", "verdict"},
                          {"evaluations", "evaluations"},
                          {"recalled_variation", "AIBench (recalled)", Unit::kShare}},
              .rows = {}};
  for (const Subset::Task& task : subset.tasks) {
    const Repeatability& found = task.repeatability;
    const auto part = [&](double Variation::*member) {
      return found.variation ? FiniteCell((*found.variation).*member) : Cell();
    };
    table.rows.push_back(
        {std::string(task.facts->id), CountCell(found.epochs.size() + found.missed),
         CountCell(found.calibrated), CountCell(found.missed), ToCell(found.mean),
         part(&Variation::coefficient), part(&Variation::low), part(&Variation::high),
         VerdictTextOf(found, subset.options.most_variation),
         found.coarse ? Cell(EvaluationsText(found)) : Cell(),
         ToCell(task.facts->recalled_variation)});
  }
  return table;
}

std::string ClusterText(const std::optional<size_t>& label) {
  return label ? fmt::format("{}", *label + 1) : "–";
}

Table ChoiceTable(const Subset& subset) {
  Table table{.key = "choice",
              .title = "Choice",
              .columns = {{"task", "task"},
                          {"picked", "picked"},
                          {"cluster", "cluster"},
                          {"distance", "distance", Unit::kNumber},
                          {"recalled_hours", "hours (recalled)", Unit::kNumber},
                          {"why", "reason"}},
              .rows = {}};
  for (size_t i = 0; i < subset.tasks.size(); ++i) {
    const Subset::Task& task = subset.tasks[i];
    table.rows.push_back({std::string(task.facts->id),
                          task.picked ? Cell(std::string("yes")) : Cell(),
                          task.candidate ? Cell(ClusterText(subset.clusters().labels[i])) : Cell(),
                          task.candidate ? ToCell(subset.clusters().distances[i]) : Cell(),
                          ToCell(task.facts->recalled_hours), task.why});
  }
  return table;
}

Table SilhouetteTable(const Subset& subset) {
  Table table{.key = "silhouettes",
              .title = "Mean silhouettes",
              .columns = {{"clusters", "clusters", Unit::kCount},
                          {"pca", "in principal components", Unit::kNumber},
                          {"t_sne", "in t-SNE", Unit::kNumber}},
              .rows = {}};
  for (size_t i = 0; i < subset.by_pca.silhouettes.size(); ++i) {
    const auto& [count, mean] = subset.by_pca.silhouettes[i];
    table.rows.push_back({CountCell(count), mean, subset.by_t_sne.silhouettes[i].second});
  }
  return table;
}

Table FactorTable(const Subset& subset) {
  Table table{.key = "factors", .title = "Factors", .columns = {{"task", "task"}}, .rows = {}};
  for (const Factor& factor : subset.factors) {
    table.columns.push_back({factor.key, factor.title, Unit::kNumber});
  }
  for (const Subset::Task& task : subset.tasks) {
    auto& row = table.rows.emplace_back();
    row.emplace_back(std::string(task.facts->id));
    for (size_t i = 0; i < subset.factors.size(); ++i) {
      row.push_back(task.factors.empty() ? Cell() : Cell(task.factors[i]));
    }
  }
  return table;
}

Table MapTable(const Subset& subset) {
  Table table{.key = "map",
              .title = "Map of the tasks",
              .columns = {{"task", "task"},
                          {"cluster", "cluster"},
                          {"pc1", "first component", Unit::kNumber},
                          {"pc2", "second component", Unit::kNumber},
                          {"t_sne_x", "t-SNE, first axis", Unit::kNumber},
                          {"t_sne_y", "t-SNE, second axis", Unit::kNumber}},
              .rows = {}};
  for (size_t i = 0; i < subset.tasks.size(); ++i) {
    const Subset::Task& task = subset.tasks[i];
    if (task.factors.empty()) continue;
    std::string cluster = task.candidate ? "cluster " + ClusterText(subset.clusters().labels[i])
                                         : std::string("not a candidate");
    if (task.picked) cluster += ", picked";
    const auto component = [&](size_t number) {
      return number < task.pca.size() ? Cell(task.pca[number]) : Cell();
    };
    table.rows.push_back({std::string(task.facts->id), std::move(cluster), component(0),
                          component(1), task.t_sne[0], task.t_sne[1]});
  }
  return table;
}

std::string SetName(const TaskSet& set) {
  return set.source.empty() ? set.name : fmt::format("{} ({})", set.name, set.source);
}

Table SetTable(const Subset& subset) {
  Table table{.key = "subsets",
              .title = "Subsets",
              .columns = {{"subset", "subset"},
                          {"count", "tasks", Unit::kCount},
                          {"recalled_hours", "hours (recalled)", Unit::kNumber},
                          {"saved", "saved", Unit::kShare},
                          {"box", "box covered", Unit::kShare},
                          {"area", "area covered", Unit::kShare},
                          {"tasks", "members"}},
              .rows = {}};
  for (const TaskSet& set : subset.sets) {
    table.rows.push_back({SetName(set), CountCell(set.tasks.size()), ToCell(set.recalled_hours),
                          ToCell(set.saved), ToCell(set.box), ToCell(set.area),
                          &set == &subset.sets.front() ? std::string() : IdList(set.tasks)});
  }
  return table;
}

Table CoverageTable(const Subset& subset) {
  Table table{.key = "coverage",
              .title = "Range covered",
              .columns = {{"factor", "factor"},
                          {"low", "from", Unit::kNumber},
                          {"high", "to", Unit::kNumber}},
              .rows = {}};
  constexpr const char* kKeys[] = {"", "mlperf_like", "chosen", "published"};
  for (size_t i = 1; i < subset.sets.size(); ++i) {
    table.columns.push_back({kKeys[i], SetName(subset.sets[i]), Unit::kShare});
  }
  for (size_t factor = 0; factor < subset.factors.size(); ++factor) {
    const TaskSet::Range& all = subset.sets.front().ranges[factor];
    auto& row = table.rows.emplace_back();
    row = {subset.factors[factor].title, all.low, all.high};
    for (size_t i = 1; i < subset.sets.size(); ++i) {
      const auto& ranges = subset.sets[i].ranges;
      row.push_back(ranges.empty() ? Cell() : Cell(ranges[factor].share));
    }
  }
  return table;
}

Table MlPerfTable() {
  Table table{.key = "mlperf",
              .title = "MLPerf-like tasks",
              .columns = {{"task", "task"}, {"benchmarks", "MLPerf's benchmarks of its kind"}},
              .rows = {}};
  for (const TaskFacts* task : MlPerfLikeTasks()) {
    table.rows.push_back({std::string(task->id), std::string(task->mlperf)});
  }
  return table;
}

std::string EstimateText(const Estimate& estimate) {
  return fmt::format("{:.3f} [{:.3f}, {:.3f}]", estimate.value, estimate.low, estimate.high);
}

Table AgreementTable(const SubsetRanking& ranking) {
  Table table{.key = "agreement",
              .title = "Agreement with the ranking by all tasks",
              .columns = {{"subset", "ranked by"},
                          {"tau", "tau [95 %]"},
                          {"recalled_hours", "hours (recalled)", Unit::kNumber},
                          {"saved", "saved", Unit::kShare},
                          {"tasks", "tasks"}},
              .rows = {}};
  for (const SubsetRanking::Row& row : ranking.rows) {
    table.rows.push_back({row.name, row.tau ? Cell(EstimateText(*row.tau)) : Cell(),
                          ToCell(row.recalled_hours), ToCell(row.saved),
                          row.why.empty() ? IdList(row.tasks) : row.why});
  }
  return table;
}

// The figures of AgreementTable for a chart.
Table TauTable(const SubsetRanking& ranking) {
  Table table{.key = "tau",
              .title = "Tau",
              .columns = {{"subset", "ranked by"},
                          {"value", "tau", Unit::kNumber},
                          {"low", "at least", Unit::kNumber},
                          {"high", "at most", Unit::kNumber}},
              .rows = {}};
  for (const SubsetRanking::Row& row : ranking.rows) {
    if (row.tau) table.rows.push_back({row.name, row.tau->value, row.tau->low, row.tau->high});
  }
  return table;
}

// Without an interval if each task has one run.
std::string SystemSpeedText(const Estimate& speed) {
  return speed.low == speed.high ? fmt::format("{:.3f}", speed.value) : EstimateText(speed);
}

int64_t RankIn(const std::vector<double>& speeds, size_t system) {
  int64_t rank = 1;
  for (const double other : speeds) rank += other > speeds[system] ? 1 : 0;
  return rank;
}

Table SystemRankTable(const SubsetRanking& ranking) {
  Table table{.key = "systems",
              .title = "Systems",
              .columns = {{"system", "system"},
                          {"rank", "rank by all", Unit::kCount},
                          {"speed", "speed [95 %]"},
                          {"subset_rank", "rank by the subset", Unit::kCount},
                          {"subset_speed", "speed", Unit::kNumber},
                          {"noise", "noise", Unit::kShare}},
              .rows = {}};
  for (size_t i = 0; i < ranking.by_all.systems.size(); ++i) {
    const Ranking::SystemRow& row = ranking.by_all.systems[i];
    const bool known = !ranking.speeds.empty();
    table.rows.push_back({row.system, row.rank,
                          row.speed ? Cell(SystemSpeedText(*row.speed)) : Cell(),
                          known ? Cell(RankIn(ranking.speeds, i)) : Cell(),
                          known ? Cell(ranking.speeds[i]) : Cell(), ToCell(row.noise)});
  }
  return table;
}

// Returns the notes on the choice, then those on the ranking.
std::vector<std::string> NotesOf(const Subset& subset,
                                 const std::optional<SubsetRanking>& ranking) {
  std::vector<std::string> notes;
  if (!subset.missing.empty()) {
    notes.push_back("not characterized: " + IdList(subset.missing));
  }
  notes.insert(notes.end(), subset.notes.begin(), subset.notes.end());
  size_t coarse = 0;
  std::vector<const TaskFacts*> left_out;
  for (const Subset::Task& task : subset.tasks) {
    coarse += task.repeatability.coarse.value_or(false) ? 1 : 0;
    if (task.repeatability.left_out != 0) left_out.push_back(task.facts);
  }
  if (!left_out.empty()) {
    notes.push_back("runs with other intervals between evaluations left out: " + IdList(left_out));
  }
  if (coarse != 0 && subset.options.purpose == SubsetOptions::Purpose::kRanking) {
    notes.push_back(
        fmt::format("evaluations: too rare for {} of {} tasks: more than {} standard "
                    "deviations apart, so that their variation is partly rounding",
                    coarse, subset.tasks.size(), kMostRounding));
  }
  for (const TaskSet& set : subset.sets) {
    if (set.no_hours.empty()) continue;
    notes.push_back(fmt::format("cost of {}: the hours of {} are not recalled", SetName(set),
                                IdList(set.no_hours)));
  }
  notes.push_back(
      fmt::format("saved: of the {:.4g} recalled hours of all tasks whose hours are known",
                  RecalledHoursOfSuite()));
  notes.emplace_back(kRecalledNote);
  if (ranking) notes.insert(notes.end(), ranking->notes.begin(), ranking->notes.end());
  return notes;
}

std::string Headline(const Subset& subset) {
  return fmt::format("subset for {}: {}", Name(subset.options.purpose), IdList(subset.picked()));
}

// Returns what the other space would choose: "t-SNE with 3 clusters: …".
std::string OtherSpaceText(const Subset& subset) {
  const bool pca = subset.options.space == SubsetOptions::Space::kPca;
  const TaskClusters& other = pca ? subset.by_t_sne : subset.by_pca;
  std::vector<const TaskFacts*> tasks;
  for (const size_t task : other.picked) tasks.push_back(subset.tasks[task].facts);
  return fmt::format("in {} ({} clusters): {}", pca ? "t-SNE" : "principal components", other.count,
                     IdList(tasks));
}

ordered_json IdsJson(const std::vector<const TaskFacts*>& tasks) {
  ordered_json ids = ordered_json::array();
  for (const TaskFacts* task : tasks) ids.push_back(task->id);
  return ids;
}

ordered_json FiniteJson(std::optional<double> value) {
  return value && std::isfinite(*value) ? ordered_json(*value) : ordered_json();
}

ordered_json CoordinatesJson(const std::vector<double>& values) {
  return values.empty() ? ordered_json() : ordered_json(values);
}

ordered_json ClustersJson(const Subset& subset, const TaskClusters& clusters) {
  ordered_json silhouettes = ordered_json::array();
  for (const auto& [count, mean] : clusters.silhouettes) {
    silhouettes.push_back({{"clusters", count}, {"mean", mean}});
  }
  ordered_json labels = ordered_json::object();
  for (size_t i = 0; i < subset.tasks.size(); ++i) {
    if (subset.tasks[i].candidate)
      labels[std::string(subset.tasks[i].facts->id)] = *clusters.labels[i];
  }
  std::vector<const TaskFacts*> picked;
  for (const size_t task : clusters.picked) picked.push_back(subset.tasks[task].facts);
  return {{"clusters", clusters.count},
          {"inertia", clusters.inertia},
          {"silhouettes", silhouettes},
          {"labels", labels},
          {"picked", IdsJson(picked)}};
}

ordered_json SubsetTaskJson(const Subset& subset, size_t number) {
  const Subset::Task& task = subset.tasks[number];
  const Repeatability& found = task.repeatability;
  const auto part = [&](double Variation::*member) {
    return found.variation ? FiniteJson((*found.variation).*member) : ordered_json();
  };
  ordered_json factors;
  for (size_t i = 0; i < task.factors.size(); ++i) factors[subset.factors[i].key] = task.factors[i];
  return {{"id", task.facts->id},
          {"aibench", task.facts->aibench},
          {"picked", task.picked},
          {"candidate", task.candidate},
          {"why", task.why},
          {"epochs", found.epochs},
          {"missed", found.missed},
          {"calibrated", found.calibrated},
          {"left_out", found.left_out},
          {"variation", part(&Variation::coefficient)},
          {"variation_low", part(&Variation::low)},
          {"variation_high", part(&Variation::high)},
          {"repeatable", Name(found.verdict)},
          {"evaluate_every", OrNull(found.evaluate_every)},
          {"most_evaluate_every", OrNull(found.MostSteps())},
          {"coarse_evaluations", OrNull(found.coarse)},
          {"recalled_variation", OrNull(task.facts->recalled_variation)},
          {"accepted_metric", task.facts->accepted_metric},
          {"recalled_hours", OrNull(task.facts->recalled_hours)},
          {"cluster", OrNull(subset.clusters().labels[number])},
          {"distance", OrNull(subset.clusters().distances[number])},
          {"factors", factors},
          {"z_scores", CoordinatesJson(task.z_scores)},
          {"pca", CoordinatesJson(task.pca)},
          {"t_sne", CoordinatesJson(task.t_sne)}};
}

ordered_json SetJson(const Subset& subset, const TaskSet& set) {
  ordered_json ranges = ordered_json::array();
  for (size_t i = 0; i < set.ranges.size(); ++i) {
    ranges.push_back({{"factor", subset.factors[i].key},
                      {"low", set.ranges[i].low},
                      {"high", set.ranges[i].high},
                      {"share", set.ranges[i].share}});
  }
  return {{"name", set.name},
          {"source", set.source.empty() ? ordered_json() : ordered_json(set.source)},
          {"tasks", IdsJson(set.tasks)},
          {"placed", set.placed},
          {"recalled_hours", OrNull(set.recalled_hours)},
          {"saved", OrNull(set.saved)},
          {"box", OrNull(set.box)},
          {"area", OrNull(set.area)},
          {"ranges", ranges}};
}

ordered_json EstimateJson(const std::optional<Estimate>& estimate) {
  if (!estimate) return nullptr;
  return {{"value", estimate->value}, {"low", estimate->low}, {"high", estimate->high}};
}

ordered_json RankingJson(const SubsetRanking& ranking) {
  ordered_json systems = ordered_json::array();
  for (size_t i = 0; i < ranking.by_all.systems.size(); ++i) {
    const Ranking::SystemRow& row = ranking.by_all.systems[i];
    const bool known = !ranking.speeds.empty();
    systems.push_back(
        {{"system", row.system},
         {"rank", row.rank},
         {"speed", EstimateJson(row.speed)},
         {"subset_rank", known ? ordered_json(RankIn(ranking.speeds, i)) : ordered_json()},
         {"subset_speed", known ? ordered_json(ranking.speeds[i]) : ordered_json()},
         {"noise", OrNull(row.noise)}});
  }
  ordered_json rows = ordered_json::array();
  for (const SubsetRanking::Row& row : ranking.rows) {
    rows.push_back({{"name", row.name},
                    {"tasks", IdsJson(row.tasks)},
                    {"tau", EstimateJson(row.tau)},
                    {"why", row.why.empty() ? ordered_json() : ordered_json(row.why)},
                    {"recalled_hours", OrNull(row.recalled_hours)},
                    {"saved", OrNull(row.saved)}});
  }
  return {{"tasks", ranking.by_all.tasks},
          {"systems", systems},
          {"agreement", rows},
          {"subsets", ranking.subsets},
          {"all_subsets", ranking.every}};
}

}  // namespace

std::string ToText(const Subset& subset, const std::optional<SubsetRanking>& ranking) {
  std::string text = Headline(subset) + "\n" + OtherSpaceText(subset) + "\n";
  if (subset.options.purpose == SubsetOptions::Purpose::kRanking) {
    text += etude::ToText(RepeatabilityTable(subset));
  }
  text += etude::ToText(ChoiceTable(subset)) + etude::ToText(SilhouetteTable(subset)) +
          etude::ToText(SetTable(subset)) + etude::ToText(CoverageTable(subset)) +
          etude::ToText(MlPerfTable());
  if (ranking) {
    text += etude::ToText(SystemRankTable(*ranking)) + etude::ToText(AgreementTable(*ranking));
  }
  for (const std::string& note : NotesOf(subset, ranking)) text += "note: " + note + "\n";
  return text;
}

ordered_json ToJson(const Subset& subset, const std::optional<SubsetRanking>& ranking) {
  ordered_json tasks = ordered_json::array();
  for (size_t i = 0; i < subset.tasks.size(); ++i) tasks.push_back(SubsetTaskJson(subset, i));
  ordered_json factors = ordered_json::array();
  for (const Factor& factor : subset.factors) {
    factors.push_back({{"key", factor.key}, {"title", factor.title}});
  }
  ordered_json sets = ordered_json::array();
  for (const TaskSet& set : subset.sets) sets.push_back(SetJson(subset, set));
  ordered_json mlperf = ordered_json::array();
  for (const TaskFacts* task : MlPerfLikeTasks()) {
    mlperf.push_back({{"id", task->id}, {"benchmarks", task->mlperf}});
  }
  ordered_json pca = {{"variances", subset.components.variances},
                      {"axes", subset.components.axes},
                      {"kept", subset.kept_components}};
  pca.update(ClustersJson(subset, subset.by_pca));
  ordered_json t_sne = {{"perplexity", subset.perplexity}, {"divergence", subset.divergence}};
  t_sne.update(ClustersJson(subset, subset.by_t_sne));
  return {{"format", "etude-suite-subset"},
          {"version", 1},
          {"for", Name(subset.options.purpose)},
          {"space", Name(subset.options.space)},
          {"scale", subset.scale},
          {"most_variation", subset.options.most_variation},
          {"picked", IdsJson(subset.picked())},
          {"tasks", std::move(tasks)},
          {"missing", IdsJson(subset.missing)},
          {"factors", std::move(factors)},
          {"pca", std::move(pca)},
          {"t_sne", std::move(t_sne)},
          {"subsets", std::move(sets)},
          {"mlperf", std::move(mlperf)},
          {"ranking", ranking ? RankingJson(*ranking) : ordered_json()},
          {"notes", NotesOf(subset, ranking)}};
}

Page MakeSubsetPage(const Subset& subset, const std::optional<SubsetRanking>& ranking,
                    const std::vector<std::string>& inputs) {
  Page page{.title = fmt::format("Etude suite: subset for {}", Name(subset.options.purpose)),
            .inputs = inputs};
  Page::Section choice{.key = "choice",
                       .title = "Choice",
                       .about =
                           "One task for each cluster of similar tasks: of the half nearest to "
                           "the centre of the cluster, the cheapest.",
                       .notes = NotesOf(subset, std::nullopt)};
  choice.notes.insert(choice.notes.begin(), {Headline(subset), OtherSpaceText(subset)});
  Table map = MapTable(subset);
  choice.charts.push_back(Scatter(map, {.title = "Principal components of the factors",
                                        .names = {"task"},
                                        .over = "pc1",
                                        .value = "pc2",
                                        .series = "cluster"}));
  choice.charts.push_back(Scatter(map, {.title = "t-SNE of the factors",
                                        .names = {"task"},
                                        .over = "t_sne_x",
                                        .value = "t_sne_y",
                                        .series = "cluster"}));
  choice.tables = {ChoiceTable(subset), SilhouetteTable(subset), FactorTable(subset),
                   std::move(map)};
  page.sections.push_back(std::move(choice));

  Page::Section repeatability{
      .key = "repeatability",
      .title = "Repeatability",
      .about =
          "Coefficient of variation of the epochs to the target over runs with different "
          "seeds, with one-sided 95 % bounds."};
  Table variation = RepeatabilityTable(subset);
  repeatability.charts.push_back(Intervals(variation, {.title = "Variation of the epochs",
                                                       .category = "task",
                                                       .value = "variation",
                                                       .low = "low",
                                                       .high = "high",
                                                       .bar = ""}));
  repeatability.tables.push_back(std::move(variation));
  page.sections.push_back(std::move(repeatability));

  Page::Section coverage{.key = "coverage",
                         .title = "Coverage",
                         .about =
                             "Share of the factor space of all tasks that each subset covers: "
                             "the range of each factor, the box in the principal components, "
                             "and the area of the hull in the first two."};
  Table ranges = CoverageTable(subset);
  coverage.charts.push_back(Bars(ranges, {.title = "Range covered",
                                          .categories = {"factor"},
                                          .values = {"mlperf_like", "chosen", "published"}}));
  coverage.tables = {SetTable(subset), std::move(ranges), MlPerfTable()};
  page.sections.push_back(std::move(coverage));

  if (ranking) {
    Page::Section systems{.key = "systems",
                          .title = "Ranking of systems",
                          .about =
                              "Kendall's tau between the ranking of the systems by all tasks "
                              "and by each subset.",
                          .notes = ranking->notes};
    systems.charts.push_back(Intervals(TauTable(*ranking), {.title = "Tau",
                                                            .category = "subset",
                                                            .value = "value",
                                                            .low = "low",
                                                            .high = "high",
                                                            .bar = ""}));
    systems.tables = {AgreementTable(*ranking), SystemRankTable(*ranking)};
    page.sections.push_back(std::move(systems));
  }
  return page;
}

}  // namespace etude::suite
