#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace etude {

// Whole numbers of one meaning, as far from what is expected of them: seldom more than a byte each,
// and runs of what was expected a byte or two. Each number has a context, in which similar ones
// came before. What to expect is chosen for all numbers together.
struct PackedNumbers {
  enum class Expect : uint8_t {
    kZero,
    kLast,        // the number before
    kAlike,       // the last one of the context
    kAlikeSteps,  // … and as much more as that was more than the one before it
    kNext,        // one more than the largest so far
  };

  Expect expect = Expect::kZero;
  std::string bytes;
};

PackedNumbers PackNumbers(std::span<const int64_t> numbers, std::span<const uint64_t> contexts);

class NumberForecast;

// Gives the numbers back, in their order. `packed` outlives it.
class NumberReader {
 public:
  explicit NumberReader(const PackedNumbers& packed);
  NumberReader(NumberReader&&) noexcept;
  ~NumberReader();

  // Beyond the last one: what is expected.
  int64_t Next(uint64_t context);

 private:
  uint64_t ReadVarint();

  const PackedNumbers* packed_;
  size_t at_ = 0;
  uint64_t zeros_ = 0;  // still to come of a run
  std::unique_ptr<NumberForecast> forecast_;
};

}  // namespace etude
