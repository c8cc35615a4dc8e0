#include "src/report/tables/simulated/sim_tables.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/report/text/format.h"
#include "src/sim/collective/collective_algorithms.h"
#include "src/sim/machine/link_faults.h"
#include "src/sim/network/network_graph.h"
#include "src/sim/plan/collective_plan.h"
#include "src/sim/result/roofline_use.h"
#include "src/trace/job/rank_set.h"

namespace etude {
namespace {

using SimJson = nlohmann::ordered_json;

constexpr double kGibPerSecond = 1073741824.0;

std::string_view Name(NetworkShape shape) {
  switch (shape) {
    case NetworkShape::kRing: return "Ring";
    case NetworkShape::kFullyConnected: return "FullyConnected";
    case NetworkShape::kSwitch: return "Switch";
    case NetworkShape::kGraph: break;
  }
  return "";
}
std::string_view Name(RouteChoice choice) {
  switch (choice) {
    case RouteChoice::kHashed: return "hashed";
    case RouteChoice::kLeastLoaded: return "least-loaded";
  }
  return "";
}
std::string_view Name(StreamOrder order) {
  switch (order) {
    case StreamOrder::kFifo: return "FIFO";
    case StreamOrder::kLifo: return "LIFO";
    case StreamOrder::kExplicit: return "EXPLICIT";
  }
  return "";
}
std::string_view Name(RemoteMemoryKind kind) {
  switch (kind) {
    case RemoteMemoryKind::kNone: return "NO_MEMORY_EXPANSION";
    case RemoteMemoryKind::kPerNpu: return "PER_NPU_MEMORY_EXPANSION";
    case RemoteMemoryKind::kPerNode: return "PER_NODE_MEMORY_EXPANSION";
    case RemoteMemoryKind::kPool: return "MEMORY_POOL";
  }
  return "";
}
// Returns the names of the algorithms by dimension, for collectives that no plan is for.
std::vector<std::string> OtherAlgorithmsOf(CollectiveType type, AlgorithmChoices choices) {
  std::vector<std::string> names;
  if (choices == nullptr) {
    if (const auto own = OwnAlgorithm(type)) names.push_back(AlgorithmName({.algorithm = *own}));
    return names;
  }
  for (const AlgorithmChoice& choice : *choices) names.push_back(AlgorithmName(choice));
  return names;
}

std::vector<std::string> AlgorithmsOf(const SystemModel& system, CollectiveType type) {
  const auto plan = system.plans.find(type);
  if (plan != system.plans.end()) return {"plan " + plan->second->name};
  if (system.programs.contains(type)) return {"custom"};
  const auto found = system.algorithms.find(type);
  return OtherAlgorithmsOf(type, found == system.algorithms.end() ? nullptr : &found->second);
}

// Returns the time of a collective on a machine with times of whole communications. Of a group,
// only the number of ranks is known here: its time is that of neighbours.
CommunicationTime HowTimed(const SimMachine& machine, const SimCollectiveAccount& collective) {
  std::vector<int64_t> ranks(static_cast<size_t>(collective.members));
  std::iota(ranks.begin(), ranks.end(), int64_t{0});
  const auto time = machine.times->TimeOf(collective.type, ranks, collective.bytes);
  return time ? *time : CommunicationTime();
}

// Returns the algorithms of a collective: one per dimension that it uses, or a single one.
std::string AlgorithmOf(const SimMachine& machine, const SimCollectiveAccount& collective) {
  if (machine.times != nullptr) return HowTimed(machine, collective).how;
  if (const CollectivePlan* plan =
          FittingPlan(machine.system, collective.type, collective.members, collective.bytes)) {
    return "plan " + plan->name;
  }
  if (machine.FindPrograms(collective.type, collective.members) != nullptr) return "custom";
  const AlgorithmChoices choices =
      machine.system.FindAlgorithms(collective.type, collective.members, collective.bytes);
  const std::vector<std::string> names = OtherAlgorithmsOf(collective.type, choices);
  if (names.size() == 1) return names.front();
  std::vector<std::string> used;
  for (size_t i = 0; i < std::min<size_t>(names.size(), 32); ++i) {
    if ((collective.dims >> i & 1) != 0 && machine.dims[i].npus > 1) used.push_back(names[i]);
  }
  if (!collective.in_group || !used.empty()) return fmt::format("{}", fmt::join(used, " · "));
  // Another one would have been an error of the simulation.
  const Result<AlgorithmChoice> choice =
      GroupChoice(machine, choices, collective.type, /*line=*/std::nullopt);
  return choice ? AlgorithmName(*choice) : "";
}

std::vector<Table::Column> TimeColumns() {
  return {{"end_ns", "end", Unit::kTime},
          {"compute_ns", "compute", Unit::kTime},
          {"communication_ns", "comm", Unit::kTime},
          {"exposed_communication_ns", "exposed comm", Unit::kTime},
          {"memory_ns", "memory", Unit::kTime},
          {"exposed_memory_ns", "exposed memory", Unit::kTime},
          {"host_ns", "host", Unit::kTime},
          {"idle_ns", "idle", Unit::kTime},
          {"host_wait_ns", "host wait", Unit::kTime},
          {"late_wait_ns", "late wait", Unit::kTime},
          {"early_ns", "early", Unit::kTime},
          {"other_wait_ns", "other wait", Unit::kTime}};
}
void AddTimes(const SimClassAccount& one, std::vector<Cell>& row) {
  const SimTimes& times = one.times;
  row.push_back(one.end ? Cell(*one.end) : Cell());
  for (const int64_t time : {times.compute, times.communication, times.exposed_communication,
                             times.memory, times.exposed_memory, times.host, times.idle(),
                             times.host_wait, times.late_wait, times.early, times.other_wait}) {
    row.emplace_back(time);
  }
}

Table TimesTable(const SimAccount& account) {
  Table table{.key = "times", .title = "time of the step by activity", .columns = {}, .rows = {}};
  table.columns = {{"who", "", Unit::kText}, {"rank", "rank", Unit::kCount}};
  for (Table::Column& column : TimeColumns()) table.columns.push_back(std::move(column));
  const auto add = [&](const char* who, std::optional<int64_t> rank, const SimClassAccount& one) {
    std::vector<Cell> row = {std::string(who), rank ? Cell(*rank) : Cell()};
    AddTimes(one, row);
    table.rows.push_back(std::move(row));
  };
  add("mean", std::nullopt, MeanOf(account));
  // Among classes that end at the same time: the one with most and with least work.
  const auto key = [&](const SimClassAccount& one) {
    return std::tuple(one.end.value_or(account.step), -one.times.idle(), -one.first);
  };
  const auto [first, last] = std::ranges::minmax_element(account.classes, {}, key);
  // If a rank does not end, the last one is unknown.
  if (!std::ranges::all_of(account.classes, &SimClassAccount::finished)) return table;
  add("last to end", last->first, *last);
  const bool differ = first->end != last->end || first->times.idle() != last->times.idle();
  if (differ) add("first to end", first->first, *first);
  return table;
}

Table RanksTable(const SimAccount& account, const std::vector<std::string>& names) {
  Table table{.key = "ranks", .title = "classes of identical ranks", .columns = {}, .rows = {}};
  table.columns = {{"ranks", "ranks", Unit::kText},
                   {"count", "count", Unit::kCount},
                   {"finished", "finished", Unit::kText}};
  for (Table::Column& column : TimeColumns()) table.columns.push_back(std::move(column));
  for (size_t i = 0; i < account.classes.size(); ++i) {
    const SimClassAccount& one = account.classes[i];
    std::vector<Cell> row = {names[i], one.ranks, std::string(one.finished ? "yes" : "no")};
    AddTimes(one, row);
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table CollectivesTable(const SimMachine& machine, const SimAccount& account) {
  Table table{.key = "collectives",
              .title = "collectives",
              .columns = {{"type", "type", Unit::kText},
                          {"bytes", "bytes", Unit::kBytes},
                          {"ranks", "ranks", Unit::kCount},
                          {"of", "of", Unit::kText},
                          {"algorithm", "algorithm", Unit::kText},
                          {"count", "count", Unit::kCount},
                          {"unfinished", "unfinished", Unit::kCount},
                          {"time_ns", "mean time", Unit::kTime},
                          {"skew_ns", "mean skew", Unit::kTime},
                          {"algorithm_gb_per_s", "algorithm GB/s", Unit::kNumber},
                          {"bus_gb_per_s", "bus GB/s", Unit::kNumber}},
              .rows = {}};
  for (const SimCollectiveAccount& one : account.collectives) {
    std::vector<Cell> row = {std::string(Name(one.type)),
                             one.bytes,
                             one.members,
                             std::string(one.in_group ? "groups" : "network"),
                             AlgorithmOf(machine, one),
                             CountCell(one.count),
                             CountCell(one.unfinished)};
    const auto done = static_cast<int64_t>(one.count - one.unfinished);
    if (done == 0) {
      row.resize(table.columns.size());
    } else {
      row.emplace_back(one.time / done);
      row.emplace_back(one.skew / done);
      const auto moving = static_cast<double>(one.moving);
      if (moving > 0 && one.type != CollectiveType::kBarrier) {
        const double rate =
            AlgorithmBytes(one.type, one.bytes, one.members) * static_cast<double>(done) / moving;
        row.emplace_back(rate);
        row.emplace_back(rate * BusFactor(one.type, one.members));
      } else {
        row.resize(table.columns.size());
      }
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table LinksTable(const SimMachine& machine, const SimResult& result, const SimAccount& account,
                 const std::vector<std::string>& names) {
  Table table{.key = "links",
              .title = "links",
              .columns = {{"from", "from", Unit::kText},
                          {"to", "to", Unit::kText},
                          {"dimension", "dimension", Unit::kCount},
                          {"messages", "messages", Unit::kCount},
                          {"bytes", "bytes", Unit::kBytes},
                          {"utilisation", "utilisation", Unit::kShare},
                          {"busy_ns", "busy", Unit::kTime},
                          {"waited_ns", "waited for", Unit::kTime}},
              .rows = {}};
  std::vector<const SimLinkUse*> links;
  for (const SimLinkUse& link : result.links) links.push_back(&link);
  std::ranges::stable_sort(
      links, [](const SimLinkUse* a, const SimLinkUse* b) { return a->bytes > b->bytes; });
  const auto device = [&](int64_t number) {
    if (machine.graph != nullptr) return machine.graph->NameOf(static_cast<uint32_t>(number));
    return number == machine.npus() ? std::string("switch") : std::to_string(number);
  };
  const LinkFaults faults(machine);
  const auto end = [&](int64_t number) {
    return number == machine.npus() ? LinkFaults::kSwitch : number;
  };
  for (const SimLinkUse* link : links) {
    // For all links along a dimension, the full bandwidth is used, even if a link is slow.
    const bool is_graph = machine.graph != nullptr;
    const double share =
        link->to && !is_graph ? faults.Of(link->dim, end(link->from), end(*link->to)).share : 1;
    const double rate = is_graph ? link->bytes_per_ns * 1e9
                                 : share * machine.dims[link->dim].bandwidth * kGibPerSecond;
    const double most = rate * (static_cast<double>(account.step) / 1e9);
    std::vector<Cell> row = {link->to ? device(link->from) : names[static_cast<size_t>(link->from)],
                             link->to ? device(*link->to) : std::string("others"),
                             static_cast<int64_t>(link->dim),
                             CountCell(link->messages),
                             link->bytes,
                             most > 0 ? Cell(static_cast<double>(link->bytes) / most) : Cell()};
    row.emplace_back(link->to ? Cell(link->busy) : Cell());
    row.emplace_back(link->to ? Cell(link->waited) : Cell());
    table.rows.push_back(std::move(row));
  }
  return table;
}

// Returns a table without rows if computations take their recorded duration.
Table RooflineTable(const SimMachine& machine, const SimWorkload& workload, const SimResult& result,
                    const SimAccount& account, const std::vector<std::string>& names) {
  Table table{.key = "roofline",
              .title = "computations by the roofline",
              .columns = {{"ranks", "ranks", Unit::kText},
                          {"compute_bound", "compute bound", Unit::kShare},
                          {"of_peak", "of the peak", Unit::kShare},
                          {"of_memory_bandwidth", "of the memory's bandwidth", Unit::kShare},
                          {"operations_per_byte", "operations a byte", Unit::kNumber}},
              .rows = {}};
  if (!machine.system.roofline) return table;
  for (size_t i = 0; i < account.classes.size(); ++i) {
    const RooflineUse use = RooflineUseOf(machine, workload, result, account.classes[i].first);
    if (use.intensity == 0 && use.memory == 0) continue;  // no computation
    table.rows.push_back({names[i], use.compute_bound, use.compute, use.memory, use.intensity});
  }
  return table;
}

std::string RateText(double gib_per_second) {
  return fmt::format("{:.6g} GiB/s ({:.6g} GB/s)", gib_per_second,
                     gib_per_second * kGibPerSecond / 1e9);
}

// Returns the dimensions of the network, and how messages share it.
std::vector<std::string> NetworkLines(const SimMachine& machine) {
  std::vector<std::string> lines;
  if (machine.times != nullptr) {
    lines.push_back(fmt::format("{}, times of whole communications",
                                FormatCount(static_cast<uint64_t>(machine.npus()), "rank")));
    return lines;
  }
  if (machine.graph != nullptr) {
    for (const NetworkDimInfo& dim : machine.graph->dims()) {
      std::string line = dim.topology;
      if (dim.bandwidth) {
        line += fmt::format(", links of {}", RateText(*dim.bandwidth * 1e9 / kGibPerSecond));
      }
      if (dim.latency) line += fmt::format(", {:.6g} ns", *dim.latency);
      lines.push_back(std::move(line));
    }
    lines.push_back(
        fmt::format("links shared by max-min fairness, routes {}", Name(machine.routes)));
    return lines;
  }
  for (const NetworkDim& dim : machine.dims) {
    lines.push_back(fmt::format("{}({}), links of {}, {:.6g} ns", Name(dim.shape), dim.npus,
                                RateText(dim.bandwidth), dim.latency));
  }
  lines.push_back(machine.congestion ? "messages wait for each other on shared links"
                                     : "messages do not wait for each other on shared links");
  return lines;
}

// Adds rows for injected faults.
void AddFaults(const SimMachine& machine, TextTable& table) {
  std::string_view what = "faults";
  for (const auto& [rank, factor] : machine.stragglers) {
    table.Row(
        {std::string(std::exchange(what, "")),
         fmt::format("rank {}: computations slowed down by a factor of {:.6g}", rank, factor)});
  }
  for (const SlowLink& link : machine.slow_links) {
    const std::string which = link.other
                                  ? fmt::format("link {}-{}", link.npu, *link.other)
                                  : fmt::format("links of {} in dimension {}", link.npu, link.dim);
    table.Row({std::string(std::exchange(what, "")),
               fmt::format("{}: {:.6g} of the bandwidth, {:.6g} ns more latency", which, link.share,
                           link.latency)});
  }
  if (machine.graph != nullptr) {
    for (const std::string& fault : machine.graph->faults()) {
      table.Row({std::string(std::exchange(what, "")), fault});
    }
  }
}

SimJson StragglersOf(const SimMachine& machine) {
  SimJson stragglers = SimJson::array();
  for (const auto& [rank, factor] : machine.stragglers) {
    stragglers.push_back({{"rank", rank}, {"factor", factor}});
  }
  return stragglers;
}

constexpr CollectiveType kSimCollectives[] = {
    CollectiveType::kAllReduce, CollectiveType::kAllGather, CollectiveType::kReduceScatter,
    CollectiveType::kAllToAll};

}  // namespace

const std::vector<std::string>& SimTableNames() {
  static const std::vector<std::string> kNames = {"times", "ranks", "collectives", "links",
                                                  "roofline"};
  return kNames;
}

std::vector<Table> SimTables(const SimMachine& machine, const SimWorkload& workload,
                             const SimResult& result, const SimAccount& account) {
  const std::vector<std::string> names = RankTexts(result);
  return {TimesTable(account), RanksTable(account, names), CollectivesTable(machine, account),
          LinksTable(machine, result, account, names),
          RooflineTable(machine, workload, result, account, names)};
}

std::vector<std::string> RankTexts(const SimResult& result) {
  std::vector<std::vector<int64_t>> ranks(result.ranks.size());
  for (size_t rank = 0; rank < result.class_of.size(); ++rank) {
    ranks[result.class_of[rank]].push_back(static_cast<int64_t>(rank));
  }
  std::vector<std::string> texts;
  for (const std::vector<int64_t>& some : ranks) texts.push_back(RankListText(some));
  return texts;
}

std::vector<std::string> DoubtfulTimes(const SimMachine& machine, const SimAccount& account) {
  std::vector<std::string> notes;
  if (machine.times == nullptr) return notes;
  for (const SimCollectiveAccount& one : account.collectives) {
    const CommunicationTime time = HowTimed(machine, one);
    if (!time.doubtful) continue;
    notes.push_back(fmt::format("{} of {}, {} bytes: times are {}", Name(one.type),
                                FormatCount(static_cast<uint64_t>(one.members), "rank"), one.bytes,
                                time.how));
  }
  return notes;
}

std::string ToText(const SimMachine& machine) {
  TextTable table({TextTable::Align::kLeft, TextTable::Align::kLeft});
  std::string_view what = "network";
  for (const std::string& line : NetworkLines(machine)) {
    table.Row({std::string(std::exchange(what, "")), line});
  }
  const SystemModel& system = machine.system;
  if (machine.times != nullptr) {
    table.Row({"computation",
               machine.cores ? fmt::format("recorded durations, {:.6g} cores shared by all ranks",
                                           *machine.cores)
                             : std::string("recorded durations")});
    AddFaults(machine, table);
    return table.Text();
  }
  what = "system";
  std::set<std::string> all;
  std::vector<std::string> each;
  for (const CollectiveType type : kSimCollectives) {
    const std::vector<std::string> names = AlgorithmsOf(system, type);
    const std::string text = names.empty() ? "none" : fmt::format("{}", fmt::join(names, " · "));
    all.insert(text);
    each.push_back(fmt::format("{} {}", Name(type), text));
  }
  if (all.size() == 1) each = {"collectives " + *all.begin()};
  if (!system.rules.empty()) each.insert(each.begin(), "algorithms of " + system.rules_name);
  table.Row({std::string(std::exchange(what, "")), fmt::format("{}", fmt::join(each, ", "))});
  table.Row(
      {"",
       fmt::format("chunks per collective {}, concurrent chunks per dimension {}, queues {}, {}{}",
                   system.splits, system.active_chunks, system.queues, Name(system.order),
                   system.bandwidth_aware ? ", localBWAware" : "")});
  std::string ends = fmt::format("endpoint delay {} ns", system.endpoint_delay);
  if (const auto& bus = system.shared_bus) {
    ends = fmt::format("shared bus L {} ns, o {} ns, g {} ns, G {:.6g} ns/B, reduction {} ns/100 B",
                       bus->latency, bus->overhead, bus->gap, bus->nanos_of_byte, bus->reduction);
  }
  table.Row({"", ends + (system.rendezvous ? ", rendezvous" : "")});
  std::string compute = "recorded durations";
  if (system.roofline) {
    compute = fmt::format("roofline of {:.6g} TFLOPS and {:.6g} GB/s", system.peak,
                          system.memory_bandwidth);
  }
  if (system.replay_only) compute = "recorded durations of everything";
  table.Row({"computation", compute});
  const RemoteMemory& memory = machine.memory;
  std::string remote = memory.kind == RemoteMemoryKind::kNone
                           ? "no remote"
                           : fmt::format("{} of {:.6g} GB/s, {} ns", Name(memory.kind),
                                         memory.bandwidth, memory.latency);
  if (memory.kind == RemoteMemoryKind::kPerNode) {
    remote += fmt::format(", nodes of {}",
                          FormatCount(static_cast<uint64_t>(memory.npus_per_node), "NPU"));
  }
  const std::string local =
      system.memory_bandwidth > 0 ? fmt::format("{:.6g} GB/s", system.memory_bandwidth) : "no time";
  table.Row({"memory", fmt::format("local {}, {}", local, remote)});
  AddFaults(machine, table);
  return table.Text();
}

SimJson ToJson(const SimMachine& machine) {
  if (machine.times != nullptr) {
    return {{"ranks", machine.npus()},
            {"cores", machine.cores ? SimJson(*machine.cores) : SimJson()},
            {"stragglers", StragglersOf(machine)}};
  }
  SimJson dims = SimJson::array();
  if (machine.graph != nullptr) {
    for (const NetworkDimInfo& dim : machine.graph->dims()) {
      dims.push_back({{"topology", dim.topology},
                      {"npus", dim.npus},
                      {"bandwidth_bytes_per_s",
                       dim.bandwidth ? SimJson(WithoutNoise(*dim.bandwidth * 1e9)) : SimJson()},
                      {"latency_ns", dim.latency ? SimJson(*dim.latency) : SimJson()}});
    }
  }
  for (const NetworkDim& dim : machine.dims) {
    if (machine.graph != nullptr) break;
    dims.push_back({{"topology", Name(dim.shape)},
                    {"npus", dim.npus},
                    {"bandwidth_bytes_per_s", WithoutNoise(dim.bandwidth * kGibPerSecond)},
                    {"latency_ns", dim.latency}});
  }
  const SystemModel& system = machine.system;
  SimJson algorithms = SimJson::object();
  for (const CollectiveType type : kSimCollectives) {
    algorithms[std::string(Name(type))] = AlgorithmsOf(system, type);
  }
  SimJson bus;  // null: none
  if (system.shared_bus) {
    bus = {{"latency_ns", system.shared_bus->latency},
           {"overhead_ns", system.shared_bus->overhead},
           {"gap_ns", system.shared_bus->gap},
           {"ns_per_byte", system.shared_bus->nanos_of_byte},
           {"reduction_ns_per_100_bytes", system.shared_bus->reduction}};
  }
  SimJson stragglers = StragglersOf(machine);
  SimJson slow_links = SimJson::array();
  for (const SlowLink& link : machine.slow_links) {
    slow_links.push_back({{"npu", link.npu},
                          {"other", link.other ? SimJson(*link.other) : SimJson()},
                          {"dimension", link.dim},
                          {"share", link.share},
                          {"latency_ns", link.latency}});
  }
  if (machine.graph != nullptr) {
    for (const std::string& fault : machine.graph->faults()) slow_links.push_back(fault);
  }
  SimJson json = {{"dimensions", std::move(dims)},
                  {"congestion", machine.congestion || machine.graph != nullptr},
                  {"algorithms", std::move(algorithms)},
                  {"chunks", system.splits},
                  {"active_chunks", system.active_chunks},
                  {"queues", system.queues},
                  {"order", Name(system.order)},
                  {"local_bandwidth_aware", system.bandwidth_aware},
                  {"endpoint_delay_ns", system.endpoint_delay},
                  {"shared_bus", std::move(bus)},
                  {"rendezvous", system.rendezvous},
                  {"replay_only", system.replay_only},
                  {"roofline", system.roofline},
                  {"peak_flops", WithoutNoise(system.peak * 1e12)},
                  {"local_memory_bytes_per_s", WithoutNoise(system.memory_bandwidth * 1e9)},
                  {"remote_memory", Name(machine.memory.kind)},
                  {"remote_memory_bytes_per_s", WithoutNoise(machine.memory.bandwidth * 1e9)},
                  {"remote_memory_latency_ns", machine.memory.latency},
                  {"stragglers", std::move(stragglers)},
                  {"slow_links", std::move(slow_links)}};
  if (machine.graph != nullptr) json["routes"] = Name(machine.routes);
  if (!system.rules.empty()) json["algorithm_rules"] = system.rules_name;
  return json;
}

SimJson ToJson(const SimDiagnosis& diagnosis) {
  SimJson chain = SimJson::array();
  for (const SimWait& wait : diagnosis.chain) {
    chain.push_back({{"rank", wait.rank},
                     {"node", wait.node ? SimJson(*wait.node) : SimJson()},
                     {"since_ns", wait.since},
                     {"what", wait.what},
                     {"for_rank", wait.for_rank ? SimJson(*wait.for_rank) : SimJson()}});
  }
  std::string_view end = "unknown";
  if (diagnosis.end == SimDiagnosis::End::kCycle) end = "cycle";
  if (diagnosis.end == SimDiagnosis::End::kDone) end = "done";
  return {{"ranks", diagnosis.waiting}, {"chain", std::move(chain)}, {"end", end}};
}

}  // namespace etude
