#include "src/cli/app/commands.h"

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/formats/job/capture_folder.h"
#include "src/formats/job/job_folder.h"
#include "src/formats/read_trace.h"
#include "src/jobs/job_health.h"
#include "src/report/text/format.h"
#include "src/report/text/health_output.h"
#include "src/report/text/json_output.h"
#include "src/run/rank_run.h"
#include "src/trace/validator.h"
#include "src/transform/read_job.h"

namespace etude {
namespace {

using Json = nlohmann::ordered_json;

std::string_view Name(Severity severity) {
  switch (severity) {
    case Severity::kNote: return "note";
    case Severity::kWarning: return "warning";
    case Severity::kError: return "error";
  }
  return "error";
}

struct Validated {
  RankInput input;
  uint64_t nodes = 0;
  std::vector<Finding> findings;
  Health health;
  bool says_health = true;  // false: the job's verdict covers it

  bool valid() const { return IsValid(findings); }
};

std::string NameOf(const RankInput& input) {
  return input.device.empty() ? input.path : input.path + " + " + input.device;
}

Json VerdictJson(const Validated& verdict) {
  Json json = {{"path", verdict.input.path}};
  if (!verdict.input.device.empty()) json["device"] = verdict.input.device;
  json["valid"] = verdict.valid();
  json["nodes"] = verdict.nodes;
  Json findings = Json::array();
  for (const Finding& finding : verdict.findings) {
    findings.push_back({{"name", finding.name},
                        {"severity", Name(finding.severity)},
                        {"count", finding.count},
                        {"message", finding.message},
                        {"examples", finding.examples}});
  }
  json["findings"] = std::move(findings);
  json["health"] = ToJson(verdict.health);
  return json;
}

std::string VerdictText(const Validated& verdict) {
  std::string text =
      fmt::format("{}: {}, {}\n", NameOf(verdict.input), verdict.valid() ? "valid" : "invalid",
                  FormatCount(verdict.nodes, "node"));
  for (const Finding& finding : verdict.findings) {
    text += fmt::format("  {}: {} ({} ×): {}\n", Name(finding.severity), finding.name,
                        FormatCount(finding.count), finding.message);
  }
  if (verdict.says_health && verdict.health.verdict() != Verdict::kGood) {
    text += ToText(verdict.health);
  }
  return text;
}

// Validates the files of traces and jobs, and whether host and device traces belong to one run.
// Prints the result immediately, or as JSON.
class Validation {
 public:
  Validation(const Console& console, bool as_json) : console_(console), as_json_(as_json) {}

  // Adds a trace, or the folder of a job.
  void Add(const std::string& path) {
    if (path == "-" || !IsFolder(path)) {
      return inputs_.push_back({.path = path});
    }
    const Result<CaptureFolder> folder = ListCaptureFolder(path, console_.context());
    if (!folder) return PassOver(path, folder.error());
    if (IsJobFolder(path)) {
      // Its ranks do not show whether their communications match.
      const Result<Job> job = ReadJobFolder(path, console_.context());
      if (!job) return PassOver(path, job.error());
    }
    for (const DamagedFile& file : folder->damaged) {  // already warned of
      verdicts_.push_back({{"path", file.path}, {"valid", false}, {"error", file.message}});
      unread_code_ = ExitCode::kBadInput;
    }
    for (const CaptureRank& rank : folder->ranks) {
      inputs_.push_back(
          {.rank = rank, .job = jobs_.size(), .is_one_of_several = folder->ranks.size() > 1});
    }
    jobs_.emplace_back(path, JobHealth());
  }

  ExitCode Run() {
    const ReadOptions read{.strict = console_.strict()};
    const RunContext& context = console_.context();
    for (const Input& input : inputs_) {
      const auto take = [&](const RankInput& traces, const Result<Trace>& trace) -> Status {
        ValidateTrace(input, traces, trace);
        return {};
      };
      if (input.rank) {
        (void)ReadAllOf(*input.rank, read, context, take);
      } else if (!unread_.contains(input.path)) {
        (void)take({.path = input.path, .device = {}}, ReadTrace(input.path, read, context));
      }
    }
    Json jobs = JudgeJobs();
    if (as_json_) {
      Json json = {
          {"format", "etude-validate"}, {"version", 1}, {"valid", valid_ && !unread_code_}};
      json["traces"] = std::move(verdicts_);
      if (!jobs_.empty()) json["jobs"] = std::move(jobs);
      console_.Print(JsonText(json));
    }
    if (unread_code_) return *unread_code_;
    return valid_ ? ExitCode::kOk : ExitCode::kNo;
  }

