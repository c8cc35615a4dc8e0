#include "src/cli/inspect/breakdown.h"

#include "src/cli/inspect/inspect_ranks.h"

namespace etude {
namespace {

class BreakdownCommand : public Command {
 public:
  std::string_view name() const override { return "breakdown"; }
  std::string_view summary() const override {
    return "split each step's time into compute, communication, copies and idle";
  }
  void Declare(Options& options) override { ranks_.Declare(options, BreakdownInspection()); }
  Result<ExitCode> Run(const Console& console) override {
    return ranks_.Run(BreakdownInspection(), console);
  }

 private:
  RankInspection ranks_;
};

}  // namespace

std::unique_ptr<Command> MakeBreakdownCommand() { return std::make_unique<BreakdownCommand>(); }

}  // namespace etude
