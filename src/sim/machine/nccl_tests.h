#pragma once

#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/sim/machine/machine_file.h"

namespace etude {

// Returns whether a text is the output of a program of nccl-tests (NVIDIA), or of RCCL's.
bool IsNcclTestsOutput(std::string_view text);

// Reads the output of programs of nccl-tests, such as all_reduce_perf, as a machine file: the
// out-of-place times by type, number of ranks and size, or their mean if a size occurs more than
// once. The type of a table is stated before it, or else in the file's name. kBadInput with file
// and line for others and for tables of unknown ranks.
Result<MachineFile> ParseNcclTests(std::string_view text, const std::string& path);

}  // namespace etude