 private:
  // A trace, or the traces of a rank in a folder.
  struct Input {
    std::string path;  // of the trace
    std::optional<CaptureRank> rank;
    size_t job = 0;                  // of the folder
    bool is_one_of_several = false;  // one of several ranks, followed by a joint verdict
  };

  // Reports an unreadable input and continues.
  void PassOver(const std::string& path, const Error& error) {
    console_.Complain(error.message);
    verdicts_.push_back({{"path", path}, {"valid", false}, {"error", error.message}});
    if (!unread_code_) unread_code_ = ExitCodeOf(error.code);
  }

  void ValidateTrace(const Input& input, const RankInput& traces, const Result<Trace>& trace) {
    const bool is_pair = !traces.device.empty();
    if (unread_.contains(traces.path) || unread_.contains(traces.device)) return;
    if (!trace) {
      unread_.insert(traces.path);
      return PassOver(NameOf(traces), trace.error());
    }
    const RecordedRun recorded(*trace);
    RankRun run = MakeRankRun(recorded, input.rank ? input.rank->number() : 0);
    Validated verdict{.input = traces,
                      .nodes = trace->node_count(),
                      .findings = {},
                      .health = JudgeTrace(recorded, run),
                      .says_health = !input.is_one_of_several};
    if (!traces.as_profile) verdict.findings = is_pair ? ValidatePair(*trace) : Validate(*trace);
    if (traces.is_half) verdict.health.LeaveOutGraphTime();
    valid_ = valid_ && verdict.valid();
    if (input.rank) {
      jobs_[input.job].second.Add(verdict.health, std::move(run), UseOf(traces, *input.rank));
    }
    // For a pair, only problems that its single traces do not show; for several ranks, the job's
    // verdict covers it.
    const Verdict shown = traces.as_profile ? Verdict::kUsable : Verdict::kDontTrust;
    const bool is_worse = verdict.says_health && verdict.health.verdict() >= shown;
    if (is_pair && verdict.valid() && !is_worse) return;
    if (as_json_) {
      verdicts_.push_back(VerdictJson(verdict));
    } else {
      console_.Print(VerdictText(verdict));
    }
  }

  Json JudgeJobs() {
    Json rows = Json::array();
    for (auto& [path, job] : jobs_) {
      if (!job.is_job()) continue;
      job.Judge();
      valid_ = valid_ && job.communications_fit();
      if (as_json_) {
        rows.push_back(job.Json());
        rows.back()["path"] = path;
      } else {
        console_.Print(path + ": " + job.Text());
      }
    }
    return rows;
  }

  const Console& console_;
  bool as_json_;
  std::vector<Input> inputs_;
  std::set<std::string> unread_;  // files
  Json verdicts_ = Json::array();
  std::vector<std::pair<std::string, JobHealth>> jobs_;  // by folder
  bool valid_ = true;
  std::optional<ExitCode> unread_code_;  // of the first unreadable input
};

class ValidateCommand : public Command {
 public:
  std::string_view name() const override { return "validate"; }
  std::string_view summary() const override {
    return "check traces against the rules of their format; exit code 1 if a rule is broken";
  }

  void Declare(Options& options) override {
    options.Positionals("paths", &paths_, "traces, capture folders, or - for stdin");
    options.Flag("--json", &json_, "print JSON");
  }

  Result<ExitCode> Run(const Console& console) override {
    Validation validation(console, json_);
    for (const std::string& path : paths_) validation.Add(path);
    return validation.Run();
  }

 private:
  std::vector<std::string> paths_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeValidateCommand() { return std::make_unique<ValidateCommand>(); }

}  // namespace etude
