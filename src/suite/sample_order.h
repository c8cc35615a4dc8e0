#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace etude::suite {

// Which training samples each step sees: every epoch all of them once, in an order of its own, but
// for the last ones that fill no batch. A function of seed and step, so that a run can go on
// anywhere. Needs 0 < batch <= samples.
class SampleOrder {
 public:
  SampleOrder(int64_t samples, int64_t batch, uint64_t seed);

  int64_t steps_per_epoch() const { return samples_ / batch_; }
  // The batch of `step`, valid until the next call.
  std::span<const int64_t> BatchOf(int64_t step);

 private:
  void StartEpoch(int64_t epoch);

  int64_t samples_;
  int64_t batch_;
  uint64_t seed_;
  int64_t epoch_ = -1;  // whose order `order_` is; -1: none
  std::vector<int64_t> order_;
};

// The share of `part` of `parts` in a batch: contiguous, of sizes that differ by one at most.
std::span<const int64_t> ShareOf(std::span<const int64_t> batch, int64_t part, int64_t parts);

}  // namespace etude::suite
