#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/report/text/table.h"
#include "src/sim/machine/machine_file.h"

namespace etude {

// Fits the network of the model etude-1 to the communications of a machine file with up to
// kMostFittedRanks ranks: latency and bandwidth to messages of several sizes, and all else to
// collectives; without such messages all to all of them. It minimizes the mean over communications
// of the mean |ln(simulated / measured)| over sizes, by Hooke's and Jeeves' pattern search in the
// logarithms of the parameters (Journal of the ACM 8(2), 1961). Additions take time, and ranks
// share a bandwidth, only if the mean is 2 % smaller with them. nullopt if no communication has two
// sizes. kInterrupted if the context stops.
inline constexpr int64_t kMostFittedRanks = 64;  // more take minutes
Result<std::optional<FittedNetwork>> FitNetwork(const MachineFile& file, const RunContext& context);

// Returns the simulated time of a communication on an idle machine, in ns.
Result<int64_t> TimeOnNetwork(const FittedNetwork& network, const MeasuredMachine& machine,
                              const MeasuredKind& kind, int64_t ranks, int64_t bytes);

// Parameters of the fitted network; no row without one.
Table NetworkTable(const std::optional<FittedNetwork>& network);

// Errors of the fitted network, simulated / measured − 1, at the sizes that it was fitted to, and
// at those of the checks: one row for each communication, and none
// without a network.
Result<Table> NetworkFitTable(const MachineFile& file);

}  // namespace etude
