#include "src/replay/comm_batches.h"

#include <algorithm>

namespace etude {

std::vector<CommBatch> FindCommBatches(std::span<const std::optional<std::string>> groups,
                                       std::span<const std::vector<uint32_t>> waits) {
  std::vector<CommBatch> batches;
  const auto count = static_cast<uint32_t>(groups.size());
  for (uint32_t first = 0; first < count;) {
    uint32_t end = first + 1;
    const auto goes_on = [&] {
      return end < count && groups[end] == groups[first] &&
             std::ranges::none_of(waits[end], [&](uint32_t awaited) { return awaited >= first; });
    };
    if (groups[first]) {
      while (goes_on()) ++end;
      batches.push_back({first, end - 1});
    }
    first = end;
  }
  return batches;
}

const CommBatch* BatchOf(std::span<const CommBatch> batches, size_t index) {
  const auto batch = std::ranges::lower_bound(batches, index, {}, &CommBatch::last);
  return batch == batches.end() || batch->first > index ? nullptr : &*batch;
}

}  // namespace etude
