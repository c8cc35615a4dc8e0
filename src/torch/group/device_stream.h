#pragma once

#include <functional>

#include <c10/core/Device.h>

namespace etude {

// Calls `work` in the order of the device's current stream, which waits until it returns. On the
// CPU it is called immediately. On CUDA devices it is called later by a CUDA thread; it must
// neither throw nor call CUDA. On other devices the calling thread first waits for the stream.
// Throws the device's errors.
void DoInStream(const c10::Device& device, std::function<void()> work);

}  // namespace etude
