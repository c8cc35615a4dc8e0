#include "src/sim/machine/astra_config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/text/bounded_json.h"
#include "src/base/text/nearest.h"
#include "src/base/text/quantity.h"
#include "src/sim/collective/collective_algorithms.h"
#include "src/sim/machine/machine_quantity.h"
#include "src/sim/machine/network_lists.h"
#include "src/sim/machine/travel.h"
#include "src/sim/network/network_graph.h"

namespace etude {
namespace {

using Json = nlohmann::json;

std::string Hint(std::string_view word, std::span<const std::string_view> known) {
  return DidYouMean(word, {known.begin(), known.end()});
}

// Returns the line and column of the last of the first `count` bytes: "3:7".
std::string PlaceIn(std::string_view text, size_t count) {
  const std::string_view before = text.substr(0, std::max<size_t>(count, 1) - 1);
  const size_t line = before.rfind('\n') + 1;  // where it begins; without one 0
  return fmt::format("{}:{}", std::ranges::count(before, '\n') + 1, before.size() - line + 1);
}

// Returns the error text without the library's prefix and place.
std::string ReasonOf(const Json::parse_error& error) {
  std::string_view text = error.what();
  for (const std::string_view mark : {"parse error at line ", ": "}) {
    const size_t at = text.find(mark);
    if (at != std::string_view::npos) text.remove_prefix(at + mark.size());
  }
  return std::string(text);
}

// Keys of the outermost object.
struct OuterKeys : JsonWatch<Json> {
  using JsonWatch::JsonWatch;
  std::vector<std::string> keys;

 private:
  void Key(const std::string& key) override {
    if (depth() == 1) keys.push_back(key);
  }
};

// Values of a JSON object by key, each with a known form.
class JsonConfig {
 public:
  // Parses an object. Keys that are not in `known` are errors.
  static Result<JsonConfig> Parse(const std::string& text, const std::string& path,
                                  std::span<const std::string_view> known) {
    OuterKeys watch(Limits{}.depth);
    Json::sax_parse(text, &watch, Json::input_format_t::json, /*strict=*/true,
                    /*ignore_comments=*/true);
    if (watch.too_deep()) return BadInput(fmt::format("{}: nested too deeply", path));
    Json json;
    try {
      json = Json::parse(text, nullptr, /*allow_exceptions=*/true, /*ignore_comments=*/true);
    } catch (const Json::parse_error& error) {
      return BadInput(fmt::format("{}:{}: found invalid JSON, expected a JSON object: {}", path,
                                  PlaceIn(text, error.byte), ReasonOf(error)));
    } catch (const Json::exception&) {
      return BadInput(fmt::format("{}: found invalid JSON, expected a JSON object", path));
    }
    if (!json.is_object()) return BadInput(fmt::format("{}: expected a JSON object", path));
    std::vector<std::string>& keys = watch.keys;
    std::ranges::sort(keys);
    if (const auto twice = std::ranges::adjacent_find(keys); twice != keys.end()) {
      return BadInput(fmt::format("{}: found the key '{}' twice", path, *twice));
    }
    for (const auto& [key, value] : json.items()) {
      if (std::ranges::find(known, key) != known.end()) continue;
      return BadInput(fmt::format("{}: unknown key '{}'{}", path, key, Hint(key, known)));
    }
    return JsonConfig(std::move(json), path);
  }

