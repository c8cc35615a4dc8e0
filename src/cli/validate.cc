#include "src/cli/validate.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/formats/capture_folder.h"
#include "src/formats/read_trace.h"
#include "src/report/format.h"
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

struct Verdict {
  std::string path;
  uint64_t nodes = 0;
  std::vector<Finding> findings;

  bool valid() const { return IsValid(findings); }
};

Json VerdictJson(const Verdict& verdict) {
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
  return json;
}

std::string VerdictText(const Verdict& verdict) {
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
    std::vector<std::string> files;
    for (const std::string& path : paths_) {
      if (path == "-" || !std::filesystem::is_directory(path)) {
        files.push_back(path);
        continue;
      }
      ETUDE_ASSIGN_OR_RETURN(const CaptureFolder folder,
                             ListCaptureFolder(path, console.context()));
      for (const CaptureRank& rank : folder.ranks) {
        for (const std::string& file : rank.files()) files.push_back(file);
      }
    }
    bool valid = true;
    Json verdicts = Json::array();
    for (const std::string& file : files) {
      ETUDE_ASSIGN_OR_RETURN(
          const Trace trace,
          ReadTrace(file, ReadOptions{.strict = console.strict()}, console.context()));
      const Verdict verdict{.path = file, .nodes = trace.node_count(), .findings = Validate(trace)};
      valid = valid && verdict.valid();
      if (json_) {
        verdicts.push_back(VerdictJson(verdict));
      } else {
        console.Print(VerdictText(verdict));
      }
    }
    if (json_) {
      Json json = {{"format", "etude-validate"}, {"version", 1}, {"valid", valid}};
      json["traces"] = std::move(verdicts);
      console.Print(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
    }
    return valid ? ExitCode::kOk : ExitCode::kNo;
  }

 private:
  std::vector<std::string> paths_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeValidateCommand() { return std::make_unique<ValidateCommand>(); }

}  // namespace etude
