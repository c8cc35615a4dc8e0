#include "src/cli/diff.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/each_rank.h"
#include "src/cli/table_output.h"
#include "src/report/diff_tables.h"
#include "src/transform/read_job.h"

namespace etude {
namespace {

// The inputs of one rank on both sides.
struct RankPair {
  RankInput a;
  RankInput b;
};

struct Compared {
  Inspected found;
  bool same = true;
};

class DiffCommand : public Command {
 public:
  std::string_view name() const override { return "diff"; }
  std::string_view summary() const override {
    return "compare two traces or jobs: operators, shapes and time";
  }

  void Declare(Options& options) override {
    options.Positional("a", &a_, "a trace in any format, or a capture folder");
    options.Positional("b", &b_, "another one");
    options.Value("--jobs", &jobs_, "N", "ranks at a time (default: as many as cores)",
                  {.least = 0});
    output_.Declare(options, kDiffTables);
  }

  Result<ExitCode> Run(const Console& console) override {
    ETUDE_RETURN_IF_ERROR(output_.Check());
    ETUDE_ASSIGN_OR_RETURN(const std::vector<RankInput> a,
                           FindRanks(std::span(&a_, 1), console.context()));
    ETUDE_ASSIGN_OR_RETURN(const std::vector<RankInput> b,
                           FindRanks(std::span(&b_, 1), console.context()));
    bool same = true;
    const std::vector<RankPair> pairs = PairRanks(a, b, console, same);
    if (pairs.empty()) return BadInput(a_ + " and " + b_ + " have no rank in common");
    const ReadOptions read{.strict = console.strict()};
    ETUDE_ASSIGN_OR_RETURN(const std::vector<Compared> compared,
                           ForEachRank<Compared>(pairs.size(), jobs_, console.context(),
                                                 [&](size_t i, const RunContext& context) {
                                                   return Compare(pairs[i], read, context);
                                                 }));
    std::vector<Inspected> found;
    for (const Compared& one : compared) {
      found.push_back(one.found);
      same = same && one.same;
    }
    output_.Print("etude-diff", found, console);
    return same ? ExitCode::kOk : ExitCode::kNo;
  }

 private:
  // Single traces are compared whatever their ranks; a rank of one side only is a difference.
  std::vector<RankPair> PairRanks(const std::vector<RankInput>& a, const std::vector<RankInput>& b,
                                  const Console& console, bool& same) const {
    if (a.size() == 1 && b.size() == 1) return {{a.front(), b.front()}};
    std::vector<RankPair> pairs;
    const auto miss = [&](const RankInput& rank, const std::string& where) {
      same = false;
      console.Complain(fmt::format("{}: {} has no such rank", rank.path, where));
    };
    for (const RankInput& rank : a) {
      const auto other = std::ranges::find(b, rank.rank, &RankInput::rank);
      if (other == b.end()) {
        miss(rank, b_);
      } else {
        pairs.push_back({rank, *other});
      }
    }
    for (const RankInput& rank : b) {
      if (std::ranges::find(a, rank.rank, &RankInput::rank) == a.end()) miss(rank, a_);
    }
    return pairs;
  }

  static Result<Compared> Compare(const RankPair& pair, const ReadOptions& read,
                                  const RunContext& context) {
    ETUDE_ASSIGN_OR_RETURN(const Trace a, ReadRank(pair.a, read, context));
    ETUDE_ASSIGN_OR_RETURN(const Trace b, ReadRank(pair.b, read, context));
    const TraceDiff diff = DiffTraces(a, b);
    Compared compared{.found = {.rank = pair.a.rank ? pair.a.rank : a.info().rank,
                                .path = pair.a.path,
                                .tables = DiffTables(a, b, diff)},
                      .same = diff.is_same()};
    if (diff.unpaired) {
      compared.found.notes.emplace_back(
          "the traces have too little in common to pair their nodes: all count as removed and "
          "added");
    }
    compared.found.health.Add(JudgeTrace(a), "a");
    compared.found.health.Add(JudgeTrace(b), "b");
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
