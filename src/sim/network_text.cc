#include "src/sim/network_text.h"

#include <cstddef>
#include <iterator>

#include <fmt/format.h>

namespace etude {

std::optional<std::string> NetworkOfDims(std::string_view dims) {
  constexpr std::string_view kForeign = "\"\\\n";
  if (dims.find_first_of(kForeign) != dims.npos) return std::nullopt;
  std::string lists[4];
  while (!dims.empty()) {
    const size_t blank = dims.find(' ');
    std::string_view dim = dims.substr(0, blank);
    dims.remove_prefix(blank == std::string_view::npos ? dims.size() : blank + 1);
    if (dim.empty()) continue;
    constexpr std::string_view kEnds[] = {"(", "):", ",", ""};
    for (size_t i = 0; i < std::size(kEnds); ++i) {
      const size_t end = kEnds[i].empty() ? dim.size() : dim.find(kEnds[i]);
      if (end == std::string_view::npos) return std::nullopt;
      lists[i] += fmt::format("{}\"{}\"", lists[i].empty() ? "" : ", ", dim.substr(0, end));
      dim.remove_prefix(end + kEnds[i].size());
    }
  }
  return fmt::format("topology: [{}]\nnpus_count: [{}]\nbandwidth: [{}]\nlatency: [{}]\n", lists[0],
                     lists[1], lists[2], lists[3]);
}

}  // namespace etude
