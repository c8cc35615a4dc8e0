#include "src/cli/tool/torch_command.h"

#include <string>

namespace etude {
namespace {

class TorchCommandStub : public Command {
 public:
  explicit TorchCommandStub(const TorchCommand& command) : command_(command) {}
  std::string_view name() const override { return command_.name; }
  std::string_view summary() const override { return command_.summary; }
  void Declare(Options&) override {}
  Result<ExitCode> Run(const Console&) override {
    return Unavailable(std::string(command_.words) +
                       ": requires etude-torch next to this program, which is missing; build with "
                       "-DETUDE_TORCH=ON or run ./quickstart");
  }

 private:
  TorchCommand command_;
};

}  // namespace

std::unique_ptr<Command> MakeTorchCommandStub(const TorchCommand& command) {
  return std::make_unique<TorchCommandStub>(command);
}

}  // namespace etude
