#pragma once

#include <string>

#include "src/base/result.h"
#include "src/formats/io/toml_reader.h"
#include "src/sim/nccl/nccl_machine.h"

namespace etude {

// Reads the table [nccl] of a machine's file (docs/models/nccl.md). `path` is the file's name in
// messages. Unknown keys are errors.
Result<NcclMachine> ParseNcclMachine(const toml::table& table, const std::string& path);

}  // namespace etude
