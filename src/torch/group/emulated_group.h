#pragma once

#include <c10/core/Device.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "src/analysis/comm/comm_model.h"

namespace etude {

// A process group some of whose ranks are not there. Its communications move no data between ranks:
// outputs are filled with what this rank puts in, and a communication is over as long after its
// beginning as `model` says, those of the group one after the other. If `present` is given, a group
// of the ranks that are there and of the CPU, none begins before all of these have come to it.
// Where `device` is none, a communication begins, and is waited for, in the device's stream.
c10::intrusive_ptr<c10d::Backend> MakeEmulatedGroup(int rank, int size, const CommModel& model,
                                                    c10::intrusive_ptr<c10d::Backend> present,
                                                    const c10::Device& device);

}  // namespace etude
