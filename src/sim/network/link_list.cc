#include "src/sim/network/link_list.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/text/quantity.h"
#include "src/base/text/words.h"
#include "src/sim/machine/machine_quantity.h"

namespace etude {
namespace {

std::string_view WithoutComment(std::string_view line) { return line.substr(0, line.find('#')); }

// A link whose ends are still names.
struct ListedLink {
  std::string_view from;
  std::string_view to;
  bool one_way = false;
  NetworkLink link;
};

Result<ListedLink> ListedLinkOf(std::vector<std::string_view> words, const std::string& place) {
  ListedLink line;
  if (words.size() > 1 && words[1] == "->") {
    line.one_way = true;
    words.erase(words.begin() + 1);
  }
  if (words.size() != 4) {
    return BadInput(
        fmt::format("{}: found {} words, expected two nodes, a bandwidth and a latency, such as "
                    "'0 leaf1 50GB/s 500ns'",
                    place, words.size()));
  }
  line.from = words[0];
  line.to = words[1];
  if (line.from == line.to) {
    return BadInput(fmt::format("{}: found a link from '{}' to itself", place, line.from));
  }
  const auto rate = kNetworkRate.of_text(words[2]);
  if (!rate || !(*rate > 0) || *rate > kMostNetworkRate) {
    return BadInput(fmt::format("{}: found the bandwidth '{}', expected {} {}", place, words[2],
                                NetworkRateRange(rate), kNetworkRate.expected));
  }
  const auto latency = kNanos.of_text(words[3]);
  if (!latency || !(*latency >= 0) || !(*latency < 1e15)) {
    return BadInput(
        fmt::format("{}: found the latency '{}', expected {}", place, words[3], kNanos.expected));
  }
  line.link.bandwidth = *rate * kBytesPerGib / 1e9;
  line.link.latency = *latency;
  return line;
}

}  // namespace

Result<NetworkGraph> ParseLinkList(const std::string& text, const std::string& path) {
  std::vector<ListedLink> lines;
  std::map<int64_t, std::string> npus;  // with the place of the first use
  std::string_view rest = text;
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
  for (int64_t number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::vector<std::string_view> words = WordsOf(WithoutComment(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (words.empty()) continue;
    const std::string place = fmt::format("{}:{}", path, number);
    ETUDE_ASSIGN_OR_RETURN(const ListedLink line, ListedLinkOf(std::move(words), place));
    lines.push_back(line);
    for (const std::string_view name : {line.from, line.to}) {
      const std::optional<int64_t> npu = ParseWhole(name);
      if (!npu) continue;
      if (*npu < 0 || *npu >= kMostNpus) {
        return BadInput(fmt::format("{}: found NPU {}, expected NPUs from 0 to {}", place, *npu,
                                    kMostNpus - 1));
      }
      npus.emplace(*npu, place);
    }
  }
  if (npus.empty()) return BadInput(fmt::format("{}: found no NPUs, expected links", path));
  int64_t next = 0;
  for (const auto& [npu, place] : npus) {
    if (npu != next) {
      return BadInput(fmt::format("{}: found NPU {}, but no link of NPU {}", place, npu, next));
    }
    ++next;
  }
  NetworkDimInfo info{.topology = fmt::format("{} NPUs, {} links from a list", next, lines.size()),
                      .npus = next,
                      .bandwidth = lines[0].link.bandwidth,
                      .latency = lines[0].link.latency};
  for (const ListedLink& line : lines) {
    if (info.bandwidth != line.link.bandwidth) info.bandwidth.reset();
    if (info.latency != line.link.latency) info.latency.reset();
  }
  NetworkGraph graph({std::move(info)});
  const auto node = [&](std::string_view name) {
    const std::optional<uint32_t> found = graph.Find(name);
    return found ? *found : graph.AddDevice(std::string(name));
  };
  for (const ListedLink& line : lines) {
    NetworkLink link = line.link;
    link.from = node(line.from);
    link.to = node(line.to);
    if (line.one_way) {
      graph.AddOneWay(link);
    } else {
      graph.AddLink(link);
    }
  }
  return graph;
}

}  // namespace etude
