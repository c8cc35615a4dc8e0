#include "src/report/certificate/certificate.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/text/ascii.h"
#include "src/base/text/printable.h"
#include "src/base/version.h"
#include "src/formats/json/json_document.h"
#include "src/report/certificate/run_comparison_json.h"
#include "src/report/text/format.h"
#include "src/report/text/json_output.h"

namespace etude {
namespace {

constexpr DocumentKind kCertificateDocument = {.name = "a certificate of etude compare",
                                               .format = "etude-certificate"};

nlohmann::ordered_json OrUnknown(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
}

Certificate FromJson(const std::string& path, const nlohmann::json& json, Status& status) {
  const JsonMembers members(path + ": certificate", json, status);
  const JsonMembers benchmark = members.Object("benchmark");
  if (!members.Has("comparison")) members.Refuse("comparison", "an object");
  const auto count = [&](const char* key) {
    return static_cast<uint64_t>(benchmark.Whole(key, 0).value_or(0));
  };
  return {.benchmark = benchmark.Text("name").value_or(""),
          .recording = benchmark.Text("recording").value_or(""),
          .step = benchmark.Text("step").value_or(""),
          .steps_seen = count("steps_seen"),
          .steps_alike = count("steps_alike"),
          .again = members.Text("again").value_or(""),
          .run = ParseRunComparison(members.Object("comparison"))};
}

// Returns whether a character starts or ends a path in a text.
bool BoundsPath(char c) {
  constexpr std::string_view kBounds = " \t\n=,:;@'\"()[]{}<>|&";
  return kBounds.find(c) != std::string_view::npos;
}

// Returns whether an absolute path begins at `i`: after a boundary, or an option such as -I.
bool BeginsPath(std::string_view text, size_t i) {
  if (text[i] != '/' && text[i] != '~') return false;
  if (i == 0 || BoundsPath(text[i - 1])) return true;
  return i >= 2 && text[i - 2] == '-' && (i == 2 || BoundsPath(text[i - 3]));
}

std::string VersionsText(const RunComparison& run) {
  std::vector<std::string> parts = {
      fmt::format("etude {}", run.etude.empty() ? kVersion : std::string_view(run.etude))};
  for (const auto& [name, version] : run.versions) {
    if (name != "etude") parts.push_back(name + " " + version);
  }
  // libtorch omits the build of its version: "2.9" for "2.9+cpu".
  const auto torch = run.versions.find("torch");
  const bool same =
      torch != run.versions.end() && torch->second.substr(0, torch->second.find('+')) ==
                                         run.replay.torch.substr(0, run.replay.torch.find('+'));
  if (!run.replay.torch.empty() && !same) parts.push_back("replay's torch " + run.replay.torch);
  if (run.threads) {
    parts.push_back(FormatCount(static_cast<uint64_t>(*run.threads), "thread"));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string CountedShare(uint64_t part, uint64_t whole) {
  return fmt::format("{} of {} ({})", FormatCount(part), FormatCount(whole),
                     FormatShare(static_cast<double>(part) / static_cast<double>(whole)));
}

// Describes the program's steps that the compared step represents.
std::string StandsForText(const Certificate& certificate) {
  std::string text = certificate.steps_seen == 0
                         ? "steps of the program: unknown"
                         : "steps of the program: " +
                               CountedShare(certificate.steps_alike, certificate.steps_seen);
  const auto& kinds = certificate.run.replay.kinds;
  uint64_t recorded = 0;
  for (const ReplayFacts::Kind& kind : kinds) recorded += static_cast<uint64_t>(kind.steps);
  const auto replayed = std::ranges::find_if(kinds, &ReplayFacts::Kind::replayed);
  if (replayed == kinds.end() || recorded == 0) return text;
  text += "; recorded steps: " + CountedShare(static_cast<uint64_t>(replayed->steps), recorded);
  if (replayed->time_share) text += ", of their time " + FormatShare(*replayed->time_share);
  return text;
}

std::string MeasuredText(const RunComparison& run) {
  return fmt::format("{} of {} pairs, {}, gaps {}{}", run.pairs.size(), run.pairs_wanted,
                     FormatCount(static_cast<uint64_t>(run.starts), "start"),
                     run.gaps.empty() ? "unknown" : run.gaps,
                     run.measured.empty() ? "" : ", " + run.measured);
}

std::string CoverageText(const ReplayFacts& replay) {
  const auto share = [](const std::optional<double>& part) {
    return part ? FormatShare(*part) : "unknown";
  };
  if (replay.operators == 0) return "unknown";
  std::string text =
      fmt::format("{} of {} operators, by time {}; same kernels {}, by time {}",
                  replay.operators_replayed, replay.operators, share(replay.time_coverage),
                  share(replay.same_kernels), share(replay.same_kernels_by_time));
  for (const ReplayFacts::Skipped& row : replay.skipped) {
    text += fmt::format("; skipped {} × {}: {}", row.count, row.op, row.reason);
  }
  return text;
}

}  // namespace

std::string WithoutFolders(std::string_view text) {
  std::string shown;
  size_t i = 0;
  while (i < text.size()) {
    if (!BeginsPath(text, i)) {
      shown += text[i++];
      continue;
    }
    size_t end = i;
    while (end < text.size() && !BoundsPath(text[end])) ++end;
    std::string_view path = text.substr(i, end - i);
    while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
    const size_t slash = path.rfind('/');
    if (slash == std::string_view::npos || slash + 1 == path.size()) {
      shown += path;
    } else {
      shown += "…/";
      shown += path.substr(slash + 1);
    }
    i = end;
  }
  return shown;
}

Certificate WithoutFolders(Certificate certificate) {
  const auto clean = [](std::string& text) { text = WithoutFolders(text); };
  clean(certificate.again);
  clean(certificate.run.ended);
  std::ranges::for_each(certificate.run.command, clean);
  std::ranges::for_each(certificate.run.notes, clean);
  for (ReplayFacts::Skipped& row : certificate.run.replay.skipped) clean(row.reason);
  for (MetricComparison& metric : certificate.run.metrics) clean(metric.reason);
  if (auto& variables = certificate.run.environment) {
    for (auto& [name, value] : *variables) clean(value);
  }
  return certificate;
}

std::string VariablesText(const std::optional<NamedTexts>& variables) {
  if (!variables) return "";
  if (variables->empty()) return "none";
  std::vector<std::string> words;
  for (const auto& [name, value] : *variables) words.push_back(name + "=" + value);
  return fmt::format("{}", fmt::join(words, " "));
}

std::string ShellLine(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    constexpr std::string_view kPlain = "-+=%@:,./…";
    const bool plain =
        !word.empty() && word.front() != '=' && std::ranges::all_of(word, [&](char c) {
          return IsWord(c) || kPlain.find(c) != std::string_view::npos;
        });
    line += plain ? word : ShellQuoted(word);
  }
  return line;
}

nlohmann::ordered_json ToJson(const Certificate& certificate) {
  return {{"format", kCertificateDocument.format},
          {"version", kCertificateDocument.version},
          {"benchmark",
           {{"name", certificate.benchmark},
            {"recording", OrUnknown(certificate.recording)},
            {"step", OrUnknown(certificate.step)},
            {"steps_seen", certificate.steps_seen},
            {"steps_alike", certificate.steps_alike}}},
          {"again", certificate.again},
          {"comparison", ToJson(certificate.run)}};
}

Result<Certificate> ParseCertificate(const std::string& path, std::string_view text,
                                     const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const nlohmann::json json,
                         ParseDocument(path, text, kCertificateDocument, context));
  Status status;
  Certificate certificate = FromJson(path, json, status);
  ETUDE_RETURN_IF_ERROR(status);
  return certificate;
}

Result<Certificate> ReadCertificate(const std::string& path, const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const nlohmann::json json,
                         ReadDocument(path, kCertificateDocument, context));
  Status status;
  Certificate certificate = FromJson(path, json, status);
  ETUDE_RETURN_IF_ERROR(status);
  ETUDE_RETURN_IF_ERROR(CheckFigures(path, certificate.run));
  return certificate;
}

std::vector<std::pair<std::string, std::string>> FactsOf(const Certificate& certificate) {
  const RunComparison& run = certificate.run;
  const auto known = [](const std::string& text) { return text.empty() ? "unknown" : text; };
  return {{"benchmark",
           fmt::format("{}, rank {} of {}", certificate.benchmark, run.rank, run.world_size)},
          {"recording", known(certificate.recording)},
          {"step", known(certificate.step)},
          {"stands for", StandsForText(certificate)},
          {"program", known(ShellLine(run.command))},
          {"machine", ToText(run.machine)},
          {"software", VersionsText(run)},
          {"environment", known(VariablesText(run.environment))},
          {"replay", fmt::format("on {}, trace verdict: {}", known(run.replay.device),
                                 known(run.replay.trace))},
          {"coverage", CoverageText(run.replay)},
          {"measured", MeasuredText(run)},
          {"again", known(certificate.again)}};
}

std::string ToText(const Certificate& certificate) {
  TextTable facts({TextTable::Align::kLeft, TextTable::Align::kLeft});
  for (auto& [name, text] : FactsOf(certificate)) facts.Row({name, text});
  return "fidelity certificate\n" + facts.Text() + RunComparisonText(certificate.run);
}

}  // namespace etude
