#include "src/sim/network/network_graph.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/text/nearest.h"
#include "src/base/text/quantity.h"

namespace etude {
namespace {

constexpr uint32_t kFar = UINT32_MAX;

uint64_t Mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ull;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBull;
  return value ^ (value >> 31);
}

}  // namespace

NetworkGraph::NetworkGraph(std::vector<NetworkDimInfo> dims) : dims_(std::move(dims)) {
  for (const NetworkDimInfo& dim : dims_) {
    strides_.push_back(npus_);
    npus_ *= dim.npus;
  }
}

uint32_t NetworkGraph::AddDevice(std::string name) {
  const uint32_t node = nodes();
  node_of_.emplace(name, node);
  device_names_.push_back(std::move(name));
  return node;
}

void NetworkGraph::AddLink(NetworkLink link) {
  links_.push_back(link);
  std::swap(link.from, link.to);
  links_.push_back(link);
}

std::string NetworkGraph::NameOf(uint32_t node) const {
  const auto npus = static_cast<uint32_t>(npus_);
  return node < npus ? std::to_string(node) : device_names_[node - npus];
}

std::optional<uint32_t> NetworkGraph::Find(std::string_view name) const {
  const auto number = ParseWhole(name);
  if (number && *number >= 0 && *number < npus_) return static_cast<uint32_t>(*number);
  const auto found = node_of_.find(std::string(name));
  if (found == node_of_.end()) return std::nullopt;
  return found->second;
}

Status NetworkGraph::Slow(std::string_view text) {
  const auto wrong = [&](std::string_view what) {
    return BadInput(
        fmt::format("found '{}', {}, such as 0-1:0.5, with extra latency 0-1:0.5+2us, for a failed "
                    "link 0-1:0, or for all links of 3 in dimension 0 3@0:0.5",
                    text, what));
  };
  const size_t colon = text.rfind(':');
  if (colon == text.npos) return wrong("expected the ends of a link and a share of its bandwidth");
  const std::string_view ends = text.substr(0, colon);
  std::string_view rest = text.substr(colon + 1);
  double latency = 0;
  if (const size_t plus = rest.find('+'); plus != rest.npos) {
    const std::optional<Nanos> time = ParseTime(rest.substr(plus + 1));
    if (!time || time->count < 0) return wrong("expected additional latency after '+'");
    latency = static_cast<double>(time->count);
    rest = rest.substr(0, plus);
  }
  const std::optional<double> share = ParseDecimal(rest);
  if (!share || !(*share >= 0) || *share > 1) {
    return wrong("expected a share of the bandwidth from 0 to 1");
  }
  std::optional<uint32_t> a;
  std::optional<uint32_t> b;
  std::optional<int64_t> dim;
  if (const size_t at = ends.rfind('@'); at != ends.npos) {
    a = Find(ends.substr(0, at));
    dim = ParseWhole(ends.substr(at + 1));
    if (!dim || *dim < 0 || static_cast<size_t>(*dim) >= dims_.size()) {
      return wrong(fmt::format("expected a dimension below {} after '@'", dims_.size()));
    }
  } else {
    // Names may contain the separator.
    for (size_t mark = ends.find('-'); mark != ends.npos && !b; mark = ends.find('-', mark + 1)) {
      a = Find(ends.substr(0, mark));
      if (a) b = Find(ends.substr(mark + 1));
    }
  }
  if (!a || (!b && !dim)) {
    return wrong(
        fmt::format("expected NPUs below {} or devices of the network as its ends", npus_));
  }
  size_t count = 0;
  for (NetworkLink& link : links_) {
    const bool is_it =
        b ? (link.from == *a && link.to == *b) || (link.from == *b && link.to == *a)
          : (link.from == *a || link.to == *a) && link.dim == static_cast<uint32_t>(*dim);
    if (!is_it) continue;
    ++count;
    link.latency += latency;
    link.share *= *share;
  }
  if (count == 0) return wrong("found no link there");
  const std::string which = b ? fmt::format("link {}-{}", NameOf(*a), NameOf(*b))
                              : fmt::format("links of {} in dimension {}", NameOf(*a), *dim);
  faults_.push_back(*share == 0 ? which + ": failed"
                                : fmt::format("{}: {:.6g} of the bandwidth, {:.6g} ns more latency",
                                              which, *share, latency));
  return {};
}

std::vector<NetworkGraph::LinkKind> NetworkGraph::KindsOf(size_t dim) const {
  std::vector<LinkKind> kinds;
  for (const NetworkLink& link : links_) {
    if (link.dim == dim) kinds.push_back({link.dim, link.bandwidth, link.latency});
  }
  std::ranges::sort(kinds);
  kinds.erase(std::ranges::unique(kinds).begin(), kinds.end());
  return kinds;
}

