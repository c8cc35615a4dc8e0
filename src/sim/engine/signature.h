#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "src/sim/machine/travel.h"

namespace etude {

// 128-bit hash of a sequence of numbers; different sequences collide with a probability of 2^-128.
class Signature {
 public:
  void Add(uint64_t value) {
    low_ = Mix(low_ ^ value);
    high_ = Mix(high_ + value * 0xD6E8FEB86659FD93ull);
  }
  void Add(int64_t value) { Add(static_cast<uint64_t>(value)); }
  void Add(double value) { Add(std::bit_cast<uint64_t>(value)); }
  void Add(const Signature& other) {
    Add(other.low_);
    Add(other.high_);
  }
  void Add(Travel::Way way) {
    Add(uint64_t{way.dim});
    Add(way.hops);
    Add(way.fault);
  }
  void Add(LinkFault fault) {
    Add(fault.share);
    Add(fault.latency);
  }
  // Adds a signature to a sum, which does not depend on the order.
  void AddUnordered(const Signature& other) {
    low_ += other.low_;
    high_ += other.high_;
  }

  friend bool operator==(const Signature&, const Signature&) = default;
  size_t hash() const { return low_; }

 private:
  static uint64_t Mix(uint64_t value) {
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ull;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBull;
    return (value ^ (value >> 31)) + 0x9E3779B97F4A7C15ull;
  }

  uint64_t low_ = 0x243F6A8885A308D3ull;
  uint64_t high_ = 0x13198A2E03707344ull;
};
struct SignatureHash {
  size_t operator()(const Signature& signature) const { return signature.hash(); }
};

// Numbers signatures by their first occurrence. Returns the count of different ones.
inline size_t NumberSignatures(std::span<const Signature> signatures,
                               std::vector<uint32_t>& colors) {
  std::unordered_map<Signature, uint32_t, SignatureHash> numbers;
  colors.resize(signatures.size());
  for (size_t i = 0; i < signatures.size(); ++i) {
    colors[i] = numbers.emplace(signatures[i], static_cast<uint32_t>(numbers.size())).first->second;
  }
  return numbers.size();
}

}  // namespace etude
