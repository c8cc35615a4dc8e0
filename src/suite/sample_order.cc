#include "src/suite/sample_order.h"

#include <numeric>

#include "src/base/container/hash.h"
#include "src/base/random_stream.h"

namespace etude::suite {

SampleOrder::SampleOrder(int64_t samples, int64_t batch, uint64_t seed)
    : samples_(samples), batch_(batch), seed_(seed), order_(static_cast<size_t>(samples)) {}

std::span<const int64_t> SampleOrder::BatchOf(int64_t step) {
  const int64_t epoch = step / steps_per_epoch();
  if (epoch != epoch_) StartEpoch(epoch);
  const int64_t first = step % steps_per_epoch() * batch_;
  return std::span(order_).subspan(static_cast<size_t>(first), static_cast<size_t>(batch_));
}

void SampleOrder::StartEpoch(int64_t epoch) {
  RandomStream random(HashMix(seed_, static_cast<uint64_t>(epoch)));
  std::iota(order_.begin(), order_.end(), 0);
  Shuffle(std::span(order_), random);
  epoch_ = epoch;
}

std::span<const int64_t> ShareOf(std::span<const int64_t> batch, int64_t part, int64_t parts) {
  const auto size = static_cast<int64_t>(batch.size());
  const int64_t begin = size * part / parts;
  const int64_t end = size * (part + 1) / parts;
  return batch.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
}

}  // namespace etude::suite