void NetworkGraph::Scale(const LinkKind& kind, double bandwidth, double latency) {
  for (NetworkLink& link : links_) {
    if (LinkKind{link.dim, link.bandwidth, link.latency} != kind) continue;
    link.share *= bandwidth;  // on which no route depends
    link.latency *= latency;
  }
}

Status NetworkGraph::Finish(const std::string& where) {
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < links_.size(); ++i) {
    if (links_[i].share > 0) order.push_back(i);
  }
  std::ranges::stable_sort(order, {}, [&](uint32_t link) { return links_[link].to; });
  const size_t rows = size_t{nodes()} * dims_.size();
  const auto itself = [](uint32_t link) { return link; };
  from_ = Csr<uint32_t>::Build(
      rows, order, [&](uint32_t link) { return PlaceOf(links_[link].from, links_[link].dim); },
      itself);
  to_ = Csr<uint32_t>::Build(
      rows, order, [&](uint32_t link) { return PlaceOf(links_[link].to, links_[link].dim); },
      itself);
  place_.assign(rows, kNone);
  size_.assign(rows, 0);
  for (size_t dim = 0; dim < dims_.size(); ++dim) {
    for (int64_t rank = 0; rank < npus_; ++rank) {
      if (Coordinate(rank, dim) != 0) continue;
      ETUDE_RETURN_IF_ERROR(CheckLine(static_cast<uint32_t>(rank), dim, where));
    }
  }
  return {};
}

// Numbers the nodes of a line, and checks that its NPUs reach each other.
Status NetworkGraph::CheckLine(uint32_t first, size_t dim, const std::string& where) {
  std::vector<uint32_t> line = {first};
  place_[PlaceOf(first, dim)] = 0;
  const auto add = [&](uint32_t node) {
    uint32_t& place = place_[PlaceOf(node, dim)];
    if (place != kNone) return;
    place = static_cast<uint32_t>(line.size());
    line.push_back(node);
  };
  for (size_t i = 0; i < line.size(); ++i) {
    for (const uint32_t link : LinksFrom(line[i], dim)) add(links_[link].to);
    for (const uint32_t link : LinksTo(line[i], dim)) add(links_[link].from);
  }
  for (const uint32_t node : line) size_[PlaceOf(node, dim)] = static_cast<uint32_t>(line.size());
  for (const bool forward : {true, false}) {
    std::vector<bool> reached(line.size());
    std::vector<uint32_t> next = {first};
    reached[0] = true;
    while (!next.empty()) {
      const uint32_t node = next.back();
      next.pop_back();
      for (const uint32_t link : forward ? LinksFrom(node, dim) : LinksTo(node, dim)) {
        const uint32_t other = forward ? links_[link].to : links_[link].from;
        if (reached[PlaceInLine(other, dim)]) continue;
        reached[PlaceInLine(other, dim)] = true;
        next.push_back(other);
      }
    }
    for (int64_t i = 1; i < dims_[dim].npus; ++i) {
      const auto npu = static_cast<uint32_t>(first + i * strides_[dim]);
      const uint32_t place = PlaceInLine(npu, dim);
      // NPUs of other lines have places too.
      if (place < line.size() && line[place] == npu && reached[place]) continue;
      return BadInput(fmt::format("{}: found no path from NPU {} to NPU {}{}{}", where,
                                  NameOf(forward ? first : npu), NameOf(forward ? npu : first),
                                  dims_.size() > 1 ? fmt::format(" in dimension {}", dim) : "",
                                  FailedText()));
    }
  }
  return {};
}

