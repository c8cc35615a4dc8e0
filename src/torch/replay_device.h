#pragma once

#include <cstdint>
#include <string>

#include "src/base/result.h"
#include "src/run/step/data_flow.h"
#include "src/run/step/recorded_step.h"

namespace etude {

// Returns whether an operator of the step used a device other than the CPU.
bool UsesDevice(const RecordedStep& step, const DataFlow& flow);

// Checks `wanted` in PyTorch's notation, "cpu" or "cuda:0". Any kind that PyTorch has at this time
// is accepted, including those of loaded libraries. kUsage for an unknown kind, kUnavailable for a
// missing device.
Result<std::string> FindDevice(const std::string& wanted);

// Position of one of several ranks among the processes of its machine.
struct LocalPlace {
  int64_t number = 0;
  // The launcher may have restricted its visible devices.
  bool is_launched = false;
};

// Chooses the device, "cpu" or "cuda:N": `wanted`, or for "" a GPU if the trace used a device and a
// GPU exists. kUnavailable for a missing device, kUsage for an unknown kind.
Result<std::string> ChooseDevice(const std::string& wanted, bool trace_uses_device);
// Returns the device of this kind for the process's place. kUnavailable if there are too few.
Result<std::string> DeviceAt(const std::string& device, const LocalPlace& place);
// Sets the default device of this thread.
void SetDevice(const std::string& device);

// Checks that replays have been tried on the device: the CPU and CUDA devices. kUsage for others,
// unless `experimental`.
Status CheckTried(const std::string& device, bool experimental);

// Seeds the device's generator. Devices without a generator draw on the CPU.
void SeedDevice(const std::string& device, uint64_t seed);

// Waits until the device has finished all work.
void Synchronize(const std::string& device);
// Returns whether a device still works for this process. A failed assertion in a kernel breaks it.
bool IsAlive(const std::string& device);

}  // namespace etude
