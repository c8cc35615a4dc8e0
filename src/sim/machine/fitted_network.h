#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/sim/machine/machine.h"
#include "src/sim/machine/machine_file.h"

namespace etude {

// Makes a machine of `ranks` ranks with the network that was fitted to a machine's communications,
// for the model etude-1. Each rank has a link to a memory that all ranks share, and from it:
//
//   rank ── latency, link ──▸ memory ── shared ──▸ memory's end ── link ──▸ rank
//
// so that a message of b bytes alone takes latency + b / min(link, shared). Ranks that communicate
// through Gloo use its algorithms, others rings. kBadInput for an invalid number of ranks.
Result<SimMachine> MachineOf(const FittedNetwork& network, const MeasuredMachine& measured,
                             int64_t ranks);

// Likewise, with the network of a machine file. `path` is its name in messages. kBadInput if it has
// none.
Result<SimMachine> ParseFittedMachine(std::string_view text, const std::string& path,
                                      int64_t ranks);

}  // namespace etude
