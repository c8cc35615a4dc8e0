#include "src/cli/inspect/memory.h"

#include "src/cli/inspect/inspect_ranks.h"

namespace etude {
namespace {

class MemoryCommand : public Command {
 public:
  std::string_view name() const override { return "memory"; }
  std::string_view summary() const override {
    return "show the memory of a step's tensors over time: timeline, peak, and its holders";
  }
  void Declare(Options& options) override { ranks_.Declare(options, MemoryInspection()); }
  Result<ExitCode> Run(const Console& console) override {
    return ranks_.Run(MemoryInspection(), console);
  }

 private:
  RankInspection ranks_;
};

}  // namespace

std::unique_ptr<Command> MakeMemoryCommand() { return std::make_unique<MemoryCommand>(); }

}  // namespace etude
