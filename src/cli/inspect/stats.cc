#include "src/cli/inspect/stats.h"

#include "src/cli/inspect/inspect_ranks.h"

namespace etude {
namespace {

class StatsCommand : public Command {
 public:
  std::string_view name() const override { return "stats"; }
  std::string_view summary() const override {
    return "count a trace's operators, modules, lanes and communication, with times and sizes";
  }
  void Declare(Options& options) override { ranks_.Declare(options, StatsInspection()); }
  Result<ExitCode> Run(const Console& console) override {
    return ranks_.Run(StatsInspection(), console);
  }

 private:
  RankInspection ranks_;
};

}  // namespace

std::unique_ptr<Command> MakeStatsCommand() { return std::make_unique<StatsCommand>(); }

}  // namespace etude
