#include "src/cli/stats.h"

#include "src/cli/inspect_ranks.h"
#include "src/report/stats_tables.h"

namespace etude {
namespace {

class StatsCommand : public Command {
 public:
  std::string_view name() const override { return "stats"; }
  std::string_view summary() const override {
    return "count a trace's operators, modules, lanes and communication, with times and sizes";
  }
  void Declare(Options& options) override { ranks_.Declare(options, kStatsTables); }

  Result<ExitCode> Run(const Console& console) override {
    return ranks_.Run(
        "etude-stats", console, [](const Trace& trace, const RankInput&, const RunContext&) {
          return Result<Inspected>(Inspected{.tables = StatsTables(CountTrace(trace))});
        });
  }

 private:
  RankInspection ranks_;
};

}  // namespace

std::unique_ptr<Command> MakeStatsCommand() { return std::make_unique<StatsCommand>(); }

}  // namespace etude
