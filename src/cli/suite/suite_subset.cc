#include "src/cli/app/commands.h"

#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "src/base/text/folder_names.h"
#include "src/formats/io/atomic_file.h"
#include "src/jobs/output_files.h"
#include "src/report/text/json_output.h"
#include "src/suite/results/score.h"
#include "src/suite/subset/subset.h"
#include "src/suite/subset/subset_page.h"
#include "src/suite/subset/subset_ranking.h"
#include "src/suite/subset/task_factors.h"

namespace etude {
namespace {

using suite::SubsetOptions;
using suite::SubsetRanking;

class SuiteSubsetCommand : public Command {
 public:
  std::string_view name() const override { return "subset"; }
  std::string_view summary() const override {
    return "choose a few tasks that represent the suite, and test the choice";
  }

  void Declare(Options& options) override {
    options.Positional("folder", &folder_,
                       "folder with characterization.json, and runs in its folder `runs`, if any");
    options.Choice("--for", &purpose_, {"ranking", "characterization"}, "purpose of the subset");
    options.Choice("--space", &space_, {"pca", "t-sne"}, "space in which tasks are clustered");
    options.Value("--clusters", &clusters_, "K",
                  "number of clusters, each with one task of the subset (default: by silhouette)",
                  {.least = 1, .most = 1000});
    options.Value("--most-variation", &most_variation_, "PERCENT",
                  "max coefficient of variation of epochs to the target (default: 2)", 0);
    options.Value("--most-hours", &most_hours_, "HOURS",
                  "max recalled hours of a task of the subset (default: no limit)", 0);
    options.Values("--systems", &systems_, "FOLDER",
                   "rank systems by all tasks and by the subset; one folder of runs for each "
                   "system, at least two (repeatable)");
    options.Value("--seed", &seed_, "N", "seed for clusters, t-SNE and resampling", {.least = 0});
    options.Output("-o,--output", &output_, "FILE", "write an HTML page", {".html"});
    options.Flag("--json", &json_, "print JSON");
  }

  Result<ExitCode> Run(const Console& console) override {
    if (systems_.size() == 1) {
      return MakeError(
          ErrorCode::kUsage,
          "found --systems with one folder, expected it once for each of at least two");
    }
    const RunContext& context = console.context();
    const std::string path = folder_ + "/characterization.json";
    if (!IsThere(path)) {
      return MakeError(ErrorCode::kIo,
                       path + ": missing; expected a folder of `etude suite characterize`");
    }
    ETUDE_ASSIGN_OR_RETURN(const suite::CharacterizedTasks characterization,
                           suite::ReadCharacterization(path, context));
    ETUDE_ASSIGN_OR_RETURN(const std::vector<suite::Score> kept, KeptRuns(context));
    ETUDE_ASSIGN_OR_RETURN(const auto references, suite::BuiltInReferences(context));
    const SubsetOptions options{
        .purpose = purpose_ == "ranking" ? SubsetOptions::Purpose::kRanking
                                         : SubsetOptions::Purpose::kCharacterization,
        .space = space_ == "pca" ? SubsetOptions::Space::kPca : SubsetOptions::Space::kTsne,
        .clusters = clusters_,
        .most_variation = most_variation_.value_or(2) / 100,
        .most_hours = most_hours_,
        .seed = static_cast<uint64_t>(seed_)};
    ETUDE_ASSIGN_OR_RETURN(const suite::Subset subset,
                           suite::ChooseSubset(characterization, kept, references, options));
    std::optional<SubsetRanking> ranking;
    if (!systems_.empty()) {
      std::vector<suite::RankedSystem> systems;
      for (const std::string& folder : systems_) {
        ETUDE_ASSIGN_OR_RETURN(auto scores, suite::ReadScores(folder, context));
        systems.push_back({folder, std::move(scores)});
      }
      ETUDE_ASSIGN_OR_RETURN(ranking,
                             suite::TestSubset(subset, characterization, systems, options.seed));
    }
    if (!output_.empty()) {
      std::vector<std::string> inputs = {path};
      inputs.insert(inputs.end(), systems_.begin(), systems_.end());
      ETUDE_RETURN_IF_ERROR(
          WriteFile(output_, ToHtml(suite::MakeSubsetPage(subset, ranking, inputs))));
    }
    if (json_) {
      console.Print(JsonText(suite::ToJson(subset, ranking), 1));
    } else {
      console.Print(suite::ToText(subset, ranking));
    }
    return ExitCode::kOk;
  }

 private:
  // Returns the complete runs in the folder's folder `runs`; none without it.
  Result<std::vector<suite::Score>> KeptRuns(const RunContext& context) const {
    const std::string runs = folder_ + "/runs";
    std::error_code error;
    if (!std::filesystem::is_directory(runs, error)) return std::vector<suite::Score>();
    ETUDE_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(runs));
    for (const std::string& name : names) {
      if (std::filesystem::path(name).extension() == ".json") {
        return suite::ReadScores(runs, context);
      }
    }
    return std::vector<suite::Score>();
  }

  std::string folder_;
  std::string purpose_ = "ranking";
  std::string space_ = "pca";
  std::optional<int64_t> clusters_;
  std::optional<double> most_variation_;
  std::optional<double> most_hours_;
  std::vector<std::string> systems_;
  std::string output_;
  int64_t seed_ = 0;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeSuiteSubsetCommand() { return std::make_unique<SuiteSubsetCommand>(); }

}  // namespace etude
