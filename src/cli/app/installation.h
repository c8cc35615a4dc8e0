#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"

namespace etude {

// Return the path and folder of this program; "" if unknown.
std::string ProgramPath();
std::string ProgramFolder();

// Returns the folder with the Python package `etude`: of `cmake --install`, of the wheel, or of the
// source tree. kUnavailable if it is in none of them.
Result<std::string> PythonFolder();

// Returns a command that imports `module` of the package `etude` in `python_folder` and runs
// `call`, with `words` in sys.argv[1:]. All other imports use the interpreter's own path without
// the current folder, unlike `python -c` and `-m`.
std::vector<std::string> PythonCall(const std::string& python, const std::string& python_folder,
                                    std::string_view module, std::string_view call,
                                    const std::vector<std::string>& words);

// Return the folder of the start-up hook in PythonFolder, and a PYTHONPATH that enables the hook:
// its folder, followed by the current value.
std::string HookFolder(const std::string& python_folder);
std::string HookPath(const std::string& python_folder);

// Version of torch that RecorderLibrary was built for; "" if none was built.
extern const std::string_view kRecorderTorch;

// Returns the path of the native recorder's library, installed beside the program; "" if it is
// missing.
std::string RecorderLibrary();

// Returns the Python that the wheel was installed into; nullopt if the program is not from a wheel.
std::optional<std::string> WheelPython();

}  // namespace etude
