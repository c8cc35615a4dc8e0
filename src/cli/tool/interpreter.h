#pragma once

#include <optional>
#include <string>

namespace etude {

// The Python that runs `program` (a name on the path or a file): itself, or the one that the first
// line of a script names, as that of torchrun. nullopt if it is something else, a shell script for
// example, or is not there.
std::optional<std::string> PythonOf(const std::string& program);

}  // namespace etude
