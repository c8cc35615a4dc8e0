#include "src/compat/stage/formula.h"

#include <charconv>
#include <cstddef>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "src/base/text/ascii.h"

namespace etude {
namespace {

using WideWhole = Fraction::Whole;

WideWhole CommonDivisor(WideWhole a, WideWhole b) {
  if (a < 0) a = -a;
  while (b != 0) {
    const WideWhole rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

bool IsNameCharacter(char c) { return IsLetter(c) || IsDigit(c); }

// Recursive descent parser. After the first error, values are unused.
class FormulaReader {
 public:
  FormulaReader(std::string_view text, const FormulaNames& names) : text_(text), names_(names) {}

  Result<Fraction> Run() {
    const Fraction value = Sum();
    SkipBlanks();
    if (at_ != text_.size()) Fail(fmt::format("expected an operator at '{}'", text_.substr(at_)));
    if (fault_) return BadInput(fmt::format("formula '{}': {}", text_, *fault_));
    return value;
  }

 private:
  void Fail(std::string fault) {
    if (!fault_) fault_ = std::move(fault);
    at_ = text_.size();
  }
  void SkipBlanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool Take(char c) {
    SkipBlanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void Expect(char c) {
    if (!Take(c)) Fail(fmt::format("expected '{}'", c));
  }

  WideWhole Times(WideWhole a, WideWhole b) {
    WideWhole product = 0;
    if (__builtin_mul_overflow(a, b, &product)) Fail("more than 127 bits");
    return product;
  }
  Fraction Multiply(const Fraction& a, const Fraction& b) {
    const WideWhole first = CommonDivisor(a.over, b.under);
    const WideWhole second = CommonDivisor(b.over, a.under);
    return {Times(a.over / first, b.over / second), Times(a.under / second, b.under / first)};
  }
  Fraction Divide(const Fraction& a, const Fraction& b) {
    if (b.over == 0) {
      Fail("division by 0");
      return {};
    }
    return Multiply(a, b.over > 0 ? Fraction{b.under, b.over} : Fraction{-b.under, -b.over});
  }
  Fraction Add(const Fraction& a, const Fraction& b) {
    const WideWhole common = CommonDivisor(a.under, b.under);
    WideWhole sum = 0;
    if (__builtin_add_overflow(Times(a.over, b.under / common), Times(b.over, a.under / common),
                               &sum)) {
      Fail("more than 127 bits");
    }
    const WideWhole under = Times(a.under, b.under / common);
    if (fault_) return {};
    const WideWhole shared = CommonDivisor(sum, under);
    return {sum / shared, under / shared};
  }
  static Fraction Minus(const Fraction& a) { return {-a.over, a.under}; }

  Fraction Sum() {
    // Deeper than any formula, but safe for the stack.
    constexpr int kMostDepth = 100;
    if (++depth_ > kMostDepth) Fail("too deep");
    Fraction sum = Take('-') ? Minus(Product()) : Product();
    while (!fault_) {
      if (Take('+')) {
        sum = Add(sum, Product());
      } else if (Take('-')) {
        sum = Add(sum, Minus(Product()));
      } else {
        break;
      }
    }
    --depth_;
    return sum;
  }

  Fraction Product() {
    Fraction product = Factor();
    while (!fault_) {
      if (Take('*')) {
        product = Multiply(product, Factor());
      } else if (Take('/')) {
        product = Divide(product, Factor());
      } else {
        break;
      }
    }
    return product;
  }

  Fraction Parentheses() {
    const Fraction value = Sum();
    Expect(')');
    return value;
  }

  Fraction Factor() {
    if (Take('(')) return Parentheses();
    if (Take('[')) {
      const Fraction left = Sum();
      Expect('>');
      const Fraction difference = Add(left, Minus(Sum()));
      Expect(']');
      return {.over = difference.over > 0 ? 1 : 0};
    }
    SkipBlanks();
    const size_t begin = at_;
    while (at_ < text_.size() && IsNameCharacter(text_[at_])) ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (word.empty()) {
      Fail("expected a number or a name");
      return {};
    }
    if (IsDigit(word[0])) return Number(word);
    if (word == "up" && Take('(')) return RoundUp(Parentheses());
    const auto found = names_.find(word);
    if (found != names_.end()) return found->second;
    Fail(fmt::format("unknown name '{}'", word));
    return {};
  }

  Fraction Number(std::string_view word) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size()) {
      Fail(fmt::format("'{}' is no number", word));
    }
    return {.over = number};
  }

  static Fraction RoundUp(const Fraction& value) {
    const WideWhole down = value.over / value.under;
    return {.over = down + (value.over > 0 && value.over % value.under != 0 ? 1 : 0)};
  }

  std::string_view text_;
  const FormulaNames& names_;
  size_t at_ = 0;
  int depth_ = 0;
  std::optional<std::string> fault_;
};

}  // namespace

Result<Fraction> EvaluateFormula(std::string_view text, const FormulaNames& names) {
  return FormulaReader(text, names).Run();
}

std::string Text(const Fraction& fraction) {
  const std::string over = fmt::format("{}", fraction.over);
  return fraction.under == 1 ? over : fmt::format("{}/{}", over, fraction.under);
}

Result<int64_t> WholeNumber(const Fraction& fraction) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  if (fraction.under != 1 || fraction.over > kMost || fraction.over < -kMost) {
    return BadInput("found a number that is not whole or of more than 63 bits");
  }
  return static_cast<int64_t>(fraction.over);
}

}  // namespace etude
