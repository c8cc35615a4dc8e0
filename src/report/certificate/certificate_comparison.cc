#include "src/report/certificate/certificate_comparison.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/version.h"
#include "src/report/certificate/run_comparison_json.h"
#include "src/report/text/format.h"
#include "src/report/text/json_output.h"

namespace etude {
namespace {

std::string CountText(const std::optional<int64_t>& count) {
  return count ? std::to_string(*count) : "";
}

std::string VersionOf(const Certificate& certificate, const std::string& name) {
  const auto found = certificate.run.versions.find(name);
  return found == certificate.run.versions.end() ? "" : found->second;
}

// Returns the facts that distinguish machines; "" if unknown. Memory is excluded, because kernels
// reserve different amounts.
std::vector<std::pair<std::string, std::string>> MachineRows(const MachineFacts& machine) {
  return {{"processor", machine.cpu},
          {"architecture", machine.architecture},
          {"cores", CountText(machine.cores)},
          {"usable cores", CountText(machine.usable_cores)},
          {"GPUs", ToText(machine.gpus)}};
}

std::vector<std::pair<std::string, std::string>> OtherRows(const Certificate& certificate) {
  const RunComparison& run = certificate.run;
  const MachineFacts& machine = run.machine;
  return {{"memory", machine.memory_bytes ? FormatBytes({*machine.memory_bytes}) : ""},
          {"system", machine.system},
          {"governor", machine.governor},
          {"torch", VersionOf(certificate, "torch")},
          {"replay's torch", run.replay.torch},
          {"Python", VersionOf(certificate, "python")},
          {"CUDA", VersionOf(certificate, "cuda")},
          {"etude", run.etude},
          {"device", run.replay.device},
          {"threads", CountText(run.threads)},
          {"environment", VariablesText(run.environment)},
          {"gaps", run.gaps},
          {"program", ShellLine(run.command)}};
}

std::vector<std::pair<std::string, std::string>> BenchmarkRows(const Certificate& certificate) {
  return {{"benchmark", certificate.benchmark},
          {"recording", certificate.recording},
          {"rank", std::to_string(certificate.run.rank)},
          {"ranks", std::to_string(certificate.run.world_size)},
          {"step", certificate.step}};
}

class Comparer {
 public:
  explicit Comparer(CertificateComparison& comparison) : comparison_(comparison) {}

  Status Compare() {
    const Certificate &first = comparison_.first, &second = comparison_.second;
    if (ToJson(first) == ToJson(second)) {
      return BadInput(fmt::format("{}: the same certificate as {}, expected another one",
                                  comparison_.second_path, comparison_.first_path));
    }
    const bool known = !first.recording.empty() && !second.recording.empty();
    comparison_.one_benchmark =
        known && first.recording == second.recording && first.run.rank == second.run.rank;
    AddDifferences(BenchmarkRows(first), BenchmarkRows(second));
    const size_t of_benchmark = comparison_.differences.size();
    AddDifferences(MachineRows(first.run.machine), MachineRows(second.run.machine));
    if (comparison_.one_benchmark) {
      CompareMachines();
    } else if (const auto* other = OtherMachine(of_benchmark)) {
      return BadInput(
          fmt::format("{} and {}: found different benchmarks ({}, {}) on different machines ({}: "
                      "{}, {}); expected the same benchmark or the same machine",
                      comparison_.first_path, comparison_.second_path, NameOf(first),
                      NameOf(second), other->what, other->first, other->second));
    } else if (!known) {
      comparison_.notes.emplace_back(
          "it is unknown whether both are of the same recording; treated as two benchmarks");
    }
    AddDifferences(OtherRows(first), OtherRows(second));
    return {};
  }

 private:
  static std::string NameOf(const Certificate& certificate) {
    return fmt::format("{} rank {}, recording {}", certificate.benchmark, certificate.run.rank,
                       certificate.recording.empty() ? "unknown" : certificate.recording);
  }

  void AddDifferences(const std::vector<std::pair<std::string, std::string>>& first,
                      const std::vector<std::pair<std::string, std::string>>& second) {
    const auto known = [](const std::string& text) { return text.empty() ? "unknown" : text; };
    for (size_t i = 0; i < first.size(); ++i) {
      if (first[i].second == second[i].second) continue;
      comparison_.differences.push_back(
          {first[i].first, known(first[i].second), known(second[i].second)});
    }
  }

  // Returns a difference between the machines for which both sides are known.
  const CertificateComparison::Difference* OtherMachine(size_t from) const {
    for (size_t i = from; i < comparison_.differences.size(); ++i) {
      const auto& row = comparison_.differences[i];
      if (row.first != "unknown" && row.second != "unknown") return &row;
    }
    return nullptr;
  }

  void CompareMachines() {
    const RunComparison &first = comparison_.first.run, &second = comparison_.second.run;
    for (const MetricComparison& row : first.metrics) {
      const auto other = std::ranges::find(second.metrics, row.metric, &MetricComparison::metric);
      if (other == second.metrics.end()) continue;
      comparison_.ratios.push_back(CompareMetric(row, *other));
    }
    if (first.gaps != second.gaps) {
      comparison_.notes.emplace_back(
          "only one of the replays includes the program's gaps, so they are not comparable");
    }
  }

  MetricComparison CompareMetric(const MetricComparison& first, const MetricComparison& second) {
    MetricComparison ratio{.metric = first.metric, .bar = BarOf(first, second)};
    if (!first.figures || !second.figures) {
      ratio.reason = !first.figures ? first.reason : second.reason;
      return ratio;
    }
    ratio.figures = CompareRatios(PairsByStart(comparison_.first.run, first.metric),
                                  PairsByStart(comparison_.second.run, first.metric),
                                  comparison_.first.run.seed);
    if (ratio.bar) ratio.verdict = Judge(*ratio.figures, *ratio.bar);
    return ratio;
  }

