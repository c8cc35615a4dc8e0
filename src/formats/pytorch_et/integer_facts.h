#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace etude::capture {

// What a recorder notes of the elements of an integer tensor.
struct IntegerFacts {
  int64_t least = 0;
  int64_t greatest = 0;
  bool ascends = true;  // no element is less than the one before it
  // Of a sample, see IntegerReader; 0 elements: not counted.
  uint64_t sampled = 0;
  uint64_t distinct = 0;
  uint64_t equal_pairs = 0;  // pairs of sampled elements with the same value

  friend bool operator==(const IntegerFacts&, const IntegerFacts&) = default;
};

// Reads integer tensors through. Keeps its memory between tensors; not thread-safe. Part of the
// recorder's library: uses nothing of Etude.
class IntegerReader {
 public:
  // Tensors with more elements are sampled: one element at a random place of each of so many equal
  // parts, at the same places each time.
  static constexpr size_t kMostSampled = 8192;

  // Elements of type T at `data` in the order of the tensor, by sizes and strides in elements;
  // there is at least one. With `count`, distinct values and equal pairs are counted. Least,
  // greatest and `ascends` are always of all elements.
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

  // All elements of such a tensor, valid until the next call.
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
  std::vector<Slot> slots_;  // a hash table with open addressing
};

}  // namespace etude::capture
