#include "src/cli/app/commands.h"

#include <filesystem>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "src/base/text/folder_names.h"
#include "src/formats/io/atomic_file.h"
#include "src/report/text/json_output.h"
#include "src/suite/results/mllog.h"
#include "src/suite/results/score.h"
#include "src/suite/results/suite_page.h"

namespace etude {
namespace {

class SuiteReportCommand : public Command {
 public:
  std::string_view name() const override { return "report"; }
  std::string_view summary() const override {
    return "show runs as tables, as a page, or as an MLPerf log";
  }

  void Declare(Options& options) override {
    options.Positionals("folders", &folders_, "folder written by `etude suite run --output`");
    options.Output("-o,--output", &output_, "FILE",
                   "write an HTML page with the progress of each run", {".html"});
    options.Choice("--format", &format_, {"text", "json", "csv", "mllog"},
                   "output format: text, or MLPerf log lines");
  }

  Result<ExitCode> Run(const Console& console) override {
    std::vector<suite::Score> scores;
    for (const std::string& folder : folders_) {
      ETUDE_RETURN_IF_ERROR(CheckPage(folder));
      ETUDE_ASSIGN_OR_RETURN(std::vector<suite::Score> found,
                             suite::ReadScores(folder, console.context()));
      std::ranges::move(found, std::back_inserter(scores));
    }
    if (!output_.empty()) {
      ETUDE_RETURN_IF_ERROR(WriteFile(output_, ToHtml(suite::MakeSuitePage(scores, folders_))));
    }
    if (format_ == "json") {
      console.Print(JsonText(suite::ToJson(scores), 1));
    } else if (format_ == "csv") {
      console.PrintData(ToCsv(suite::RunTable(scores)));
    } else if (format_ == "mllog") {
      for (const suite::Score& score : scores) {
        for (const suite::RunRecord& run : score.runs) console.PrintData(suite::MlLog(run));
      }
    } else {
      console.Print(ToText(suite::ScoreTable(scores)) + ToText(suite::ConvergenceTable(scores)) +
                    ToText(suite::RunTable(scores)));
    }
    return ExitCode::kOk;
  }

 private:
  // Returns kUsage if the page would overwrite a run of the folder.
  Status CheckPage(const std::string& folder) const {
    if (output_.empty()) return {};
    ETUDE_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(folder));
    for (const std::string& name : names) {
      const std::filesystem::path path = folder + "/" + name;
      if (path.extension() != ".json" && path.extension() != ".safetensors") continue;
      ETUDE_RETURN_IF_ERROR(CheckOutput(output_, {path.string()}));
    }
    return {};
  }

  std::vector<std::string> folders_;
  std::string output_;
  std::string format_ = "text";
};

}  // namespace

std::unique_ptr<Command> MakeSuiteReportCommand() { return std::make_unique<SuiteReportCommand>(); }

}  // namespace etude
