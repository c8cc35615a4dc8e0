#include "src/cli/inspect/critical_path.h"

#include "src/cli/inspect/inspect_ranks.h"

namespace etude {
namespace {

class CriticalPathCommand : public Command {
 public:
  std::string_view name() const override { return "critical-path"; }
  std::string_view summary() const override {
    return "find the longest chain of dependent work, and where its time goes";
  }
  void Declare(Options& options) override { ranks_.Declare(options, CriticalPathInspection()); }
  Result<ExitCode> Run(const Console& console) override {
    return ranks_.Run(CriticalPathInspection(), console);
  }

 private:
  RankInspection ranks_;
};

}  // namespace

std::unique_ptr<Command> MakeCriticalPathCommand() {
  return std::make_unique<CriticalPathCommand>();
}

}  // namespace etude
