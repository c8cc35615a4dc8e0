#pragma once

#include <array>
#include <string_view>

namespace etude {

// Classes of operators in options: communication, all other operators, and among those matrix
// products, convolutions and attention.
inline constexpr std::array<std::string_view, 3> kOperatorClasses = {"comm", "compute", "matrix"};

bool IsOperatorClass(std::string_view what);

// Returns true if `what`, a class or a name with or without overload, matches the operator `name`
// ("aten::mm.out").
bool MeansOperator(std::string_view what, std::string_view name, bool communicates);

}  // namespace etude