  // Returns the narrower bar.
  std::optional<double> BarOf(const MetricComparison& first, const MetricComparison& second) {
    if (first.bar == second.bar) return first.bar;
    const double bar = std::min(first.bar.value_or(INFINITY), second.bar.value_or(INFINITY));
    comparison_.notes.push_back(
        fmt::format("the bars of {} differ; the stricter one is used", InfoOf(first.metric).title));
    return bar;
  }

  CertificateComparison& comparison_;
};

std::string DifferencesText(const CertificateComparison& comparison) {
  using enum TextTable::Align;
  if (comparison.differences.empty()) return "same machine and software\n";
  TextTable table({kLeft, kLeft, kLeft});
  table.Row({"differences", "first", "second"});
  for (const auto& row : comparison.differences) table.Row({row.what, row.first, row.second});
  return table.Text();
}

std::string BarText(const MetricComparison& row) {
  return row.bar ? "±" + FormatShare(*row.bar) : "";
}

std::string VerdictName(const MetricComparison& row) {
  return row.verdict ? std::string(Name(*row.verdict)) : "";
}

std::string RatiosText(const CertificateComparison& comparison) {
  using enum TextTable::Align;
  TextTable table({kLeft, kRight, kRight, kRight, kRight, kLeft});
  table.Row({"", "original, second over first [95 %]", "replay [95 %]", "error [95 %]", "bar",
             "verdict"});
  for (const MetricComparison& row : comparison.ratios) {
    if (!row.figures) continue;
    table.Row({std::string(InfoOf(row.metric).title),
               EstimateText(row.figures->original, RatioText),
               EstimateText(row.figures->replay, RatioText),
               EstimateText(row.figures->error, PercentText), BarText(row), VerdictName(row)});
  }
  return "does the replay predict the original's speedup?\n" + table.Text() +
         AbsentText(comparison.ratios) + VerdictText(comparison.ratios);
}

std::string SideBySideText(const CertificateComparison& comparison) {
  using enum TextTable::Align;
  TextTable table({kLeft, kRight, kRight, kRight, kLeft});
  table.Row({"", "original [95 %]", "replay [95 %]", "error [95 %]", "verdict"});
  const auto add = [&](const std::string& name, const MetricComparison& row) {
    if (!row.figures) {
      table.Row({name, "not available"});
      return;
    }
    const auto figure = [&](double value) { return FigureText(value, InfoOf(row.metric).unit); };
    table.Row({name, EstimateText(row.figures->original, figure),
               EstimateText(row.figures->replay, figure),
               EstimateText(row.figures->error, PercentText), VerdictName(row)});
  };
  for (const MetricComparison& row : comparison.first.run.metrics) {
    const auto& others = comparison.second.run.metrics;
    const auto other = std::ranges::find(others, row.metric, &MetricComparison::metric);
    if (other == others.end() || (!row.figures && !other->figures)) continue;
    table.Row({std::string(InfoOf(row.metric).title)});
    add("  first", row);
    add("  second", *other);
  }
  return table.Text() + "first: " + VerdictText(comparison.first.run.metrics) +
         "second: " + VerdictText(comparison.second.run.metrics);
}

}  // namespace

Result<CertificateComparison> CompareCertificates(const std::string& first_path, Certificate first,
                                                  const std::string& second_path,
                                                  Certificate second) {
  CertificateComparison comparison{.first_path = first_path,
                                   .second_path = second_path,
                                   .first = std::move(first),
                                   .second = std::move(second)};
  ETUDE_RETURN_IF_ERROR(Comparer(comparison).Compare());
  return comparison;
}

std::string RatioText(double ratio) {
  return std::isfinite(ratio) ? fmt::format("×{:.3f}", ratio) : "∞";
}

nlohmann::ordered_json ToJson(const CertificateComparison& comparison) {
  nlohmann::ordered_json json = {
      {"format", "etude-certificate-comparison"},
      {"version", 1},
      {"etude", kVersion},
      {"one_benchmark", comparison.one_benchmark},
      {"all_met", comparison.one_benchmark ? nlohmann::ordered_json(AllMet(comparison.ratios))
                                           : nlohmann::ordered_json(nullptr)}};
  json["differences"] = nlohmann::ordered_json::array();
  for (const auto& row : comparison.differences) {
    json["differences"].push_back(
        {{"what", row.what}, {"first", row.first}, {"second", row.second}});
  }
  json["notes"] = comparison.notes;
  json["ratios"] = nlohmann::ordered_json::array();
  for (const MetricComparison& row : comparison.ratios) {
    nlohmann::ordered_json ratio = ToJson(row);
    ratio.erase("unit");
    if (row.figures) {
      ratio["original"] = ToJson(row.figures->original, "ratio");
      ratio["replay"] = ToJson(row.figures->replay, "ratio");
    }
    json["ratios"].push_back(std::move(ratio));
  }
  json["first"] = ToJson(comparison.first);
  json["second"] = ToJson(comparison.second);
  return json;
}

std::string ToText(const CertificateComparison& comparison) {
  std::string text = fmt::format(
      "{}: {} and {}\n",
      comparison.one_benchmark ? "one benchmark, measured twice" : "two benchmarks on one machine",
      comparison.first_path, comparison.second_path);
  text += DifferencesText(comparison);
  for (const std::string& note : comparison.notes) text += "note: " + note + "\n";
  return text + (comparison.one_benchmark ? RatiosText(comparison) : SideBySideText(comparison));
}

}  // namespace etude
