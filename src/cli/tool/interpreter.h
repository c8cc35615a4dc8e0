#pragma once

#include <optional>
#include <string>

namespace etude {

// Returns the Python that runs `program` (a name on the path or a file): the program itself, or the
// interpreter in a script's first line, as for torchrun. nullopt for a missing program or another
// kind, such as a shell script.
std::optional<std::string> PythonOf(const std::string& program);

}  // namespace etude
