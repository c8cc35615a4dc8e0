// `etude compat` and `--compat` in a build with -DETUDE_COMPAT=OFF: errors.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/cli/app/commands.h"
#include "src/compat/chakra/chakra_tools.h"

namespace etude {
namespace {

tl::unexpected<Error> NotBuilt() {
  return MakeError(ErrorCode::kUnavailable,
                   "this build lacks the compatible tools; build Etude with -DETUDE_COMPAT=ON");
}

class NoCompatCommand : public Command {
 public:
  std::string_view name() const override { return "compat"; }
  std::string_view summary() const override {
    return "drop-in replacements for other tools (not in this build)";
  }
  void Declare(Options& options) override { options.Rest("arguments", &arguments_, "ignored"); }
  Result<ExitCode> Run(const Console&) override { return NotBuilt(); }

 private:
  std::vector<std::string> arguments_;
};

}  // namespace

std::unique_ptr<Command> MakeCompatCommand() { return std::make_unique<NoCompatCommand>(); }

namespace compat {

Status TraceLink(const LinkRequest&, const RunContext&) { return NotBuilt(); }
Status ConvertPyTorch(const std::string&, const std::string&, const RunContext&, Existing) {
  return NotBuilt();
}
Status Jsonize(const std::string&, const std::string&, const RunContext&) { return NotBuilt(); }

}  // namespace compat
}  // namespace etude
