#include "src/compat/stage/stage_size.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string_view>

namespace etude::stage {
namespace {

constexpr std::array<std::string_view, kSymbolCount> kSymbolNames = {
    "Dff",        "Dmodel", "Dvocal", "Experts", "Head", "KExperts", "KVHead",
    "MicroBatch", "Seq",    "cp",     "dp",      "ep",   "tp",       "(Head + 2*KVHead)"};

// Numerator and denominator, both positive.
struct Ratio {
  int64_t over = 1;
  int64_t under = 1;
};

constexpr int64_t kMostRatio = int64_t{1} << 62;

bool Multiply(int64_t& product, int64_t factor) {
  return !__builtin_mul_overflow(product, factor, &product) && product <= kMostRatio;
}

// Multiplies a by factor after reduction, so that only the result can overflow.
bool Scale(Ratio& ratio, int64_t factor) {
  const int64_t common = std::gcd(ratio.under, factor);
  ratio.under /= common;
  return Multiply(ratio.over, factor / common);
}
bool Divide(Ratio& ratio, int64_t divisor) {
  const int64_t common = std::gcd(ratio.over, divisor);
  ratio.over /= common;
  return Multiply(ratio.under, divisor / common);
}

bool Add(Ratio& sum, const Ratio& other) {
  const int64_t common = std::gcd(sum.under, other.under);
  int64_t right = other.over;
  if (!Multiply(sum.over, other.under / common) || !Multiply(right, sum.under / common) ||
      !Multiply(sum.under, other.under / common)) {
    return false;
  }
  sum.over += right;  // two of 62 bits
  if (sum.over > kMostRatio) return false;
  const int64_t shared = std::gcd(sum.over, sum.under);
  sum.over /= shared;
  sum.under /= shared;
  return true;
}

// Denominators first: they reduce the larger numerators.
bool RatioOf(const Product& product, const SymbolValues& values, Ratio& ratio) {
  bool fits = true;
  for (size_t i = 0; i < kSymbolCount; ++i) {
    for (int n = product.powers[i]; n < 0 && fits; ++n) {
      fits = Divide(ratio, values[static_cast<Symbol>(i)]);
    }
  }
  fits = fits && Scale(ratio, product.factor);
  for (size_t i = 0; i < kSymbolCount; ++i) {
    for (int n = product.powers[i]; n > 0 && fits; --n) {
      fits = Scale(ratio, values[static_cast<Symbol>(i)]);
    }
  }
  return fits;
}

void AppendPower(size_t symbol, int power, std::string& text) {
  if (!text.empty()) text += '*';
  text += kSymbolNames[symbol];
  if (power > 1) text += "**" + std::to_string(power);
}

std::string TermText(const Product& product) {
  std::string over;
  std::string under;
  size_t unders = 0;
  if (product.factor != 1) over = std::to_string(product.factor);
  for (size_t i = 0; i < kSymbolCount; ++i) {
    const int power = product.powers[i];
    if (power > 0) AppendPower(i, power, over);
    if (power < 0) {
      AppendPower(i, -power, under);
      ++unders;
    }
  }
  if (over.empty()) over = "1";
  if (unders == 0) return over;
  return over + (unders == 1 ? "/" + under : "/(" + under + ")");
}

}  // namespace

Product operator*(const Product& a, const Product& b) {
  Product product = a;
  product.factor *= b.factor;
  for (size_t i = 0; i < kSymbolCount; ++i) {
    product.powers[i] = static_cast<int8_t>(product.powers[i] + b.powers[i]);
  }
  return product;
}

Product operator/(const Product& a, const Product& b) {
  Product quotient = a;
  for (size_t i = 0; i < kSymbolCount; ++i) {
    quotient.powers[i] = static_cast<int8_t>(quotient.powers[i] - b.powers[i]);
  }
  return quotient;
}

// Larger powers of earlier symbols first, like STAGE's sums.
void Size::Add(const Product& product) {
  const auto at = std::ranges::lower_bound(terms, product.powers, std::greater(), &Product::powers);
  if (at != terms.end() && at->powers == product.powers) {
    at->factor += product.factor;
  } else {
    terms.insert(at, product);
  }
}

bool Size::Has(Symbol symbol) const {
  if (per_dp && symbol == Symbol::kDp) return true;
  return std::ranges::any_of(terms, [&](const Product& term) { return term[symbol] != 0; });
}

std::string Text(const Size& size) {
  std::string text;
  for (const Product& term : size.terms) {
    if (!text.empty()) text += " + ";
    text += TermText(term);
  }
  return size.per_dp ? "(" + text + ")/dp" : text;
}

Result<double> Evaluate(const Size& size, const SymbolValues& values) {
  Ratio sum{.over = 0};
  bool fits = true;
  for (const Product& term : size.terms) {
    Ratio ratio;
    fits = fits && RatioOf(term, values, ratio) && Add(sum, ratio);
  }
  if (size.per_dp) fits = fits && Divide(sum, values[Symbol::kDp]);
  if (!fits) {
    return BadInput(Text(size) + " is more than 62 bits with these dimensions");
  }
  return static_cast<double>(sum.over) / static_cast<double>(sum.under);
}

}  // namespace etude::stage
