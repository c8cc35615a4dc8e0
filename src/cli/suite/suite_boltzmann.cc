#include "src/cli/app/commands.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "src/base/text/bounded_number.h"
#include "src/report/text/json_output.h"
#include "src/report/text/table.h"
#include "src/suite/boltzmann/machine_study.h"
#include "src/suite/results/run_record.h"

namespace etude {
namespace {

using suite::ChainSeeds;
using suite::StudyOptions;
using suite::StudyRow;

std::vector<std::string> SplitAtCommas(std::string_view text) {
  std::vector<std::string> parts;
  while (true) {
    const size_t comma = text.find(',');
    parts.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

tl::unexpected<Error> WrongValue(std::string_view option, std::string_view found,
                                 std::string_view expected) {
  return MakeError(ErrorCode::kUsage, fmt::format("suite boltzmann: {}: found '{}', expected {}",
                                                  option, found, expected));
}

class SuiteBoltzmannCommand : public Command {
 public:
  std::string_view name() const override { return "boltzmann"; }
  std::string_view summary() const override {
    return "train Boltzmann machines, and compare the seeds of their Gibbs chains";
  }

  void Declare(Options& options) override {
    options.Value("--spins", &study_.spins, "N", "number of spins (default: 16)",
                  {.least = 4, .most = 22});
    options.Value("--barriers", &barriers_, "B[,B…]",
                  "heights of the barriers between modes, in kT (default: 2,8)");
    options.Value("--chains", &chains_, "SEEDS[,…]",
                  "seeds of the chains: exact, random, cd, pcd, annealed, tempered (default: all)");
    options.Value("--k", &ks_, "K[,K…]",
                  "numbers of Gibbs sweeps after the seed (default: 0,1,10,50)");
    options.Value("--updates", &study_.machine.updates, "N",
                  "updates of the parameters in a run (default: 150)",
                  {.least = 2, .most = 1'000'000});
    options.Value("--seeds", &study_.runs, "N", "training runs of each row (default: 3)",
                  {.least = 1, .most = 1000});
    options.Jobs(&study_.threads, "runs");
    options.Flag("--json", &json_, "print JSON");
    options.Flag("--csv", &csv_, "print CSV");
  }

  Result<ExitCode> Run(const Console& console) override {
    if (json_ && csv_) return MakeError(ErrorCode::kUsage, "use either --json or --csv");
    ETUDE_RETURN_IF_ERROR(ReadLists());
    ETUDE_ASSIGN_OR_RETURN(const std::vector<StudyRow> rows,
                           suite::RunStudy(study_, console.context()));
    const std::vector<Table> tables = suite::StudyTables(rows);
    if (json_) {
      nlohmann::ordered_json json = {
          {"format", "etude-boltzmann"}, {"version", 1},
          {"spins", study_.spins},       {"updates", study_.machine.updates},
          {"seeds", study_.runs},        {"barriers", nlohmann::ordered_json::array()}};
      size_t first = 0;
      for (const Table& table : tables) {
        json["barriers"].push_back({{"kt", rows[first].barrier}, {"rows", ToJson(table)}});
        first += table.rows.size();
      }
      console.Print(JsonText(json, 1));
      return ExitCode::kOk;
    }
    if (csv_) {
      Table all = tables.front();
      all.columns.insert(all.columns.begin(), {"barrier_kt", "barrier", Unit::kNumber});
      all.rows.clear();
      for (const Table& table : tables) {
        all.rows.insert(all.rows.end(), table.rows.begin(), table.rows.end());
      }
      for (size_t i = 0; i < rows.size(); ++i) {
        all.rows[i].insert(all.rows[i].begin(), rows[i].barrier);
      }
      console.Print(ToCsv(all));
      return ExitCode::kOk;
    }
    std::string text = fmt::format(
        "fully visible Boltzmann machines of {} spins, 4 modes, {} updates, medians of {} runs\n",
        study_.spins, study_.machine.updates, study_.runs);
    for (const Table& table : tables) text += ToText(table);
    text += Legend();
    console.Print(text);
    return ExitCode::kOk;
  }

 private:
  Status ReadLists() {
    study_.seeds.clear();
    for (const std::string& name : SplitAtCommas(chains_)) {
      const auto seeds = suite::ChainSeedsOf(name);
      if (!seeds) {
        return WrongValue("--chains", name, "exact, random, cd, pcd, annealed or tempered");
      }
      study_.seeds.push_back(*seeds);
    }
    study_.ks.clear();
    for (const std::string& text : SplitAtCommas(ks_)) {
      const Result<int64_t> k = ParseWithin(text, {.least = 0, .most = 100'000});
      if (!k) return WrongValue("--k", text, "a whole number from 0 to 100,000");
      study_.ks.push_back(*k);
    }
    study_.barriers.clear();
    for (const std::string& text : SplitAtCommas(barriers_)) {
      const Result<double> barrier = ParseAbove(text);
      if (!barrier || *barrier < 0 || *barrier > 30) {
        return WrongValue("--barriers", text, "a number from 0 to 30");
      }
      study_.barriers.push_back(*barrier);
    }
    if (suite::StudySettings(study_).empty()) {
      return MakeError(
          ErrorCode::kUsage,
          "suite boltzmann: chains from random, cd or pcd seeds require --k of at least 1");
    }
    return {};
  }

  static std::string Legend() {
    return "KL: divergence of the machine from the distribution, in nats, by enumeration; the row "
           "'exact' has no sampling error\n"
           "gradient error: 1 − cosine to the exact gradient, mean of the second half of the "
           "updates\n"
           "autocorrelation: samples per independent sample, of chains that keep their states; "
           "times "
           "sweeps a sample: sweeps per independent sample\n"
           "annealed: simulated annealing on this machine stands in for a quantum annealer; no "
           "quantum hardware is used\n";
  }

  StudyOptions study_;
  std::string barriers_ = "2,8";
  std::string chains_ = "exact,random,cd,pcd,annealed,tempered";
  std::string ks_ = "0,1,10,50";
  bool json_ = false;
  bool csv_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeSuiteBoltzmannCommand() {
  return std::make_unique<SuiteBoltzmannCommand>();
}

}  // namespace etude