  bool Has(const char* key) const { return json_.contains(key); }
  bool IsText(const char* key) const { return Has(key) && json_[key].is_string(); }
  Status TakeNumber(const char* key, const Quantity& quantity, double& value) const {
    const auto found = json_.find(key);
    if (found == json_.end()) return {};
    std::optional<double> number;
    if (found->is_number()) number = found->get<double>();
    if (found->is_boolean()) number = found->get<bool>() ? 1 : 0;
    if (found->is_string()) number = quantity.of_text(found->get<std::string>());
    if (!number || !std::isfinite(*number) || *number < 0) {
      return BadInput(fmt::format("{}: {}: found {}, expected {}", path_, key, found->dump(),
                                  quantity.expected));
    }
    value = *number;
    return {};
  }
  // Reads a bounded integer.
  Status TakeWhole(const char* key, const Quantity& quantity, int64_t least, int64_t& value) const {
    if (!Has(key)) return {};
    double number = 0;
    ETUDE_RETURN_IF_ERROR(TakeNumber(key, quantity, number));
    if (number < static_cast<double>(least) || number > kMostWhole ||
        number != std::floor(number)) {
      return BadInput(fmt::format("{}: {}: found {}, expected a whole number of {} or more", path_,
                                  key, json_[key].dump(), least));
    }
    value = static_cast<int64_t>(number);
    return {};
  }
  Status TakeTruth(const char* key, bool& value) const {
    double number = value ? 1 : 0;
    ETUDE_RETURN_IF_ERROR(TakeNumber(key, kNumber, number));
    value = number != 0;
    return {};
  }
  Result<std::vector<std::string>> Names(const char* key) const {
    std::vector<std::string> names;
    const auto found = json_.find(key);
    if (found == json_.end()) return names;
    if (!found->is_array()) {
      return BadInput(
          fmt::format("{}: {}: found {}, expected a list of names", path_, key, found->dump()));
    }
    for (const Json& name : *found) {
      if (!name.is_string()) {
        return BadInput(fmt::format("{}: {}: found {}, expected a name", path_, key, name.dump()));
      }
      names.push_back(name.get<std::string>());
    }
    return names;
  }
  template <typename T, size_t N>
  Status TakeWord(const char* key, const std::pair<std::string_view, T> (&words)[N],
                  T& value) const {
    const auto found = json_.find(key);
    if (found == json_.end()) return {};
    std::vector<std::string_view> known;
    for (const auto& [word, meaning] : words) {
      known.push_back(word);
      if (!found->is_string() || found->get<std::string>() != word) continue;
      value = meaning;
      return {};
    }
    return BadInput(fmt::format("{}: {}: found {}, expected {}", path_, key, found->dump(),
                                fmt::join(known, ", ")));
  }

 private:
  static constexpr double kMostWhole = 1e15;

  JsonConfig(Json json, std::string path) : json_(std::move(json)), path_(std::move(path)) {}

