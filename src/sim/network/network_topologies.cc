#include "src/sim/network/network_topologies.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/text/nearest.h"
#include "src/base/text/quantity.h"
#include "src/sim/machine/machine_quantity.h"
#include "src/sim/machine/network_lists.h"

namespace etude {
namespace {

constexpr double kMostLinks = 1 << 23;

// Adds the links of one line of a dimension.
class LineLinks {
 public:
  // `prefix`: of the names of devices, "" if the network has one line only.
  LineLinks(NetworkGraph& graph, const NetworkLink& link, int64_t first, int64_t stride,
            std::string prefix)
      : graph_(graph), link_(link), first_(first), stride_(stride), prefix_(std::move(prefix)) {}

  uint32_t Npu(int64_t i) const { return static_cast<uint32_t>(first_ + i * stride_); }
  uint32_t Device(const std::string& name) { return graph_.AddDevice(prefix_ + name); }
  void Link(uint32_t a, uint32_t b, double share = 1, uint32_t length = 1) {
    NetworkLink link = link_;
    link.from = a;
    link.to = b;
    link.bandwidth *= share;
    link.length = length;
    graph_.AddLink(link);
  }

 private:
  NetworkGraph& graph_;
  const NetworkLink link_;
  const int64_t first_;
  const int64_t stride_;
  const std::string prefix_;
};

// The numbers in parentheses after the name of a topology.
using Numbers = std::vector<double>;

int64_t Whole(double number) { return static_cast<int64_t>(number); }

void AddRing(const Numbers& numbers, LineLinks& line) {
  const int64_t npus = Whole(numbers[0]);
  for (int64_t i = 0; i + 1 < npus; ++i) line.Link(line.Npu(i), line.Npu(i + 1));
  if (npus > 2) line.Link(line.Npu(npus - 1), line.Npu(0));
}

void AddMesh(const Numbers& numbers, LineLinks& line) {
  for (int64_t i = 0; i + 1 < Whole(numbers[0]); ++i) line.Link(line.Npu(i), line.Npu(i + 1));
}

void AddFullyConnected(const Numbers& numbers, LineLinks& line) {
  const int64_t npus = Whole(numbers[0]);
  for (int64_t i = 0; i < npus; ++i) {
    for (int64_t j = i + 1; j < npus; ++j) line.Link(line.Npu(i), line.Npu(j));
  }
}

void AddSwitch(const Numbers& numbers, LineLinks& line) {
  if (numbers[0] < 2) return;
  const uint32_t middle = line.Device("switch");
  for (int64_t i = 0; i < Whole(numbers[0]); ++i) line.Link(line.Npu(i), middle);
}

// Three levels of switches with k ports each (Al-Fares, Loukissas and Vahdat 2008).
void AddFatTree(const Numbers& numbers, LineLinks& line) {
  const int64_t half = Whole(numbers[0]) / 2;
  const double above = numbers.size() > 1 ? 1 / numbers[1] : 1;
  std::vector<uint32_t> cores;
  for (int64_t i = 0; i < half * half; ++i) cores.push_back(line.Device(fmt::format("core{}", i)));
  int64_t npu = 0;
  for (int64_t pod = 0; pod < 2 * half; ++pod) {
    std::vector<uint32_t> aggregation;
    for (int64_t i = 0; i < half; ++i) {
      aggregation.push_back(line.Device(fmt::format("aggregation{}.{}", pod, i)));
      for (int64_t j = 0; j < half; ++j) {
        line.Link(aggregation.back(), cores[static_cast<size_t>(i * half + j)], above);
      }
    }
    for (int64_t i = 0; i < half; ++i) {
      const uint32_t edge = line.Device(fmt::format("edge{}.{}", pod, i));
      for (const uint32_t other : aggregation) line.Link(edge, other, above);
      for (int64_t j = 0; j < half; ++j) line.Link(line.Npu(npu++), edge);
    }
  }
}

// NPUs, routers of a group and links to other groups per router (Kim et al. 2008). Each pair of
// groups has one link.
void AddDragonfly(const Numbers& numbers, LineLinks& line) {
  const int64_t hosts = Whole(numbers[0]);
  const int64_t routers = Whole(numbers[1]);
  const int64_t global = Whole(numbers[2]);
  const int64_t groups = routers * global + 1;
  std::vector<uint32_t> all;
  for (int64_t group = 0; group < groups; ++group) {
    for (int64_t i = 0; i < routers; ++i) {
      all.push_back(line.Device(fmt::format("router{}.{}", group, i)));
      for (int64_t j = 0; j < i; ++j) {
        line.Link(all[static_cast<size_t>(group * routers + j)], all.back());
      }
      for (int64_t j = 0; j < hosts; ++j) {
        line.Link(line.Npu((group * routers + i) * hosts + j), all.back());
      }
    }
  }
  // The links of a group are numbered by the distance to the other group, and `global` of them
  // belong to each router.
  for (int64_t group = 0; group < groups; ++group) {
    for (int64_t other = group + 1; other < groups; ++other) {
      const int64_t ahead = (other - group - 1) / global;
      const int64_t back = (group - other - 1 + groups) / global;
      // Longer than the links within both groups: minimal routes cross one global link.
      constexpr uint32_t kGlobalLength = 3;
      line.Link(all[static_cast<size_t>(group * routers + ahead)],
                all[static_cast<size_t>(other * routers + back)], /*share=*/1, kGlobalLength);
    }
  }
}

struct Topology {
  std::string_view name;
  std::string_view numbers;  // for errors
  size_t least = 1;          // count of numbers
  size_t most = 1;
  // Returns the NPUs of a line, and about how many links a line has.
  double (*npus)(const Numbers& numbers);
  double (*links)(const Numbers& numbers);
  void (*add)(const Numbers& numbers, LineLinks& line);
};

double FirstNumber(const Numbers& numbers) { return numbers[0]; }
double NpusOfDragonfly(const Numbers& numbers) {
  return numbers[0] * numbers[1] * (numbers[1] * numbers[2] + 1);
}

constexpr Topology kTopologies[] = {
    {"Ring", "the number of NPUs, such as Ring(8)", 1, 1, FirstNumber, FirstNumber, AddRing},
    {"Mesh", "the number of NPUs, such as Mesh(8)", 1, 1, FirstNumber, FirstNumber, AddMesh},
    {"FullyConnected", "the number of NPUs, such as FullyConnected(8)", 1, 1, FirstNumber,
     [](const Numbers& numbers) { return numbers[0] * (numbers[0] - 1) / 2; }, AddFullyConnected},
    {"Switch", "the number of NPUs, such as Switch(8)", 1, 1, FirstNumber, FirstNumber, AddSwitch},
    {"FatTree",
     "the even number of ports of a switch and the oversubscription, 1 or more, such as "
     "FatTree(8,2)",
     1, 2, [](const Numbers& numbers) { return std::pow(numbers[0], 3) / 4; },
     [](const Numbers& numbers) { return std::pow(numbers[0], 3) * 3 / 4; }, AddFatTree},
    {"Dragonfly",
     "the NPUs per router, routers per group and links to other groups per router, such as "
     "Dragonfly(2,4,2)",
     3, 3, NpusOfDragonfly,
     [](const Numbers& numbers) { return NpusOfDragonfly(numbers) * (2 + numbers[1]); },
     AddDragonfly},
};

// Parses "8" or "8,2".
std::optional<Numbers> NumbersIn(std::string_view text, const Topology& topology) {
  Numbers numbers;
  while (true) {
    const size_t comma = text.find(',');
    std::string_view word = text.substr(0, comma);
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    const std::optional<double> number = ParseDecimal(word);
    if (!number || *number < 1) return std::nullopt;
    numbers.push_back(*number);
    if (comma == text.npos) break;
    text.remove_prefix(comma + 1);
  }
  if (numbers.size() < topology.least || numbers.size() > topology.most) return std::nullopt;
  const bool is_tree = topology.add == AddFatTree;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const bool may_be_fraction = is_tree && i == 1;
    if (numbers[i] != std::floor(numbers[i]) && !may_be_fraction) return std::nullopt;
  }
  if (is_tree && std::fmod(numbers[0], 2) != 0) return std::nullopt;
  return numbers;
}

struct TopologyDim {
  const Topology* topology = nullptr;
  Numbers numbers;
  double bandwidth = 0;  // bytes per ns
  double latency = 0;    // ns
};

Result<TopologyDim> TopologyDimOf(const NetworkLists& lists, size_t i, const std::string& path) {
  const auto& [names, numbers, rates, times] = lists.of_key;
  const auto found = std::ranges::find(kTopologies, names[i], &Topology::name);
  if (found == std::end(kTopologies)) {
    std::vector<std::string> known;
    for (const Topology& one : kTopologies) known.emplace_back(one.name);
    return BadInput(
        fmt::format("{}: topology: found '{}'{}", path, names[i], MeantOrAll(names[i], known)));
  }
  TopologyDim dim{.topology = found, .numbers = {}};
  const std::optional<Numbers> parsed = NumbersIn(numbers[i], *found);
  if (!parsed) {
    return BadInput(fmt::format("{}: npus_count: found {}({}), expected {}", path, names[i],
                                numbers[i], found->numbers));
  }
  dim.numbers = *parsed;
  const auto bandwidth = kNetworkRate.of_text(rates[i]);
  if (!bandwidth || !(*bandwidth > 0) || *bandwidth > kMostNetworkRate) {
    return BadInput(fmt::format("{}: bandwidth: found '{}', expected {} {}", path, rates[i],
                                NetworkRateRange(bandwidth), kNetworkRate.expected));
  }
  dim.bandwidth = *bandwidth * kBytesPerGib / 1e9;
  const auto latency = kNanos.of_text(times[i]);
  if (!latency || !(*latency >= 0) || !(*latency < 1e15)) {
    return BadInput(
        fmt::format("{}: latency: found '{}', expected {}", path, times[i], kNanos.expected));
  }
  dim.latency = *latency;
  return dim;
}

}  // namespace

