#include "src/cli/app/commands.h"

#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "src/base/each_rank.h"
#include "src/base/text/format_count.h"
#include "src/cli/tool/table_output.h"
#include "src/report/inspections.h"
#include "src/report/tables/diff_tables.h"

namespace etude {
namespace {

// Inputs of one rank on both sides.
struct RankPair {
  RankInput a;
  RankInput b;
};

class DiffCommand : public Command {
 public:
  std::string_view name() const override { return "diff"; }
  std::string_view summary() const override {
    return "compare two traces or jobs: operators, shapes and time";
  }

  void Declare(Options& options) override {
    options.Positional("a", &a_, "first trace in any format, or capture folder");
    options.Positional("b", &b_, "second trace or capture folder");
    options.Jobs(&jobs_, "ranks");
    output_.Declare(options, kDiffTables);
  }

  Result<ExitCode> Run(const Console& console) override {
    ETUDE_RETURN_IF_ERROR(output_.Check());
    ETUDE_ASSIGN_OR_RETURN(const std::vector<RankInput> a,
                           FindRanks(std::span(&a_, 1), console.context()));
    ETUDE_ASSIGN_OR_RETURN(const std::vector<RankInput> b,
                           FindRanks(std::span(&b_, 1), console.context()));
    bool same = true;
    const std::vector<RankPair> pairs = Pair(a, b, console, same);
    if (pairs.empty()) return BadInput(a_ + " and " + b_ + " have no rank in common");
    const ReadOptions read{.strict = console.strict()};
    ETUDE_ASSIGN_OR_RETURN(const std::vector<ComparedRanks> compared,
                           ForEachRank<ComparedRanks>(pairs.size(), jobs_, console.context(),
                                                      [&](size_t i, const RunContext& context) {
                                                        return Compare(pairs[i], read, context);
                                                      }));
    std::vector<Inspected> found;
    uint64_t different = 0;
    for (const ComparedRanks& one : compared) {
      found.push_back(one.found);
      different += one.same ? 0 : 1;
    }
    same = same && different == 0;
    // A joined table shows the first one's title.
    if (compared.size() > 1 && different != 0) {
      found.front().tables.front().title =
          fmt::format("different operators on {} of {} ranks", FormatCount(different),
                      FormatCount(compared.size()));
    }
    output_.Print("etude-diff", found, console);
    return same ? ExitCode::kOk : ExitCode::kNo;
  }

 private:
  // Pairs the ranks and reports unpaired ones, which set `same` to false.
  std::vector<RankPair> Pair(const std::vector<RankInput>& a, const std::vector<RankInput>& b,
                             const Console& console, bool& same) const {
    const RankPairs found = PairRanks(Ranks(a), Ranks(b));
    const auto miss = [&](const RankInput& rank, const std::string& where) {
      same = false;
      console.Complain(fmt::format("{}: {} has no such rank", rank.path, where));
    };
    for (const size_t rank : found.only_a) miss(a[rank], b_);
    for (const size_t rank : found.only_b) miss(b[rank], a_);
    std::vector<RankPair> pairs;
    for (const RankPairs::Pair& pair : found.pairs) pairs.push_back({a[pair.a], b[pair.b]});
    return pairs;
  }

  static std::vector<std::optional<int64_t>> Ranks(const std::vector<RankInput>& inputs) {
    std::vector<std::optional<int64_t>> ranks;
    for (const RankInput& input : inputs) ranks.push_back(input.rank);
    return ranks;
  }

  static Result<ComparedRanks> Compare(const RankPair& pair, const ReadOptions& read,
                                       const RunContext& context) {
    ETUDE_ASSIGN_OR_RETURN(const Trace a, ReadRank(pair.a, read, context));
    ETUDE_ASSIGN_OR_RETURN(const Trace b, ReadRank(pair.b, read, context));
    ComparedRanks compared = CompareTraces(a, b, pair.a.path);
    if (pair.a.rank) compared.found.rank = pair.a.rank;
    return compared;
  }

  std::string a_;
  std::string b_;
  int64_t jobs_ = 0;
  TableOutput output_;
};

}  // namespace

std::unique_ptr<Command> MakeDiffCommand() { return std::make_unique<DiffCommand>(); }

}  // namespace etude
