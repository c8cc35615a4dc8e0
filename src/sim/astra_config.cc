#include "src/sim/astra_config.h"

#include <yaml-cpp/yaml.h>

#include <charconv>
#include <optional>
#include <type_traits>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace etude {
namespace {

using Json = nlohmann::json;

Result<AlgorithmChoice> ChoiceNamed(const std::string& name, const std::string& path) {
  AlgorithmChoice choice;
  std::string_view rest = name;
  if (rest.starts_with("one")) {
    choice.whole = true;
    rest.remove_prefix(3);
  }
  const auto is = [&](std::string_view word) {
    return rest.size() >= word.size() && (rest[0] | 0x20) == word[0] &&
           rest.substr(1, word.size() - 1) == word.substr(1);
  };
  if (is("ring") && rest.size() == 4) return choice;
  if (is("doubleBinaryTree") && rest.size() == 16) {
    choice.algorithm = CollectiveAlgorithm::kDoubleBinaryTree;
    return choice;
  }
  if (is("halvingDoubling") && rest.size() == 15) {
    choice.algorithm = CollectiveAlgorithm::kHalvingDoubling;
    return choice;
  }
  if (is("direct")) {
    choice.algorithm = CollectiveAlgorithm::kDirect;
    rest.remove_prefix(6);
    if (rest.empty()) return choice;
    int64_t window = 0;
    const auto end = std::from_chars(rest.data(), rest.data() + rest.size(), window);
    if (end.ptr == rest.data() + rest.size() && window > 0) {
      choice.window = window;
      return choice;
    }
  }
  return BadInput(fmt::format(
      "{}: found the algorithm '{}', expected ring, direct, direct4 (with a window), "
      "halvingDoubling or doubleBinaryTree, or one of them behind 'one'",
      path, name));
}

template <typename T>
Status TakeNumbers(const YAML::Node& root, const char* key, const std::string& path,
                   std::vector<T>& values) {
  const YAML::Node list = root[key];
  if (!list || !list.IsSequence()) {
    return BadInput(fmt::format("{}: expected '{}', a list with a value for each dimension", path,
                                key));
  }
  for (const YAML::Node& item : list) {
    T value{};
    if (!YAML::convert<T>::decode(item, value)) {
      return BadInput(fmt::format("{}:{}:{}: expected a number in '{}'", path,
                                  item.Mark().line + 1, item.Mark().column + 1, key));
    }
    values.push_back(value);
  }
  return {};
}

Result<Json> ParseObject(const std::string& text, const std::string& path) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) {
    return BadInput(fmt::format("{}: expected a JSON object", path));
  }
  return json;
}

template <typename T>
Status TakeValue(const Json& json, const char* key, const std::string& path, T& value) {
  const auto found = json.find(key);
  if (found == json.end()) return {};
  if (!found->is_number() && !found->is_boolean()) {
    return BadInput(fmt::format("{}: {}: found {}, expected a number", path, key, found->dump()));
  }
  if constexpr (std::is_same_v<T, bool>) {
    value = found->is_boolean() ? found->get<bool>() : found->get<double>() != 0;
  } else {
    value = found->is_boolean() ? static_cast<T>(found->get<bool>()) : found->get<T>();
  }
  return {};
}

}  // namespace

Status ParseAstraNetwork(const std::string& text, const std::string& path, SimMachine& machine) {
  std::vector<std::string> shapes;
  std::vector<int64_t> npus;
  std::vector<double> bandwidths;
  std::vector<double> latencies;
  try {
    const YAML::Node root = YAML::Load(text);
    if (!root.IsMap()) return BadInput(fmt::format("{}: expected keys and values", path));
    ETUDE_RETURN_IF_ERROR(TakeNumbers(root, "topology", path, shapes));
    ETUDE_RETURN_IF_ERROR(TakeNumbers(root, "npus_count", path, npus));
    ETUDE_RETURN_IF_ERROR(TakeNumbers(root, "bandwidth", path, bandwidths));
    ETUDE_RETURN_IF_ERROR(TakeNumbers(root, "latency", path, latencies));
  } catch (const YAML::Exception& error) {
    return BadInput(fmt::format("{}:{}:{}: {}", path, error.mark.line + 1, error.mark.column + 1,
                                error.msg));
  }
  if (npus.size() != shapes.size() || bandwidths.size() != shapes.size() ||
      latencies.size() != shapes.size()) {
    return BadInput(fmt::format(
        "{}: found {} topologies, {} npus_count, {} bandwidths and {} latencies, expected as many "
        "of each",
        path, shapes.size(), npus.size(), bandwidths.size(), latencies.size()));
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    NetworkDim dim{.npus = npus[i], .bandwidth = bandwidths[i], .latency = latencies[i]};
    if (shapes[i] == "Ring") {
      dim.shape = NetworkShape::kRing;
    } else if (shapes[i] == "FullyConnected") {
      dim.shape = NetworkShape::kFullyConnected;
    } else if (shapes[i] == "Switch") {
      dim.shape = NetworkShape::kSwitch;
    } else {
      return BadInput(fmt::format(
          "{}: found the topology '{}', expected Ring, FullyConnected or Switch", path, shapes[i]));
    }
    if (dim.npus < 1 || !(dim.bandwidth > 0) || !(dim.latency >= 0)) {
      return BadInput(fmt::format(
          "{}: dimension {}: expected one NPU or more, a bandwidth above 0 and a latency of 0 or "
          "more",
          path, i));
    }
    machine.dims.push_back(dim);
  }
  return {};
}

