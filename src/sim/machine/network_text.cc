#include "src/sim/machine/network_text.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include <fmt/format.h>

#include "src/base/text/ascii.h"
#include "src/sim/machine/astra_config.h"

namespace etude {
namespace {

constexpr std::string_view kExample = "such as \"Ring(8):50GB/s,500ns Switch(4):25GB/s,1us\"";

tl::unexpected<Error> Missing(std::string_view dim, std::string_view what) {
  return BadInput(fmt::format("found '{}' without {}, expected dimensions {}{}", dim, what,
                              kExample, TopologyHint(dim.substr(0, dim.find('(')))));
}

std::string_view WithoutSpaces(std::string_view text) {
  return Trimmed(text, [](char c) { return c == ' '; });
}

// Takes the first dimension, up to the blank before the next one.
std::string_view TakeDim(std::string_view& dims) {
  size_t end = dims.find(' ');
  while (end < dims.size() && !IsNetworkOfDims(dims.substr(end))) end = dims.find(' ', end + 1);
  const std::string_view dim = dims.substr(0, end);
  dims.remove_prefix(dim.size());
  return WithoutSpaces(dim);
}

}  // namespace

bool IsNetworkOfDims(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const auto end = std::ranges::find_if_not(text, IsLetter);
  return end != text.end() && *end == '(';
}

Result<std::string> NetworkOfDims(std::string_view dims) {
  constexpr std::string_view kForeign = "\"\\\n";
  if (dims.find_first_of(kForeign) != dims.npos) {
    return BadInput(fmt::format(
        "found a quote, a backslash or a line break, expected dimensions {}", kExample));
  }
  struct Field {
    std::string_view end;
    std::string_view missing;  // at the end
  };
  constexpr Field kFields[] = {{"(", "ranks in parentheses"},
                               {")", "a closing parenthesis"},
                               {",", "a latency"},
                               {"", "a latency"}};
  std::string lists[std::size(kFields)];
  while (!dims.empty()) {
    dims = WithoutSpaces(dims);
    const std::string_view dim = TakeDim(dims);
    if (dim.empty()) continue;
    std::string_view rest = dim;
    for (size_t i = 0; i < std::size(kFields); ++i) {
      const auto& [mark, missing] = kFields[i];
      if (i == 2) {  // bandwidth
        if (!rest.starts_with(':')) return Missing(dim, "a bandwidth and a latency");
        rest.remove_prefix(1);
      }
      const size_t end = mark.empty() ? rest.size() : rest.find(mark);
      if (end == std::string_view::npos || (mark.empty() && end == 0)) return Missing(dim, missing);
      lists[i] +=
          fmt::format("{}\"{}\"", lists[i].empty() ? "" : ", ", WithoutSpaces(rest.substr(0, end)));
      rest.remove_prefix(end + mark.size());
    }
  }
  return fmt::format("topology: [{}]\nnpus_count: [{}]\nbandwidth: [{}]\nlatency: [{}]\n", lists[0],
                     lists[1], lists[2], lists[3]);
}

}  // namespace etude
