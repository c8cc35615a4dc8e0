#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "src/base/result.h"

namespace etude {

// A fraction in lowest terms; `under` is above 0.
struct Fraction {
  __extension__ using Whole = __int128;

  Whole over = 0;
  Whole under = 1;

  friend bool operator==(const Fraction&, const Fraction&) = default;
};

// What names in formulas stand for.
using FormulaNames = std::map<std::string, Fraction, std::less<>>;

// The exact value of "2*L*(W - W/d)": numbers, names, + - * / and parentheses, `up(x)`, the next
// whole number, and `[x>y]`, 1 if it is so and else 0. kBadInput for what is no formula, for
// unknown names, divisions by 0, and numbers of more than 127 bits.
Result<Fraction> EvaluateFormula(std::string_view text, const FormulaNames& names);

// "12", "-7/2".
std::string Text(const Fraction& fraction);

// kBadInput unless it is whole and fits.
Result<int64_t> WholeNumber(const Fraction& fraction);

}  // namespace etude
