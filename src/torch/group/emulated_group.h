#pragma once

#include <c10/core/Device.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "src/analysis/comm/comm_model.h"

namespace etude {

// Makes a process group with missing ranks. Its communications move no data between ranks: outputs
// are filled with this rank's input. `model` gives the time of a communication, and those of a
// group are serialized. `present`, if not null, is a CPU group of the ranks that take part: a
// communication begins when all of them have reached it. With `device`, communications begin and
// are waited for in the device's stream.
c10::intrusive_ptr<c10d::Backend> MakeEmulatedGroup(int rank, int size, const CommModel& model,
                                                    c10::intrusive_ptr<c10d::Backend> present,
                                                    const c10::Device& device);

}  // namespace etude
