#pragma once

#include <functional>

#include <c10/core/Device.h>

namespace etude {

// Calls `work` when the device has done what its current stream was given so far, and has the
// stream go on when it returns, as communications do. On the CPU at once; on CUDA devices later, on
// a thread of CUDA's, where `work` must neither throw nor call CUDA; on others this thread waits
// for the stream first. Throws what the device throws.
void DoInStream(const c10::Device& device, std::function<void()> work);

}  // namespace etude
