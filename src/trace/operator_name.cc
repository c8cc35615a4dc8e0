#include "src/trace/operator_name.h"

#include <algorithm>
#include <array>

#include "src/trace/enums.h"

namespace etude {
namespace {

constexpr auto kCommBackends = std::to_array<std::string_view>({
    "nccl:",
    "gloo:",
    "mpi:",
    "ucc:",
    "xccl:",
    "hccl:",
});

// Whether an argument's text, "int dst" or "int tag=0", ends in this name.
bool IsNamed(std::string_view argument, std::string_view name) {
  argument = argument.substr(0, argument.find('='));
  if (!argument.ends_with(name)) return false;
  argument.remove_suffix(name.size());
  return argument.ends_with(' ');
}

}  // namespace

std::optional<size_t> ArgumentPosition(std::string_view schema, std::string_view name) {
  size_t begin = schema.find('(');
  if (begin == std::string_view::npos) return std::nullopt;
  ++begin;
  size_t position = 0;
  size_t depth = 1;  // "Tensor(a!)" and "int[2]=[0, 0]" have brackets of their own
  for (size_t i = begin; i < schema.size(); ++i) {
    const char c = schema[i];
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (depth != 0 && (depth != 1 || c != ',')) continue;
    const std::string_view argument = schema.substr(begin, i - begin);
    if (IsNamed(argument, name)) return position;
    if (depth == 0) return std::nullopt;
    if (argument != " *") ++position;  // no argument: those behind it are given by name
    begin = i + 1;
  }
  return std::nullopt;
}

std::string_view CommOfLabel(std::string_view name) {
  for (const std::string_view backend : kCommBackends) {
    if (!name.starts_with(backend)) continue;
    const std::string_view rest = name.substr(backend.size());
    return CollectiveFromName(rest) || PointToPointFromName(rest) ? rest : std::string_view();
  }
  return {};
}

bool IsGlooLabel(std::string_view name) { return name.starts_with("gloo:"); }

}  // namespace etude
