#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace etude {

// PyTorch passes process groups and reductions to collectives as objects. In a trace that knows
// them they are values of kind kOpaque with these texts; where a trace does not, their text is
// another.

// "<ProcessGroup> 3", by the group's name.
std::string ProcessGroupText(std::string_view name);
// The name in such a text.
std::optional<std::string_view> ProcessGroupNameIn(std::string_view text);

// "<ReduceOp> MAX", by the number of c10d::ReduceOp::RedOpType; the number itself where that has no
// name.
std::string ReductionText(uint64_t number);
// "MAX" of that text. The number of a reduction by its name, if it has one.
std::optional<std::string_view> ReductionNameIn(std::string_view text);
std::optional<uint8_t> ReductionNumber(std::string_view name);

}  // namespace etude
