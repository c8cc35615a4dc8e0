#include "src/formats/pytorch_et/integer_facts.h"

#include <algorithm>
#include <bit>

#include "src/base/random_stream.h"

namespace etude::capture {
namespace {

// Returns the offset, in elements, of the element at `position` in tensor order.
int64_t OffsetOf(uint64_t position, std::span<const int64_t> sizes,
                 std::span<const int64_t> strides) {
  int64_t offset = 0;
  for (size_t i = sizes.size(); i-- > 0;) {
    const auto size = static_cast<uint64_t>(sizes[i]);
    offset += static_cast<int64_t>(position % size) * strides[i];
    position /= size;
  }
  return offset;
}

}  // namespace

template <typename T>
IntegerFacts IntegerReader::ReadAll(const T* data, std::span<const int64_t> sizes,
                                    std::span<const int64_t> strides) {
  T least = *data;
  T greatest = *data;
  T last = *data;
  bool ascends = true;
  // The last dimension in a tight loop, the others as a counter.
  const int64_t inner = sizes.empty() ? 1 : sizes.back();
  const int64_t step = sizes.empty() ? 0 : strides.back();
  std::vector<int64_t> index(sizes.empty() ? 0 : sizes.size() - 1);
  while (true) {
    for (int64_t i = 0; i < inner; ++i) {
      const T value = data[i * step];
      least = std::min(least, value);
      greatest = std::max(greatest, value);
      ascends &= value >= last;
      last = value;
    }
    size_t dimension = index.size();
    while (dimension-- > 0) {
      data += strides[dimension];
      if (++index[dimension] < sizes[dimension]) break;
      data -= strides[dimension] * sizes[dimension];
      index[dimension] = 0;
    }
    if (dimension == SIZE_MAX) break;
  }
  IntegerFacts facts;
  facts.least = static_cast<int64_t>(least);
  facts.greatest = static_cast<int64_t>(greatest);
  facts.ascends = ascends;
  return facts;
}

template <typename T>
void IntegerReader::TakeSample(const T* data, std::span<const int64_t> sizes,
                               std::span<const int64_t> strides, uint64_t most) {
  uint64_t elements = 1;
  for (const int64_t size : sizes) elements *= static_cast<uint64_t>(size);
  sample_.clear();
  if (elements <= most) {
    for (uint64_t i = 0; i < elements; ++i) {
      sample_.push_back(static_cast<int64_t>(data[OffsetOf(i, sizes, strides)]));
    }
    return;
  }
  for (uint64_t part = 0; part < most; ++part) {
    __extension__ using Wide = unsigned __int128;
    const auto begin = static_cast<uint64_t>(Wide{elements} * part / most);
    const auto end = static_cast<uint64_t>(Wide{elements} * (part + 1) / most);
    const uint64_t position = begin + RandomStream(part).Below(end - begin);
    sample_.push_back(static_cast<int64_t>(data[OffsetOf(position, sizes, strides)]));
  }
}

void IntegerReader::CountSample(IntegerFacts& facts) {
  slots_.assign(std::bit_ceil(2 * sample_.size()), {});
  const uint64_t mask = slots_.size() - 1;
  for (const int64_t value : sample_) {
    uint64_t at = RandomStream(static_cast<uint64_t>(value)).Next() & mask;
    while (slots_[at].count != 0 && slots_[at].value != value) at = (at + 1) & mask;
    if (slots_[at].count == 0) ++facts.distinct;
    facts.equal_pairs += slots_[at].count;
    slots_[at].value = value;
    ++slots_[at].count;
  }
  facts.sampled = sample_.size();
}

#define ETUDE_INTEGER_READER(T)                                                    \
  template IntegerFacts IntegerReader::ReadAll(const T*, std::span<const int64_t>, \
                                               std::span<const int64_t>);          \
  template void IntegerReader::TakeSample(const T*, std::span<const int64_t>,      \
                                          std::span<const int64_t>, uint64_t)
ETUDE_INTEGER_READER(uint8_t);
ETUDE_INTEGER_READER(int8_t);
ETUDE_INTEGER_READER(int16_t);
ETUDE_INTEGER_READER(int32_t);
ETUDE_INTEGER_READER(int64_t);
#undef ETUDE_INTEGER_READER

}  // namespace etude::capture
