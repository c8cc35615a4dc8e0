#pragma once

#include <cstdint>
#include <string>

#include "src/base/result.h"
#include "src/run/step/data_flow.h"
#include "src/run/step/recorded_step.h"

namespace etude {

// Whether an operator of the step used a device other than the CPU.
bool UsesDevice(const RecordedStep& step, const DataFlow& flow);

// `wanted` as PyTorch writes it, "cpu" or "cuda:0": of any kind that PyTorch knows by then, also
// from a library that was loaded. kUsage if there is no such kind, kUnavailable if it is not there.
Result<std::string> FindDevice(const std::string& wanted);

// Which of its machine's processes one of several ranks is.
struct LocalPlace {
  int64_t number = 0;
  // Whoever started it may have shown it devices of its own.
  bool is_launched = false;
};

// The device to replay on, "cpu" or "cuda:N": the one that is wanted, or for "" a GPU if the trace
// used a device and there is one. kUnavailable if it is not there, kUsage if there is no such kind.
Result<std::string> ChooseDevice(const std::string& wanted, bool trace_uses_device);
// Of the devices of this kind that of the process's place. kUnavailable if there are too few.
Result<std::string> DeviceAt(const std::string& device, const LocalPlace& place);
// Makes it the device of this thread, where operators work that are told none.
void SetDevice(const std::string& device);

// kUsage for a device on which replays have never run, unless `experimental`: all but the CPU
// and CUDA's.
Status CheckTried(const std::string& device, bool experimental);

// What the device draws from now on follows from `seed`. One without a generator draws on the CPU.
void SeedDevice(const std::string& device, uint64_t seed);

// Waits until the device has done all that it was given.
void Synchronize(const std::string& device);
// Whether a device still works for this process: an assertion that fails in a kernel ends that.
bool IsAlive(const std::string& device);

}  // namespace etude
