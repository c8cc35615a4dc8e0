#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace etude::suite {

// Order of training samples: each epoch visits all samples once in a new order, except the last
// ones that do not fill a batch. A function of seed and step, so that a run can resume anywhere.
// Requires 0 < batch <= samples.
class SampleOrder {
 public:
  SampleOrder(int64_t samples, int64_t batch, uint64_t seed);

  int64_t steps_per_epoch() const { return samples_ / batch_; }
  // Returns the batch of `step`, valid until the next call.
  std::span<const int64_t> BatchOf(int64_t step);

 private:
  void StartEpoch(int64_t epoch);

  int64_t samples_;
  int64_t batch_;
  uint64_t seed_;
  int64_t epoch_ = -1;  // epoch of `order_`; -1: none
  std::vector<int64_t> order_;
};

// Returns part `part` of `parts` of a batch: contiguous, with sizes that differ by at most one.
std::span<const int64_t> ShareOf(std::span<const int64_t> batch, int64_t part, int64_t parts);

}  // namespace etude::suite
