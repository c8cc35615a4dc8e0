#include "src/cli/validate.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/cli/job_health.h"
#include "src/formats/capture_folder.h"
#include "src/formats/read_trace.h"
#include "src/report/format.h"
#include "src/report/health_output.h"
#include "src/trace/validator.h"

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
  std::string path;
  uint64_t nodes = 0;
  std::vector<Finding> findings;
  Health health;

  bool valid() const { return IsValid(findings); }
};

Json VerdictJson(const Validated& verdict) {
  Json json = {{"path", verdict.path}, {"valid", verdict.valid()}, {"nodes", verdict.nodes}};
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
  std::string text = fmt::format("{}: {}, {} nodes\n", verdict.path,
                                 verdict.valid() ? "valid" : "invalid", FormatCount(verdict.nodes));
  for (const Finding& finding : verdict.findings) {
    text += fmt::format("  {}: {} ({} ×): {}\n", Name(finding.severity), finding.name,
                        FormatCount(finding.count), finding.message);
  }
  return text;
}

class ValidateCommand : public Command {
 public:
  std::string_view name() const override { return "validate"; }
  std::string_view summary() const override {
    return "check traces; exit code 1 and the reasons if one breaks its rules";
  }

  void Declare(Options& options) override {
    options.Positionals("paths", &paths_, "traces, capture folders, or - for stdin");
    options.Flag("--json", &json_, "print JSON");
  }

  Result<ExitCode> Run(const Console& console) override {
    // A file, and the folder's job and rank to which it belongs.
    struct Input {
      std::string file;
      size_t job = 0;
      int64_t rank = 0;
    };
    std::vector<Input> files;
    std::vector<std::pair<std::string, JobHealth>> folders;
    Json verdicts = Json::array();
    bool all_read = true;
    // What cannot be read does not keep the rest from being validated.
    const auto pass_over = [&](const std::string& path, const Error& error) {
      console.Complain(error.message);
      verdicts.push_back({{"path", path}, {"valid", false}, {"error", error.message}});
      all_read = false;
    };
    for (const std::string& path : paths_) {
      if (path == "-" || !IsFolder(path)) {
        files.push_back({path, kNoFolder});
        continue;
      }
      const Result<CaptureFolder> folder = ListCaptureFolder(path, console.context());
      if (!folder) {
        pass_over(path, folder.error());
        continue;
      }
      for (const CaptureRank& rank : folder->ranks) {
        for (const std::string& file : rank.files()) {
          files.push_back({file, folders.size(), rank.number()});
        }
      }
      folders.emplace_back(path, JobHealth());
    }
    bool valid = true;
    for (const auto& [file, folder, rank] : files) {
      const Result<Trace> trace =
          ReadTrace(file, ReadOptions{.strict = console.strict()}, console.context());
      if (!trace) {
        pass_over(file, trace.error());
        continue;
      }
      const Validated verdict{.path = file,
                              .nodes = trace->node_count(),
                              .findings = Validate(*trace),
                              .health = JudgeTrace(*trace)};
      valid = valid && verdict.valid();
      if (folder != kNoFolder) folders[folder].second.Add(rank, *trace);
      if (json_) {
        verdicts.push_back(VerdictJson(verdict));
      } else {
        console.Print(VerdictText(verdict));
      }
    }
    Json jobs = Json::array();
    for (auto& [path, job] : folders) {
      if (!job.is_job()) continue;
      job.Judge();
      valid = valid && job.communications_fit();
      if (json_) {
        Json row = job.Json();
        row["path"] = path;
        jobs.push_back(std::move(row));
      } else {
        console.Print(path + ": " + job.Text());
      }
    }
    if (json_) {
      Json json = {{"format", "etude-validate"}, {"version", 1}, {"valid", valid && all_read}};
      json["traces"] = std::move(verdicts);
      if (!folders.empty()) json["jobs"] = std::move(jobs);
      console.Print(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
    }
    if (!all_read) return ExitCode::kBadInput;
    return valid ? ExitCode::kOk : ExitCode::kNo;
  }

 private:
  static constexpr size_t kNoFolder = SIZE_MAX;

  std::vector<std::string> paths_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeValidateCommand() { return std::make_unique<ValidateCommand>(); }

}  // namespace etude
