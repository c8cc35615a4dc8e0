#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "src/base/exit_code.h"
#include "src/base/result.h"

namespace etude {

// Runs `work(rank)` for each of `ranks`, each in a process forked from this one, which must
// have one thread only. Standard input is that of the rank `lead`; the others have none. When the
// lead's work is done, its answer is the result, and the others, which stay there until then, are
// ended. When a process fails or dies before that, all are ended and the result is the error of the
// one that failed first, with its rank. They do not outlive this process.
// kUnavailable if the system gives no processes.
Result<ExitCode> RunRanks(const std::vector<int64_t>& ranks, int64_t lead,
                          const std::function<Result<ExitCode>(int64_t rank)>& work);

// Makes this process a session of its own, as torchrun does its ranks: on a busy machine the system
// shares its processors out among sessions. What the terminal sends goes to the session left.
void BeginSession();

// Keeps this process, with the threads that it starts from now on, to the share number `place` of
// `count` equal ones of the processors that it may use. kUnavailable if these are fewer.
Status PinToShare(size_t place, size_t count);

}  // namespace etude
