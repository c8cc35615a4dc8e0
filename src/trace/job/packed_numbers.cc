#include "src/trace/job/packed_numbers.h"

#include <unordered_map>
#include <utility>

namespace etude {
namespace {

using Expect = PackedNumbers::Expect;

constexpr Expect kExpectations[] = {Expect::kZero, Expect::kLast, Expect::kAlike,
                                    Expect::kAlikeSteps, Expect::kNext};

void AddVarint(uint64_t value, std::string& bytes) {
  while (value >= 0x80) {
    bytes += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  bytes += static_cast<char>(value);
}

// Maps numbers with a small magnitude of either sign to small unsigned numbers.
uint64_t ToUnsigned(uint64_t difference) {
  return (difference << 1) ^ (difference >> 63 != 0 ? UINT64_MAX : 0);
}
uint64_t ToDifference(uint64_t folded) {
  return (folded >> 1) ^ ((folded & 1) != 0 ? UINT64_MAX : 0);
}

}  // namespace

// State of the predictions, the same when packing and reading. Sums wrap around.
class NumberForecast {
 public:
  explicit NumberForecast(Expect expect) : expect_(expect) {}

  uint64_t Expected(uint64_t context) {
    switch (expect_) {
      case Expect::kZero: return 0;
      case Expect::kLast: return last_;
      case Expect::kAlike: return alike_[context].last;
      case Expect::kAlikeSteps: return alike_[context].last + alike_[context].step;
      case Expect::kNext: return most_ + 1;
    }
    return 0;
  }
  void Learn(uint64_t context, uint64_t number) {
    last_ = number;
    if (expect_ == Expect::kAlike || expect_ == Expect::kAlikeSteps) {
      auto [at, first] = alike_.try_emplace(context);
      at->second.step = at->second.seen ? number - at->second.last : 0;
      at->second.last = number;
      at->second.seen = true;
    }
    if (expect_ == Expect::kNext && static_cast<int64_t>(number) > static_cast<int64_t>(most_)) {
      most_ = number;
    }
  }

 private:
  struct Alike {
    uint64_t last = 0;
    uint64_t step = 0;
    bool seen = false;
  };

  Expect expect_;
  uint64_t last_ = 0;
  uint64_t most_ = UINT64_MAX;  // -1 as a signed number
  std::unordered_map<uint64_t, Alike> alike_;
};

PackedNumbers PackNumbers(std::span<const int64_t> numbers, std::span<const uint64_t> contexts) {
  PackedNumbers best;
  for (const Expect expect : kExpectations) {
    NumberForecast forecast(expect);
    PackedNumbers packed{.expect = expect, .bytes = {}};
    uint64_t zeros = 0;
    const auto end_run = [&] {
      if (zeros == 0) return;
      packed.bytes += '\0';
      AddVarint(zeros - 1, packed.bytes);
      zeros = 0;
    };
    for (size_t i = 0; i < numbers.size(); ++i) {
      const auto number = static_cast<uint64_t>(numbers[i]);
      const uint64_t folded = ToUnsigned(number - forecast.Expected(contexts[i]));
      forecast.Learn(contexts[i], number);
      if (folded == 0) {
        ++zeros;
        continue;
      }
      end_run();
      AddVarint(folded, packed.bytes);
    }
    end_run();
    if (expect == kExpectations[0] || packed.bytes.size() < best.bytes.size()) {
      best = std::move(packed);
    }
  }
  best.bytes.shrink_to_fit();
  return best;
}

NumberReader::NumberReader(const PackedNumbers& packed)
    : packed_(&packed), forecast_(std::make_unique<NumberForecast>(packed.expect)) {}
NumberReader::NumberReader(NumberReader&&) noexcept = default;
NumberReader::~NumberReader() = default;

uint64_t NumberReader::ReadVarint() {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && at_ < packed_->bytes.size(); shift += 7) {
    const auto byte = static_cast<unsigned char>(packed_->bytes[at_++]);
    value |= uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) break;
  }
  return value;
}

int64_t NumberReader::Next(uint64_t context) {
  uint64_t difference = 0;
  if (zeros_ > 0) {
    --zeros_;
  } else if (at_ < packed_->bytes.size()) {
    const uint64_t folded = ReadVarint();
    if (folded == 0) {
      zeros_ = ReadVarint();
    } else {
      difference = ToDifference(folded);
    }
  }
  const uint64_t number = forecast_->Expected(context) + difference;
  forecast_->Learn(context, number);
  return static_cast<int64_t>(number);
}

}  // namespace etude
