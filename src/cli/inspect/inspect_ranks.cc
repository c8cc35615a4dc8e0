#include "src/cli/inspect/inspect_ranks.h"

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/each_rank.h"
#include "src/base/result.h"
#include "src/cli/tool/table_output.h"

namespace etude {
namespace {

class InspectionCommand : public Command {
 public:
  explicit InspectionCommand(const Inspection& inspection) : inspection_(inspection) {}

  std::string_view name() const override { return inspection_.name; }
  std::string_view summary() const override { return inspection_.summary; }
  void Declare(Options& options) override {
    options.Positionals("paths", &paths_,
                        "traces in any format, capture folders (all their ranks), or - for stdin");
    options.Jobs(&jobs_, "traces");
    output_.Declare(options, inspection_.tables);
  }
  // Reads the traces of all ranks concurrently and prints the result of the inspection.
  Result<ExitCode> Run(const Console& console) override {
    ETUDE_RETURN_IF_ERROR(output_.Check());
    ETUDE_ASSIGN_OR_RETURN(const std::vector<RankInput> inputs,
                           FindRanks(paths_, console.context(), inspection_.choose));
    const ReadOptions read{.strict = console.strict()};
    const auto inspect_one = [&](size_t i, const RunContext& context) -> Result<Inspected> {
      ETUDE_ASSIGN_OR_RETURN(const Trace trace, ReadRank(inputs[i], read, context));
      return Inspect(inspection_, trace, inputs[i], read, context);
    };
    ETUDE_ASSIGN_OR_RETURN(
        const std::vector<Inspected> found,
        ForEachRank<Inspected>(inputs.size(), jobs_, console.context(), inspect_one));
    output_.Print(inspection_.format(), found, console);
    return ExitCode::kOk;
  }

 private:
  const Inspection& inspection_;
  std::vector<std::string> paths_;
  int64_t jobs_ = 0;
  TableOutput output_;
};

}  // namespace

std::unique_ptr<Command> MakeInspectionCommand(const Inspection& inspection) {
  return std::make_unique<InspectionCommand>(inspection);
}

}  // namespace etude