Result<NetworkGraph> MakeNetwork(const std::string& text, const std::string& path) {
  ETUDE_ASSIGN_OR_RETURN(const NetworkLists lists, ReadNetworkLists(text, path));
  std::vector<TopologyDim> dims;
  std::vector<NetworkDimInfo> infos;
  double npus = 1;
  for (size_t i = 0; i < lists.dims(); ++i) {
    ETUDE_ASSIGN_OR_RETURN(TopologyDim dim, TopologyDimOf(lists, i, path));
    const double its_npus = dim.topology->npus(dim.numbers);
    npus *= its_npus;
    if (!(npus <= static_cast<double>(kMostNpus))) {
      return BadInput(fmt::format("{}: found {:.6g} NPUs, expected at most {} in total", path, npus,
                                  kMostNpus));
    }
    infos.push_back(
        {.topology = fmt::format("{}({})", dim.topology->name, fmt::join(dim.numbers, ",")),
         .npus = Whole(its_npus),
         .is_ring = dim.topology->add == AddRing,
         .bandwidth = dim.bandwidth,
         .latency = dim.latency});
    dims.push_back(std::move(dim));
  }
  double links = 0;
  for (const TopologyDim& dim : dims) {
    links += npus / dim.topology->npus(dim.numbers) * dim.topology->links(dim.numbers);
  }
  if (links > kMostLinks) {
    return BadInput(
        fmt::format("{}: found {:.6g} links, expected at most {:.6g}", path, links, kMostLinks));
  }
  NetworkGraph graph(std::move(infos));
  for (size_t i = 0; i < dims.size(); ++i) {
    const TopologyDim& dim = dims[i];
    const int64_t lines = graph.npus() / graph.dims()[i].npus;
    int64_t number = 0;
    for (int64_t rank = 0; rank < graph.npus(); ++rank) {
      if (graph.Coordinate(rank, i) != 0) continue;
      const std::string prefix = dims.size() == 1 ? ""
                                 : lines == 1     ? fmt::format("{}:", i)
                                                  : fmt::format("{}.{}:", i, number);
      ++number;
      LineLinks line(
          graph,
          {.dim = static_cast<uint32_t>(i), .bandwidth = dim.bandwidth, .latency = dim.latency},
          rank, graph.Stride(i), prefix);
      dim.topology->add(dim.numbers, line);
    }
  }
  return graph;
}

}  // namespace etude
