#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "src/base/exit_code.h"
#include "src/base/result.h"

namespace etude {

// Runs `work(rank)` for each of `ranks` in a process forked from this one, which must be
// single-threaded. The rank `lead` inherits standard input; the others have none. When the lead is
// done, its answer is the result and the others, which wait until then, are ended. If a process
// fails or dies before, all are ended and the result is the first error, with its rank. The
// processes do not outlive this one. kUnavailable if the system cannot create processes.
Result<ExitCode> RunRanks(const std::vector<int64_t>& ranks, int64_t lead,
                          const std::function<Result<ExitCode>(int64_t rank)>& work);

// Makes this process the leader of a new session, as torchrun does for its ranks: a busy system
// divides processors among sessions. Terminal signals go to the old session.
void BeginSession();

// Pins this process and the threads that it starts later to share `place` of `count` equal shares
// of its processors. kUnavailable if there are fewer processors than shares.
Status PinToShare(size_t place, size_t count);

}  // namespace etude
