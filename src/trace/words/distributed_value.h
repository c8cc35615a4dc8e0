#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace etude {

// PyTorch passes process groups and reductions to collectives as objects. If a trace identifies
// them, they are values of kind kOpaque with these texts; otherwise their text is another one.

// Returns "<ProcessGroup> 3", with the group's name.
std::string ProcessGroupText(std::string_view name);
// Returns the group's name in such a text.
std::optional<std::string_view> ProcessGroupNameIn(std::string_view text);

// Returns "<ReduceOp> MAX" for the number of a c10d::ReduceOp::RedOpType; with the number itself if
// it has no name.
std::string ReductionText(uint64_t number);
// Return "MAX" of that text, and the number of a reduction with that name, if it has one.
std::optional<std::string_view> ReductionNameIn(std::string_view text);
std::optional<uint8_t> ReductionNumber(std::string_view name);

}  // namespace etude
