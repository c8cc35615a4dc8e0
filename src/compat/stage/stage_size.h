#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "src/base/result.h"

// Sizes of STAGE's tensors: numbers of elements as functions of the parameters of model and job
// (docs/models/stage.md).
namespace etude::stage {

// In the order in which products list them.
enum class Symbol : uint8_t {
  kDff,
  kDmodel,
  kDvocal,
  kExperts,
  kHead,
  kKExperts,
  kKVHead,
  kMicroBatch,
  kSeq,
  kCp,
  kDp,
  kEp,
  kTp,
  kQkvHead,  // Head + 2*KVHead: the only sum inside a product
};
inline constexpr size_t kSymbolCount = static_cast<size_t>(Symbol::kQkvHead) + 1;

// Values of symbols; all are positive.
class SymbolValues {
 public:
  int64_t& operator[](Symbol symbol) { return values_[static_cast<size_t>(symbol)]; }
  int64_t operator[](Symbol symbol) const { return values_[static_cast<size_t>(symbol)]; }

 private:
  std::array<int64_t, kSymbolCount> values_{};
};

// An integer factor times integer powers of symbols.
struct Product {
  int64_t factor = 1;
  std::array<int8_t, kSymbolCount> powers{};

  int8_t& operator[](Symbol symbol) { return powers[static_cast<size_t>(symbol)]; }
  int8_t operator[](Symbol symbol) const { return powers[static_cast<size_t>(symbol)]; }
  friend bool operator==(const Product&, const Product&) = default;
};
Product operator*(const Product& a, const Product& b);
// Returns `a` / `b`; `b` must have factor 1.
Product operator/(const Product& a, const Product& b);

// A sum of products; no two terms have equal powers.
struct Size {
  std::vector<Product> terms;
  bool per_dp = false;  // the sum is divided among the data-parallel ranks

  Size() = default;
  Size(const Product& product) : terms{product} {}  // NOLINT: a product is a sum

  void Add(const Product& product);
  bool Has(Symbol symbol) const;
  friend bool operator==(const Size&, const Size&) = default;
};

// Returns STAGE's notation: "KExperts*Seq/(cp*tp)".
std::string Text(const Size& size);

// Returns the nearest double. kBadInput if a part exceeds 62 bits.
Result<double> Evaluate(const Size& size, const SymbolValues& values);

}  // namespace etude::stage
