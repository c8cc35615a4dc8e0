#include "src/trace/words/distributed_value.h"

#include <algorithm>
#include <array>

namespace etude {
namespace {

constexpr std::string_view kGroupMark = "<ProcessGroup> ";
constexpr std::string_view kReductionMark = "<ReduceOp> ";

// c10d::ReduceOp::RedOpType, by number.
constexpr std::array<std::string_view, 9> kReductions = {
    "SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM"};

std::optional<std::string_view> After(std::string_view mark, std::string_view text) {
  if (!text.starts_with(mark)) return std::nullopt;
  return text.substr(mark.size());
}

}  // namespace

std::string ProcessGroupText(std::string_view name) {
  return std::string(kGroupMark) + std::string(name);
}

std::optional<std::string_view> ProcessGroupNameIn(std::string_view text) {
  return After(kGroupMark, text);
}

std::string ReductionText(uint64_t number) {
  return std::string(kReductionMark) +
         (number < kReductions.size() ? std::string(kReductions[number]) : std::to_string(number));
}

std::optional<std::string_view> ReductionNameIn(std::string_view text) {
  return After(kReductionMark, text);
}

std::optional<uint8_t> ReductionNumber(std::string_view name) {
  const auto found = std::ranges::find(kReductions, name);
  if (found == kReductions.end()) return std::nullopt;
  return static_cast<uint8_t>(found - kReductions.begin());
}

}  // namespace etude
