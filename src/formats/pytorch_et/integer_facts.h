#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace etude::capture {

// Facts of an integer tensor's elements, as recorded.
struct IntegerFacts {
  int64_t least = 0;
  int64_t greatest = 0;
  bool ascends = true;  // no element is less than its predecessor
  // Counts of a sample, see IntegerReader; 0 elements: not counted.
  uint64_t sampled = 0;
  uint64_t distinct = 0;
  uint64_t equal_pairs = 0;  // pairs of sampled elements with equal values

  friend bool operator==(const IntegerFacts&, const IntegerFacts&) = default;
};

// Examines integer tensors. Reuses its memory; not thread-safe. Part of the recorder's library,
// independent of the rest of Etude.
class IntegerReader {
 public:
  // Larger tensors are sampled: one element at a random place in each of this many equal parts, at
  // the same places each time.
  static constexpr size_t kMostSampled = 8192;

  // Examines the elements at `data` in tensor order, by sizes and strides in elements; there must
  // be at least one. With `count`, counts distinct values and equal pairs. Min, max and `ascends`
  // always cover all elements.
  template <typename T>
  IntegerFacts Read(const T* data, std::span<const int64_t> sizes, std::span<const int64_t> strides,
                    bool count) {
    IntegerFacts facts = ReadAll(data, sizes, strides);
    if (count) {
      TakeSample(data, sizes, strides, kMostSampled);
      CountSample(facts);
    }
    return facts;
  }

  // Returns all elements of such a tensor, valid until the next call.
  template <typename T>
  std::span<const int64_t> Values(const T* data, std::span<const int64_t> sizes,
                                  std::span<const int64_t> strides) {
    TakeSample(data, sizes, strides, UINT64_MAX);
    return sample_;
  }

 private:
  template <typename T>
  static IntegerFacts ReadAll(const T* data, std::span<const int64_t> sizes,
                              std::span<const int64_t> strides);
  template <typename T>
  void TakeSample(const T* data, std::span<const int64_t> sizes, std::span<const int64_t> strides,
                  uint64_t most);
  void CountSample(IntegerFacts& facts);

  std::vector<int64_t> sample_;
  struct Slot {
    int64_t value = 0;
    uint32_t count = 0;
  };
  std::vector<Slot> slots_;  // hash table with open addressing
};

}  // namespace etude::capture