std::string NetworkGraph::FailedText() const {
  std::vector<std::string> failed;
  for (const NetworkLink& link : links_) {
    if (link.share == 0) failed.push_back(fmt::format("{}-{}", NameOf(link.from), NameOf(link.to)));
  }
  if (failed.empty()) return ", expected a connected network";
  constexpr size_t kMost = 8;
  const size_t more = failed.size() > kMost ? failed.size() - kMost : 0;
  failed.resize(failed.size() - more);
  return fmt::format(" without the failed links {}{}", fmt::join(failed, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

PathCost CostOfPath(const NetworkGraph& graph, std::span<const uint32_t> links) {
  PathCost cost{.rate = std::numeric_limits<double>::infinity()};
  for (const uint32_t link : links) {
    cost.latency += graph.links()[link].latency;
    cost.rate = std::min(cost.rate, graph.links()[link].rate());
  }
  return cost;
}

// Returns the shortest path from each node of a line to the target.
const NetworkRoutes::Steps& NetworkRoutes::StepsTo(uint32_t target, size_t dim) {
  if (kept_steps_ > kMostKeptSteps && !steps_[dim].contains(target)) {
    for (auto& of_dim : steps_) of_dim.clear();
    kept_steps_ = 0;
  }
  const auto [found, is_new] = steps_[dim].try_emplace(target);
  Steps& steps = found->second;
  if (!is_new) return steps;
  kept_steps_ += graph_.LineSize(target, dim);
  steps.assign(graph_.LineSize(target, dim), {.length = kFar, .width = 0});
  steps[graph_.PlaceInLine(target, dim)] = {.length = 0,
                                            .width = std::numeric_limits<float>::infinity()};
  std::vector<std::vector<uint32_t>> at_length = {{target}};  // nodes, some of them nearer
  for (uint32_t length = 0; length < at_length.size(); ++length) {
    for (const uint32_t node : std::exchange(at_length[length], {})) {
      // All nodes nearer to the target are done, so the width is known.
      const Step here = steps[graph_.PlaceInLine(node, dim)];
      if (here.length != length) continue;
      for (const uint32_t index : graph_.LinksTo(node, dim)) {
        const NetworkLink& link = graph_.links()[index];
        Step& other = steps[graph_.PlaceInLine(link.from, dim)];
        const uint32_t through = length + link.length;
        if (through < other.length) {
          other = {.length = through, .width = 0};
          at_length.resize(std::max<size_t>(at_length.size(), through + 1));
          at_length[through].push_back(link.from);
        }
        if (through != other.length) continue;
        other.width =
            std::max(other.width, std::min(here.width, static_cast<float>(link.bandwidth)));
      }
    }
  }
  return steps;
}

void NetworkRoutes::Find(int64_t from, int64_t to, const Load& load, std::vector<uint32_t>& links) {
  const uint64_t hash = Mix(static_cast<uint64_t>(from) << 32 ^ static_cast<uint64_t>(to));
  int64_t at = from;
  for (size_t dim = 0; dim < graph_.dims().size(); ++dim) {
    const int64_t steps = graph_.Coordinate(to, dim) - graph_.Coordinate(at, dim);
    if (steps == 0) continue;
    const int64_t next = at + steps * graph_.Stride(dim);
    FindInDim(static_cast<uint32_t>(at), static_cast<uint32_t>(next), dim, hash, load, links);
    at = next;
  }
}

uint32_t NetworkRoutes::Choose(std::span<const uint32_t> some, uint64_t hash,
                               const Load& load) const {
  const size_t first = Mix(hash) % some.size();
  if (load == nullptr || some.size() == 1) return some[first];
  const auto cost = [&](uint32_t link) {
    return static_cast<double>(load(link) + 1) / graph_.links()[link].rate();
  };
  uint32_t best = some[first];
  for (size_t i = 1; i < some.size(); ++i) {
    const uint32_t other = some[(first + i) % some.size()];
    if (cost(other) < cost(best)) best = other;
  }
  return best;
}

void NetworkRoutes::FindInDim(uint32_t from, uint32_t to, size_t dim, uint64_t hash,
                              const Load& load, std::vector<uint32_t>& links) {
  const std::vector<NetworkLink>& all = graph_.links();
  const auto end_of = [&](uint32_t link) { return all[link].to; };
  // Most NPUs have one link to their switch: its steps serve all of them.
  const std::span<const uint32_t> last = graph_.LinksTo(to, dim);
  const uint32_t target = last.size() == 1 ? all[last[0]].from : to;
  while (from != target) {
    std::span<const uint32_t> out = graph_.LinksFrom(from, dim);
    choices_.clear();
    const auto direct = std::ranges::equal_range(out, target, {}, end_of);
    if (!direct.empty()) {
      // Only the widest of several links between two nodes are shortest paths.
      double width = 0;
      for (const uint32_t link : direct) width = std::max(width, all[link].bandwidth);
      for (const uint32_t link : direct) {
        if (all[link].bandwidth == width) choices_.push_back(link);
      }
      links.push_back(Choose(choices_, hash + from, load));
      break;
    }
    const Steps& steps = StepsTo(target, dim);
    const Step here = steps[graph_.PlaceInLine(from, dim)];
    for (const uint32_t link : out) {
      const Step& next = steps[graph_.PlaceInLine(end_of(link), dim)];
      const float width = std::min(next.width, static_cast<float>(all[link].bandwidth));
      if (next.length + all[link].length != here.length) continue;
      if (width == here.width) choices_.push_back(link);
    }
    if (graph_.dims()[dim].is_ring && choices_.size() == 2) {
      const int64_t place = graph_.Coordinate(from, dim);
      const int64_t other = graph_.Coordinate(end_of(choices_[0]), dim);
      const bool first_is_ahead = other == (place + 1) % graph_.dims()[dim].npus;
      choices_.assign(1, choices_[first_is_ahead == (place % 2 == 0) ? 0 : 1]);
    }
    const uint32_t link = Choose(choices_, hash + from, load);
    links.push_back(link);
    from = end_of(link);
  }
  if (target != to) links.push_back(last[0]);
}

}  // namespace etude
