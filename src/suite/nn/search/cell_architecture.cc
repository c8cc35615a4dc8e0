#include "src/suite/nn/search/cell_architecture.h"

#include <array>
#include <string_view>

#include <fmt/format.h>

namespace etude::suite {
namespace {

constexpr std::array<std::string_view, kCellActivations> kNames = {"tanh", "relu", "identity",
                                                                   "sigmoid"};

}  // namespace

std::vector<int64_t> LooseEnds(const CellArchitecture& cell) {
  std::vector<bool> is_read(cell.size());
  for (size_t node = 1; node < cell.size(); ++node) {
    is_read[static_cast<size_t>(cell[node].previous)] = true;
  }
  std::vector<int64_t> loose;
  for (size_t node = 0; node < cell.size(); ++node) {
    if (!is_read[node]) loose.push_back(static_cast<int64_t>(node));
  }
  return loose;
}

std::string ToText(const CellArchitecture& cell) {
  std::string text;
  for (size_t node = 0; node < cell.size(); ++node) {
    text += fmt::format("{}{} {}", node == 0 ? "" : "; ", node + 1,
                        kNames[static_cast<size_t>(cell[node].activation)]);
    if (node > 0) text += fmt::format(" of {}", cell[node].previous + 1);
  }
  return text;
}

CellArchitecture DrawCell(int64_t nodes, RandomStream& random) {
  CellArchitecture cell;
  for (int64_t node = 0; node < nodes; ++node) {
    const int64_t previous =
        node == 0 ? 0 : static_cast<int64_t>(random.Below(static_cast<uint64_t>(node)));
    cell.push_back({previous, static_cast<CellActivation>(random.Below(kCellActivations))});
  }
  return cell;
}

}  // namespace etude::suite
