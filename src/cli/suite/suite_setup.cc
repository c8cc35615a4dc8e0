#include "src/cli/app/commands.h"

#include <unistd.h>

#include <string>
#include <vector>

#include "src/cli/app/installation.h"
#include "src/cli/app/suite_data_folder.h"

namespace etude {
namespace {

class SuiteSetupCommand : public Command {
 public:
  std::string_view name() const override { return "setup"; }
  std::string_view summary() const override {
    return "download the data sets of the small tasks from packages";
  }

  void Declare(Options& options) override {
    options.Positionals("sets", &sets_, "names of data sets (default: all)", false);
    options.Value("--data", &data_, "FOLDER",
                  "destination folder (default: $ETUDE_SUITE_DATA, else ~/.cache/etude/suite)");
    options.Value("--python", &python_, "PYTHON",
                  "Python interpreter that downloads them (default: python3)");
    options.Footer(
        "Each package is one file with a fixed SHA-256, from the package index that pip uses here; "
        "no code in it runs. Missing programs and modules are listed first, with the commands that "
        "install them.");
  }

  // Replaces this process by the Python module.
  Result<ExitCode> Run(const Console&) override {
    ETUDE_ASSIGN_OR_RETURN(const std::string package, PythonFolder());
    const std::string python = !python_.empty() ? python_ : WheelPython().value_or("python3");
    std::vector<std::string> given = {data_.empty() ? DefaultSuiteData() : data_};
    given.insert(given.end(), sets_.begin(), sets_.end());
    std::vector<std::string> words = PythonCall(
        python, package, "suite_data", "sys.exit(etude.suite_data.main(sys.argv[1:]))", given);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    execvp(argv.front(), argv.data());
    return Unavailable(
        python +
        ": cannot run it, expected a Python interpreter: apt-get install python3, or use --python");
  }

 private:
  std::vector<std::string> sets_;
  std::string data_;
  std::string python_;
};

}  // namespace

std::unique_ptr<Command> MakeSuiteSetupCommand() { return std::make_unique<SuiteSetupCommand>(); }

}  // namespace etude
