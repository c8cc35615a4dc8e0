#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/trace/trace.h"
#include "src/transform/runnable/runnable_rank.h"

namespace etude {

// Fuses chains of operators of a rank made of `trace`: operators of these names that follow each
// other on a thread or stream, each with the result of the previous one as an input, and all with
// results of the same number of elements. A fused operator takes the time of the most expensive
// one: it reads and writes no less, and the intermediate results stay in registers. Its time is
// unknown if that of one of them is. Returns the number of chains.
//
// kBadInput for matrix products, and, with what follows the first operator, if there is no chain.
Result<uint64_t> FuseOperators(const Trace& trace, std::span<const std::string> names,
                               RunnableRank& rank);

}  // namespace etude
