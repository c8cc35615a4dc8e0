#pragma once

#include <array>
#include <string_view>

namespace etude {

// The classes of operators that options name: communication, all else, and of that matrix products,
// convolutions and attention.
inline constexpr std::array<std::string_view, 3> kOperatorClasses = {"comm", "compute", "matrix"};

bool IsOperatorClass(std::string_view what);

// Whether `what`, a class or a name with or without overload, means the operator `name`
// ("aten::mm.out").
bool MeansOperator(std::string_view what, std::string_view name, bool communicates);

}  // namespace etude