  Json json_;
  std::string path_;
};

// Reads the bus with ASTRA-sim's rounding: single precision, times in whole ns.
Result<SharedBus> BusOf(const JsonConfig& json, std::vector<std::string>& remarks) {
  SharedBus bus;
  const auto take = [&](const char* key, const Quantity& quantity, double& value) -> Status {
    ETUDE_RETURN_IF_ERROR(json.TakeNumber(key, quantity, value));
    value = static_cast<double>(static_cast<float>(std::min(value, 1e17)));
    return {};
  };
  const std::pair<const char*, int64_t*> times[] = {
      {"L", &bus.latency}, {"o", &bus.overhead}, {"g", &bus.gap}};
  for (const auto& [key, time] : times) {
    double value = 0;
    ETUDE_RETURN_IF_ERROR(take(key, kNanos, value));
    *time = WholeNanos(value);
    if (static_cast<double>(*time) == value) continue;
    remarks.push_back(
        fmt::format("{}: found {:.6g} ns, rounded to {} ns as in ASTRA-sim", key, value, *time));
  }
  ETUDE_RETURN_IF_ERROR(take("G", kNumber, bus.nanos_of_byte));
  ETUDE_RETURN_IF_ERROR(json.TakeWhole("local-reduction-delay", kNanos, 0, bus.reduction));
  return bus;
}

constexpr std::pair<std::string_view, NetworkShape> kShapes[] = {
    {"Ring", NetworkShape::kRing},
    {"FullyConnected", NetworkShape::kFullyConnected},
    {"Switch", NetworkShape::kSwitch},
};

// Returns dimension `i` of the lists, with at most `most` NPUs.
Result<NetworkDim> NetworkDimOf(const NetworkLists& lists, size_t i, const std::string& path,
                                int64_t most) {
  const auto& [topology, npus_count, rate, time] = lists.of_key;
  const auto shape =
      std::ranges::find(kShapes, topology[i], &std::pair<std::string_view, NetworkShape>::first);
  if (shape == std::end(kShapes)) {
    return BadInput(
        fmt::format("{}: topology: found '{}', expected Ring, FullyConnected or Switch{}", path,
                    topology[i], TopologyHint(topology[i])));
  }
  const auto npus = ParseWhole(npus_count[i]);
  if (!npus || *npus < 1 || *npus > most) {
    return BadInput(fmt::format(
        "{}: npus_count: found '{}', expected 1 or more per dimension and at most {} in total",
        path, npus_count[i], kMostNpus));
  }
  const auto bandwidth = kNetworkRate.of_text(rate[i]);
  if (!bandwidth || !(*bandwidth > 0) || *bandwidth > kMostNetworkRate) {
    return BadInput(fmt::format("{}: bandwidth: found '{}', expected {} {}", path, rate[i],
                                NetworkRateRange(bandwidth), kNetworkRate.expected));
  }
  const auto latency = kNanos.of_text(time[i]);
  if (!latency || !(*latency >= 0) || !std::isfinite(*latency)) {
    return BadInput(
        fmt::format("{}: latency: found '{}', expected {}", path, time[i], kNanos.expected));
  }
  NetworkDim dim;
  dim.shape = shape->second;
  dim.npus = *npus;
  dim.bandwidth = *bandwidth;
  dim.latency = *latency;
  return dim;
}

// Reads the programs that define a collective.
Status NamePrograms(const JsonConfig& json, const std::string& key, CollectiveType type,
                    SimMachine& machine, AstraCollectives& collectives) {
  ETUDE_ASSIGN_OR_RETURN(const std::vector<std::string> files, json.Names(key.c_str()));
  if (!files.empty()) collectives[type] = files.front();
  if (files.size() > 1) {
    machine.system_remarks.push_back(fmt::format(
        "{}: found {} programs; the first one runs in all dimensions", key, files.size()));
  }
  return {};
}

// Reads the algorithms of collectives that ASTRA-sim does not have: their only ones, or those in
// the network.
Status ReadOwnAlgorithms(const JsonConfig& json, const std::string& path, SimMachine& machine,
                         AstraCollectives& collectives) {
  static constexpr std::pair<std::string_view, CollectiveType> kTypes[] = {
      {"broadcast", CollectiveType::kBroadcast}, {"reduce", CollectiveType::kReduce},
      {"gather", CollectiveType::kGather},       {"scatter", CollectiveType::kScatter},
      {"barrier", CollectiveType::kBarrier},
  };
  for (const auto& [name, type] : kTypes) {
    const std::string key = fmt::format("{}-implementation", name);
    ETUDE_RETURN_IF_ERROR(NamePrograms(json, key + "-custom", type, machine, collectives));
    ETUDE_ASSIGN_OR_RETURN(const std::vector<std::string> choices, json.Names(key.c_str()));
    if (const size_t dims = machine.dims.size();
        dims > 0 && !choices.empty() && choices.size() != dims &&
        (machine.graph == nullptr || choices.size() != 1)) {
      return BadInput(
          fmt::format("{}: {}: found {} algorithms, expected {}, one for each dimension", path, key,
                      choices.size(), dims));
    }
    for (const std::string& choice : choices) {
      const auto& all = AlgorithmTable();
      const auto is_for = [&](const AlgorithmInfo& info) { return info.IsFor(type); };
      const auto found = std::ranges::find_if(
          all, [&](const AlgorithmInfo& info) { return is_for(info) && info.name == choice; });
      if (found == all.end()) {
        std::vector<std::string_view> names;
        for (const AlgorithmInfo& info : all) {
          if (is_for(info)) names.push_back(info.name);
        }
        return BadInput(fmt::format("{}: {}: found '{}', expected {}", path, key, choice,
                                    fmt::join(names, " or ")));
      }
      machine.system.algorithms[type].push_back({.algorithm = found->algorithm});
    }
  }
  return {};
}

// Reads the algorithms of each collective, and the programs that replace them.
Result<AstraCollectives> ReadAlgorithms(const JsonConfig& json, const std::string& path,
                                        SimMachine& machine) {
  static constexpr std::pair<std::string_view, CollectiveType> kTypes[] = {
      {"all-reduce", CollectiveType::kAllReduce},
      {"all-gather", CollectiveType::kAllGather},
      {"reduce-scatter", CollectiveType::kReduceScatter},
      {"all-to-all", CollectiveType::kAllToAll},
  };
  AstraCollectives collectives;
  ETUDE_RETURN_IF_ERROR(ReadOwnAlgorithms(json, path, machine, collectives));
  for (const auto& [name, type] : kTypes) {
    const std::string key = fmt::format("{}-implementation", name);
    ETUDE_ASSIGN_OR_RETURN(const std::vector<std::string> choices, json.Names(key.c_str()));
    if (const size_t dims = machine.dims.size(); dims > 0 && choices.size() > dims) {
      return BadInput(fmt::format("{}: {}: found {} algorithms for {} dimensions", path, key,
                                  choices.size(), dims));
    }
    for (const std::string& choice : choices) {
      ETUDE_ASSIGN_OR_RETURN(const AlgorithmChoice parsed,
                             AlgorithmNamed(choice, fmt::format("{}: {}", path, key)));
      machine.system.algorithms[type].push_back(parsed);
    }
    ETUDE_RETURN_IF_ERROR(NamePrograms(json, key + "-custom", type, machine, collectives));
  }
  return collectives;
}

}  // namespace

std::string TopologyHint(std::string_view word) {
  std::vector<std::string_view> names;
  for (const auto& [name, shape] : kShapes) {
    if (name == word) return "";
    names.push_back(name);
  }
  return Hint(word, names);
}

Status ParseAstraNetwork(const std::string& text, const std::string& path, SimMachine& machine) {
  ETUDE_ASSIGN_OR_RETURN(const NetworkLists lists, ReadNetworkLists(text, path));
  int64_t total = 1;
  for (size_t i = 0; i < lists.dims(); ++i) {
    ETUDE_ASSIGN_OR_RETURN(const NetworkDim dim, NetworkDimOf(lists, i, path, kMostNpus / total));
    total *= dim.npus;
    machine.dims.push_back(dim);
  }
  return {};
}

Result<AstraCollectives> ParseAstraSystem(const std::string& text, const std::string& path,
                                          SimMachine& machine) {
  // Keys of ASTRA-sim, and keys that its examples contain and it ignores.
  static constexpr std::string_view kKeys[] = {"scheduling-policy",
                                               "endpoint-delay",
                                               "active-chunks-per-dimension",
                                               "preferred-dataset-splits",
                                               "all-reduce-implementation",
                                               "all-gather-implementation",
                                               "reduce-scatter-implementation",
                                               "all-to-all-implementation",
                                               "broadcast-implementation",
                                               "reduce-implementation",
                                               "gather-implementation",
                                               "scatter-implementation",
                                               "barrier-implementation",
                                               "all-reduce-implementation-custom",
                                               "all-gather-implementation-custom",
                                               "reduce-scatter-implementation-custom",
                                               "all-to-all-implementation-custom",
                                               "broadcast-implementation-custom",
                                               "reduce-implementation-custom",
                                               "gather-implementation-custom",
                                               "scatter-implementation-custom",
                                               "barrier-implementation-custom",
                                               "collective-optimization",
                                               "local-mem-bw",
                                               "peak-perf",
                                               "roofline-enabled",
                                               "replay-only",
                                               "boost-mode",
                                               "intra-dimension-scheduling",
                                               "inter-dimension-scheduling",
                                               "trace-enabled",
                                               "track-local-mem",
                                               "local-mem-trace-filename",
                                               "model-shared-bus",
                                               "L",
                                               "o",
                                               "g",
                                               "G",
                                               "local-reduction-delay",
                                               "local-reduction-delays",
                                               "seprate-log",
                                               "dim-to-break"};
  ETUDE_ASSIGN_OR_RETURN(const JsonConfig json, JsonConfig::Parse(text, path, kKeys));
  SystemModel& system = machine.system;
  static constexpr std::pair<std::string_view, StreamOrder> kOrders[] = {
      {"FIFO", StreamOrder::kFifo},
      {"LIFO", StreamOrder::kLifo},
      {"EXPLICIT", StreamOrder::kExplicit},
  };
  static constexpr std::pair<std::string_view, bool> kOptimizations[] = {{"baseline", false},
                                                                         {"localBWAware", true}};
  ETUDE_RETURN_IF_ERROR(json.TakeWord("scheduling-policy", kOrders, system.order));
  ETUDE_RETURN_IF_ERROR(
      json.TakeWord("collective-optimization", kOptimizations, system.bandwidth_aware));
  ETUDE_RETURN_IF_ERROR(json.TakeWhole("endpoint-delay", kNanos, 0, system.endpoint_delay));
  ETUDE_RETURN_IF_ERROR(
      json.TakeWhole("active-chunks-per-dimension", kNumber, 1, system.active_chunks));
  ETUDE_RETURN_IF_ERROR(json.TakeWhole("preferred-dataset-splits", kNumber, 1, system.splits));
  constexpr int64_t kMostSplits = 1 << 16;
  if (system.splits > kMostSplits) {
    return BadInput(fmt::format("{}: preferred-dataset-splits: found {}, expected up to {}", path,
                                system.splits, kMostSplits));
  }
  ETUDE_RETURN_IF_ERROR(json.TakeNumber("local-mem-bw", kMemoryRate, system.memory_bandwidth));
  ETUDE_RETURN_IF_ERROR(json.TakeNumber("peak-perf", kPeak, system.peak));
  ETUDE_RETURN_IF_ERROR(json.TakeTruth("roofline-enabled", system.roofline));
  ETUDE_RETURN_IF_ERROR(json.TakeTruth("replay-only", system.replay_only));
  bool shared_bus = false;
  ETUDE_RETURN_IF_ERROR(json.TakeTruth("model-shared-bus", shared_bus));
  if (shared_bus) {
    ETUDE_ASSIGN_OR_RETURN(system.shared_bus, BusOf(json, machine.system_remarks));
  }
  if (system.roofline && (!(system.memory_bandwidth > 0) || !(system.peak > 0))) {
    return BadInput(
        fmt::format("{}: roofline-enabled: requires local-mem-bw and peak-perf above 0", path));
  }
  return ReadAlgorithms(json, path, machine);
}

Status ParseAstraMemory(const std::string& text, const std::string& path, SimMachine& machine) {
  static constexpr std::string_view kKeys[] = {"memory-type", "remote-mem-latency", "remote-mem-bw",
                                               "num-nodes", "num-npus-per-node"};
  static constexpr std::pair<std::string_view, RemoteMemoryKind> kKinds[] = {
      {"NO_MEMORY_EXPANSION", RemoteMemoryKind::kNone},
      {"PER_NPU_MEMORY_EXPANSION", RemoteMemoryKind::kPerNpu},
      {"PER_NODE_MEMORY_EXPANSION", RemoteMemoryKind::kPerNode},
      {"MEMORY_POOL", RemoteMemoryKind::kPool},
  };
  ETUDE_ASSIGN_OR_RETURN(const JsonConfig json, JsonConfig::Parse(text, path, kKeys));
  RemoteMemory& memory = machine.memory;
  ETUDE_RETURN_IF_ERROR(json.TakeWord("memory-type", kKinds, memory.kind));
  ETUDE_RETURN_IF_ERROR(json.TakeWhole("remote-mem-latency", kNanos, 0, memory.latency));
  ETUDE_RETURN_IF_ERROR(json.TakeNumber("remote-mem-bw", kMemoryRate, memory.bandwidth));
  ETUDE_RETURN_IF_ERROR(json.TakeWhole("num-npus-per-node", kNumber, 1, memory.npus_per_node));
  int64_t nodes = 0;
  ETUDE_RETURN_IF_ERROR(json.TakeWhole("num-nodes", kNumber, 1, nodes));
  // ASTRA-sim uses whole bytes per ns.
  if (!json.IsText("remote-mem-bw")) memory.bandwidth = std::floor(memory.bandwidth);
  if (memory.kind != RemoteMemoryKind::kNone && !(memory.bandwidth > 0)) {
    return BadInput(fmt::format(
        "{}: remote-mem-bw: expected at least 1 byte per nanosecond, or a rate with a unit", path));
  }
  const auto remark = [&](std::string what) { machine.memory_remarks.push_back(std::move(what)); };
  if (memory.kind != RemoteMemoryKind::kNone && !json.Has("remote-mem-latency")) {
    remark("missing remote-mem-latency, using 0 ns");
  }
  if (memory.kind != RemoteMemoryKind::kPerNode) return {};
  if (!json.Has("num-npus-per-node")) remark("missing num-npus-per-node, using 1");
  if (const int64_t npus = machine.npus();
      nodes > 0 && !machine.dims.empty() &&
      (npus % nodes != 0 || npus / nodes != memory.npus_per_node)) {
    remark(fmt::format("found {} nodes of {}, but the network has {} NPUs; using nodes of {}",
                       nodes, memory.npus_per_node, npus, memory.npus_per_node));
  }
  return {};
}

}  // namespace etude