Status ParseAstraSystem(const std::string& text, const std::string& path, SimMachine& machine) {
  ETUDE_ASSIGN_OR_RETURN(const Json json, ParseObject(text, path));
  SystemModel& system = machine.system;
  const std::string order = json.value("scheduling-policy", "FIFO");
  if (order == "LIFO") system.order = StreamOrder::kLifo;
  if (order == "FIFO") system.order = StreamOrder::kFifo;
  if (order == "EXPLICIT") system.order = StreamOrder::kExplicit;
  ETUDE_RETURN_IF_ERROR(TakeValue(json, "endpoint-delay", path, system.endpoint_delay));
  ETUDE_RETURN_IF_ERROR(
      TakeValue(json, "active-chunks-per-dimension", path, system.active_chunks));
  ETUDE_RETURN_IF_ERROR(TakeValue(json, "preferred-dataset-splits", path, system.splits));
  ETUDE_RETURN_IF_ERROR(TakeValue(json, "local-mem-bw", path, system.memory_bandwidth));
  ETUDE_RETURN_IF_ERROR(TakeValue(json, "peak-perf", path, system.peak));
  ETUDE_RETURN_IF_ERROR(TakeValue(json, "roofline-enabled", path, system.roofline));
  ETUDE_RETURN_IF_ERROR(TakeValue(json, "replay-only", path, system.replay_only));
  system.bandwidth_aware = json.value("collective-optimization", "baseline") == "localBWAware";
  const std::pair<const char*, CollectiveType> kinds[] = {
      {"all-reduce-implementation", CollectiveType::kAllReduce},
      {"all-gather-implementation", CollectiveType::kAllGather},
      {"reduce-scatter-implementation", CollectiveType::kReduceScatter},
      {"all-to-all-implementation", CollectiveType::kAllToAll},
  };
  for (const auto& [key, type] : kinds) {
    const auto found = json.find(key);
    if (found == json.end()) continue;
    for (const Json& name : *found) {
      if (!name.is_string()) {
        return BadInput(fmt::format("{}: {}: expected names", path, key));
      }
      ETUDE_ASSIGN_OR_RETURN(const AlgorithmChoice choice,
                             ChoiceNamed(name.get<std::string>(), path));
      system.algorithms[type].push_back(choice);
    }
  }
  return {};
}

Status ParseAstraMemory(const std::string& text, const std::string& path, SimMachine& machine) {
  ETUDE_ASSIGN_OR_RETURN(const Json json, ParseObject(text, path));
  RemoteMemory& memory = machine.memory;
  const std::string kind = json.value("memory-type", "");
  if (kind == "NO_MEMORY_EXPANSION") {
    memory.kind = RemoteMemoryKind::kNone;
  } else if (kind == "PER_NPU_MEMORY_EXPANSION") {
    memory.kind = RemoteMemoryKind::kPerNpu;
  } else if (kind == "PER_NODE_MEMORY_EXPANSION") {
    memory.kind = RemoteMemoryKind::kPerNode;
  } else if (kind == "MEMORY_POOL") {
    memory.kind = RemoteMemoryKind::kPool;
  } else {
    return BadInput(fmt::format("{}: memory-type: found '{}', expected NO_MEMORY_EXPANSION, …", path,
                                kind));
  }
  ETUDE_RETURN_IF_ERROR(TakeValue(json, "remote-mem-latency", path, memory.latency));
  ETUDE_RETURN_IF_ERROR(TakeValue(json, "remote-mem-bw", path, memory.bandwidth));
  ETUDE_RETURN_IF_ERROR(TakeValue(json, "num-npus-per-node", path, memory.npus_per_node));
  return {};
}

}  // namespace etude
