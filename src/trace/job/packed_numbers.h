#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace etude {

// Whole numbers of one meaning, as differences from predicted values: seldom more than a byte each,
// and one or two bytes per run of exact predictions. Each number has a context of similar earlier
// numbers. One prediction method is chosen for all numbers.
struct PackedNumbers {
  enum class Expect : uint8_t {
    kZero,
    kLast,        // the previous number
    kAlike,       // the last one of the context
    kAlikeSteps,  // the last one of the context plus its difference from the one before
    kNext,        // one more than the max so far
  };

  Expect expect = Expect::kZero;
  std::string bytes;
};

PackedNumbers PackNumbers(std::span<const int64_t> numbers, std::span<const uint64_t> contexts);

class NumberForecast;

// Reads the numbers in order. `packed` must outlive it.
class NumberReader {
 public:
  explicit NumberReader(const PackedNumbers& packed);
  NumberReader(NumberReader&&) noexcept;
  ~NumberReader();

  // Returns the next number; past the end, the predicted one.
  int64_t Next(uint64_t context);

 private:
  uint64_t ReadVarint();

  const PackedNumbers* packed_;
  size_t at_ = 0;
  uint64_t zeros_ = 0;  // zeros left in the current run
  std::unique_ptr<NumberForecast> forecast_;
};

}  // namespace etude
