#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"

namespace etude {

// This program, and its folder; "" if the system does not say.
std::string ProgramPath();
std::string ProgramFolder();

// The folder that holds the Python package `etude`: of `cmake --install`, of the wheel, or the
// source tree's. kUnavailable if it is in none of these places.
Result<std::string> PythonFolder();

// A command that imports `module` of the package `etude` in `python_folder` and runs `call`, which
// finds `words` in sys.argv[1:]. Whatever else is imported is the interpreter's
// own: nothing is looked for in the current folder, as `python -c` and `-m` do.
std::vector<std::string> PythonCall(const std::string& python, const std::string& python_folder,
                                    std::string_view module, std::string_view call,
                                    const std::vector<std::string>& words);

// The folder of the start-up hook in PythonFolder; and the PYTHONPATH of a program in which the
// hook is to run: that folder, then what we have.
std::string HookFolder(const std::string& python_folder);
std::string HookPath(const std::string& python_folder);

// The version of torch that RecorderLibrary was built for; "" if none was.
extern const std::string_view kRecorderTorch;

// The native recorder's library, which is built and installed beside the program; "" if it is not.
std::string RecorderLibrary();

// The Python that the wheel was installed into; nullopt if this program is of no wheel.
std::optional<std::string> WheelPython();

}  // namespace etude
