#include "src/report/certificate/certificate_page.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace etude {
namespace {

constexpr std::string_view kAboutErrors =
    "Error: median of the replay divided by median of the original, minus 1, with its 95 % "
    "interval. A bar is met if the whole interval lies within it, missed if the whole interval "
    "lies outside, and otherwise undetermined.";

Cell FigureCell(const std::optional<double>& value) {
  if (!value || !std::isfinite(*value) || std::abs(*value) > 9e18) return {};
  return static_cast<int64_t>(std::llround(*value));
}

// Returns a two-column table with a row per fact.
Table FactTable(const Certificate& certificate) {
  Table table{.key = "subject",
              .title = "benchmark, machine and software",
              .columns = {{"what", "what", Unit::kText}, {"value", "value", Unit::kText}},
              .rows = {}};
  for (auto& [name, text] : FactsOf(certificate)) table.rows.push_back({name, text});
  return table;
}

Table PairTable(const RunComparison& run) {
  Table table{.key = "pairs",
              .title = "times of the pairs",
              .columns = {{"pair", "pair", Unit::kCount},
                          {"start", "start", Unit::kCount},
                          {"first", "ran first", Unit::kText},
                          {"original_cpu_ns", "original", Unit::kTime},
                          {"replay_cpu_ns", "replay", Unit::kTime},
                          {"original_wall_ns", "original, wall", Unit::kTime},
                          {"replay_wall_ns", "replay, wall", Unit::kTime}},
              .rows = {}};
  using enum StepMetric;
  for (size_t i = 0; i < run.pairs.size(); ++i) {
    const StepPair& pair = run.pairs[i];
    table.rows.push_back({CountCell(i + 1), CountCell(pair.start + 1),
                          std::string(pair.original_first ? "original" : "replay"),
                          FigureCell(pair.original[kCpuTime]), FigureCell(pair.replay[kCpuTime]),
                          FigureCell(pair.original[kWallTime]),
                          FigureCell(pair.replay[kWallTime])});
  }
  return table;
}

// Series are named after their side, which has the same color on every page.
Chart PairChart(const Table& pairs, const std::string& clock, const std::string& title) {
  Chart chart = Points(
      pairs, {.title = title, .over = "pair", .values = {"original_" + clock, "replay_" + clock}});
  for (Chart::Series& series : chart.series)
    series.name = series.name.substr(0, series.name.find(','));
  return chart;
}

Chart ErrorChart(const Table& table, const std::string& title) {
  return Intervals(table, {.title = title,
                           .category = "metric",
                           .value = "error",
                           .low = "error_low",
                           .high = "error_high",
                           .bar = "bar"});
}

// Returns the number of met bars: "3 of 4".
Page::Fact BarFact(const std::string& name, std::span<const MetricComparison> metrics) {
  int64_t bars = 0, met = 0;
  for (const MetricComparison& metric : metrics) {
    bars += metric.verdict ? 1 : 0;
    met += metric.verdict == BarVerdict::kMet ? 1 : 0;
  }
  return {name, fmt::format("{} of {}", met, bars), Unit::kText};
}

void AddKinds(const RunComparison& run, Page::Section& section) {
  Table kinds{.key = "step_kinds",
              .title = "kinds of recorded steps",
              .columns = {{"step", "step", Unit::kCount},
                          {"steps", "stands for steps", Unit::kCount},
                          {"time_share", "of the time", Unit::kShare},
                          {"replayed", "compared", Unit::kText}},
              .rows = {}};
  for (const ReplayFacts::Kind& kind : run.replay.kinds) {
    kinds.rows.push_back({kind.step, kind.steps, ToCell(kind.time_share),
                          std::string(kind.replayed ? "yes" : "no")});
  }
  Table skipped{.key = "skipped",
                .title = "operators that were not replayed",
                .columns = {{"op", "operator", Unit::kText},
                            {"count", "count", Unit::kCount},
                            {"reason", "reason", Unit::kText}},
                .rows = {}};
  for (const ReplayFacts::Skipped& row : run.replay.skipped) {
    skipped.rows.push_back({row.op, row.count, row.reason});
  }
  section.tables.push_back(std::move(kinds));
  section.tables.push_back(std::move(skipped));
}

void AddNotes(const RunComparison& run, Page::Section& section) {
  section.notes = {NoiseText(run.noise)};
  section.notes.insert(section.notes.end(), run.notes.begin(), run.notes.end());
  if (!run.ended.empty()) section.notes.push_back(run.ended);
  for (const MetricComparison& metric : run.metrics) {
    if (metric.figures) continue;
    section.notes.push_back(
        fmt::format("{}: not available ({})", InfoOf(metric.metric).title, metric.reason));
  }
}

// Adds the sections of one certificate. Keys and titles of a second certificate have a prefix.
void AddSections(const Certificate& certificate, const std::string& key, const std::string& title,
                 Page& page) {
  const RunComparison& run = certificate.run;
  page.sections.push_back({.key = key + "subject",
                           .title = title + "What was compared",
                           .tables = {FactTable(certificate)}});
  Page::Section overview{.key = key + "certificate",
                         .title = title + "Original and replay",
                         .about = std::string(kAboutErrors)};
  overview.facts = {
      BarFact("bars met", run.metrics),
      {"pairs of steps", CountCell(run.pairs.size()), Unit::kCount},
      {"operators replayed",
       run.replay.operators == 0 ? Cell()
                                 : Cell(static_cast<double>(run.replay.operators_replayed) /
                                        static_cast<double>(run.replay.operators)),
       Unit::kShare},
      {"same kernels", ToCell(run.replay.same_kernels), Unit::kShare},
      {"share of the program's steps",
       certificate.steps_seen == 0 ? Cell()
                                   : Cell(static_cast<double>(certificate.steps_alike) /
                                          static_cast<double>(certificate.steps_seen)),
       Unit::kShare}};
  Table compared = RunComparisonTable({run});
  overview.charts.push_back(ErrorChart(compared, "errors and their bars"));
  overview.tables.push_back(std::move(compared));
  AddKinds(run, overview);
  AddNotes(run, overview);
  page.sections.push_back(std::move(overview));

  Page::Section pairs{
      .key = key + "pairs",
      .title = title + "Pairs",
      .about = "Each pair is one step of the original and one step of the replay, run alternately.",
      .tables = {PairTable(run)}};
  pairs.charts = {PairChart(pairs.tables[0], "cpu_ns", "CPU time of a step, by pair"),
                  PairChart(pairs.tables[0], "wall_ns", "wall time of a step, by pair")};
  page.sections.push_back(std::move(pairs));
}

void AddMethod(Page& page) {
  page.remarks.push_back(
      {"Method",
       "Original and replay run alternately, step by step, so that both see the same machine "
       "conditions. Medians and errors have 95 % intervals from a bootstrap over starts and pairs "
       "(docs/models/paired_comparison.md).\nOne benchmark measured twice: ratios are the medians "
       "of the second measurement divided by those of the first; the error is the replay's ratio "
       "divided by the original's ratio, minus 1; each measurement is resampled separately.\nSame "
       "kernels: share of the innermost recorded operators that ran with the same dtypes, sizes "
       "and strides.\nUnknown figures are shown as –. `etude compare --certificate` prints the "
       "same figures from the certificate."});
}

Table RatioTable(const CertificateComparison& comparison) {
  Table table{.key = "ratios",
              .title = "second over first, with 95 % intervals",
              .columns = WithFigures({{"metric", "metric", Unit::kText}}),
              .rows = {}};
  for (const MetricComparison& row : comparison.ratios) {
    if (!row.figures) continue;
    std::vector<Cell> cells = {std::string(InfoOf(row.metric).title)};
    AddFigures(row, 1, cells);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

Table DifferenceTable(const CertificateComparison& comparison) {
  Table table{.key = "differences",
              .title = "differences",
              .columns = {{"what", "what", Unit::kText},
                          {"first", "first", Unit::kText},
                          {"second", "second", Unit::kText}},
              .rows = {}};
  for (const auto& row : comparison.differences) {
    table.rows.push_back({row.what, row.first, row.second});
  }
  return table;
}

}  // namespace

Page MakeCertificatePage(const Certificate& certificate) {
  Page page;
  page.title = "Fidelity certificate: " + certificate.benchmark;
  AddSections(certificate, "", "", page);
  AddMethod(page);
  return page;
}

Page MakeCertificatePage(const CertificateComparison& comparison) {
  Page page;
  page.inputs = {comparison.first_path, comparison.second_path};
  Page::Section section{
      .key = "comparison", .title = "First and second", .notes = comparison.notes};
  if (comparison.one_benchmark) {
    page.title = "One benchmark, measured twice: " + comparison.first.benchmark;
    section.about =
        "Ratio of the second median to the first, for the original and for its replay. A benchmark "
        "represents its original if both ratios are equal.";
    section.facts = {BarFact("bars met", comparison.ratios)};
    Table ratios = RatioTable(comparison);
    section.charts = {Bars(ratios, {.title = "second over first",
                                    .categories = {"metric"},
                                    .values = {"original", "replay"}}),
                      ErrorChart(ratios, "error of the replay's ratio, and its bar")};
    section.tables.push_back(std::move(ratios));
  } else {
    page.title = fmt::format("Two benchmarks on one machine: {} and {}", comparison.first.benchmark,
                             comparison.second.benchmark);
    section.facts = {BarFact("bars met, first", comparison.first.run.metrics),
                     BarFact("bars met, second", comparison.second.run.metrics)};
  }
  section.tables.push_back(DifferenceTable(comparison));
  page.sections.push_back(std::move(section));
  AddSections(comparison.first, "first_", "First: ", page);
  AddSections(comparison.second, "second_", "Second: ", page);
  AddMethod(page);
  return page;
}

}  // namespace etude
