#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/sim/machine/machine_file.h"

namespace etude {

class RankGroup;

// Measures communications of the first ranks of a job through c10d, with elements of type float32
// in the memory of the CPU or of one CUDA device per rank, and computations of these ranks at the
// same time. All of these ranks make one and call Measure with the same arguments. Not thread-safe.
class CollectiveTimer {
 public:
  // Requests a process group of the first `ranks` of `group`, which include this one. `device` is
  // the one that the group uses, "cpu" or "cuda:0". Call before RankGroup::Connect. PyTorch's pool
  // of this process gets one thread. Errors of RankGroup::Group.
  static Result<std::unique_ptr<CollectiveTimer>> Make(RankGroup& group, int64_t ranks,
                                                       const std::string& device);
  ~CollectiveTimer();
  CollectiveTimer(const CollectiveTimer&) = delete;
  CollectiveTimer& operator=(const CollectiveTimer&) = delete;

  // Returns the version of PyTorch, whose collectives are measured.
  static std::string_view TorchVersion();

  // Returns the name of a CUDA device. kUnavailable if it cannot be used.
  static Result<std::string> NameOfDevice(const std::string& device);

  // Measures a communication of `bytes`, which are whole elements for each part that a rank sends,
  // up to `most_repeats` times; large ones less often. A message goes from rank 0 to rank 1. The
  // result is the same on all ranks. kInternal if the communication fails.
  Result<MeasuredSeries::Point> Measure(const MeasuredKind& kind, int64_t bytes,
                                        int64_t most_repeats);

  // Measures a computation on tensors of `bytes`, which for a product are square matrices, in up to
  // `most_repeats` blocks of as many calls as take milliseconds: the mean over ranks of the median
  // block. The result is the same on all ranks. kInternal if the computation fails.
  Result<MeasuredComputation::Point> Measure(ComputationType type, DType dtype, int64_t bytes,
                                             int64_t most_repeats);

 private:
  struct Impl;
  explicit CollectiveTimer(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace etude
