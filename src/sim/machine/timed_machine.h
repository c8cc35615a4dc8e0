#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/sim/machine/collective_times.h"

namespace etude {

// A machine with times of whole communications, from a machine file.
struct TimedMachine {
  std::shared_ptr<const CollectiveTimes> times;
  std::optional<double> cores;  // that its ranks share; nullopt: each has its own
};

// Parses a machine file (docs/formats/machine.md): one with the table [nccl] has NCCL's times, all
// others the measured ones. `path` is its name in messages. kBadInput with file, line and column.
Result<TimedMachine> ParseTimedMachine(std::string_view text, const std::string& path);

}  // namespace etude
