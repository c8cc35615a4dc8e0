#include "src/cli/critical_path.h"

#include "src/cli/inspect_ranks.h"
#include "src/report/critical_path_tables.h"
#include "src/transform/recorded_waits.h"

namespace etude {
namespace {

class CriticalPathCommand : public Command {
 public:
  std::string_view name() const override { return "critical-path"; }
  std::string_view summary() const override {
    return "find the longest chain of dependent work, and what its time was spent with";
  }
  void Declare(Options& options) override {
    ranks_.Declare(options, kCriticalPathTables, TimedInput);
  }

  Result<ExitCode> Run(const Console& console) override {
    return ranks_.Run(
        "etude-critical-path", console,
        [](const Trace& trace, const RankInput&, const RunContext&) {
          const CriticalPath path = FindCriticalPath(trace, FindRecordedWaits(trace));
          return Result<Inspected>(Inspected{.tables = CriticalPathTables(trace, path),
                                             .notes = CriticalPathNotes(path)});
        });
  }

 private:
  RankInspection ranks_;
};

}  // namespace

std::unique_ptr<Command> MakeCriticalPathCommand() {
  return std::make_unique<CriticalPathCommand>();
}

}  // namespace etude
