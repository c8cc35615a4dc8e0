#include "src/cli/breakdown.h"

#include "src/cli/inspect_ranks.h"
#include "src/report/breakdown_tables.h"

namespace etude {
namespace {

class BreakdownCommand : public Command {
 public:
  std::string_view name() const override { return "breakdown"; }
  std::string_view summary() const override {
    return "split each step's time into compute, communication, copies and idle";
  }
  void Declare(Options& options) override { ranks_.Declare(options, kBreakdownTables, TimedInput); }

  Result<ExitCode> Run(const Console& console) override {
    return ranks_.Run(
        "etude-breakdown", console, [](const Trace& trace, const RankInput&, const RunContext&) {
          const Breakdown breakdown = BreakDown(trace);
          return Result<Inspected>(
              Inspected{.tables = BreakdownTables(breakdown), .notes = BreakdownNotes(breakdown)});
        });
  }

 private:
  RankInspection ranks_;
};

}  // namespace

std::unique_ptr<Command> MakeBreakdownCommand() { return std::make_unique<BreakdownCommand>(); }

}  // namespace etude
