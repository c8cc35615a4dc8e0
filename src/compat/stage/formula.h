#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "src/base/result.h"

namespace etude {

// A fraction in lowest terms with a positive denominator.
struct Fraction {
  __extension__ using Whole = __int128;

  Whole over = 0;
  Whole under = 1;

  friend bool operator==(const Fraction&, const Fraction&) = default;
};

// Values of names in formulas.
using FormulaNames = std::map<std::string, Fraction, std::less<>>;

// Evaluates a formula such as "2*L*(W - W/d)" exactly: numbers, names, + - * / and parentheses,
// `up(x)` for the ceiling, and `[x>y]`, 1 if true and 0 otherwise. kBadInput for syntax errors,
// unknown names, divisions by 0, and numbers beyond 127 bits.
Result<Fraction> EvaluateFormula(std::string_view text, const FormulaNames& names);

// Returns "12", "-7/2".
std::string Text(const Fraction& fraction);

// Converts to an integer. kBadInput if it is not integral or does not fit.
Result<int64_t> WholeNumber(const Fraction& fraction);

}  // namespace etude
