#include "src/sim/sweep/sweep_point.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/text/quantity.h"
#include "src/formats/io/byte_source.h"
#include "src/sim/collective/collective_algorithms.h"
#include "src/sim/engine/simulator.h"
#include "src/sim/machine/algorithm_rules.h"
#include "src/sim/machine/fault_text.h"
#include "src/sim/machine/fitted_network.h"
#include "src/sim/machine/graph_machine.h"
#include "src/sim/machine/network_text.h"
#include "src/sim/machine/timed_machine.h"
#include "src/sim/network/network_files.h"
#include "src/sim/network/network_topologies.h"
#include "src/sim/result/energy_file.h"

namespace etude {
namespace {

using Json = nlohmann::json;

constexpr std::array<const char*, 4> kDimKeys = {"topology", "npus_count", "bandwidth", "latency"};
constexpr std::array<const char*, 4> kAlgorithmKeys = {
    "all-reduce-implementation", "all-gather-implementation", "reduce-scatter-implementation",
    "all-to-all-implementation"};
constexpr std::string_view kCustom = "-implementation-custom";
// Settings that a machine file replaces.
constexpr std::string_view kNetworkSettings[] = {
    "model",      "network", "system", "memory",     "algorithm",       "algorithms",
    "congestion", "routes",  "queues", "rendezvous", "injection_scale", "slow_link"};

// Returns the settings of a machine that the specification does not set.
Json UsualMachine() {
  return {{"network", Json::object()},
          {"system", Json::object()},
          {"memory", Json::object()},
          {"congestion", "unaware"},
          {"queues", 1},
          {"rendezvous", false},
          {"injection_scale", 1},
          {"straggler", "none"},
          {"slow_link", "none"}};
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

// Resolves prefixes and plans of custom collectives whose files are in `folder`.
void FindPrograms(const std::string& folder, Json& prefixes) {
  if (!prefixes.is_array()) return;
  for (Json& prefix : prefixes) {
    if (!prefix.is_string()) continue;
    const auto name = prefix.get<std::string>();
    if (name.starts_with('/')) continue;
    const std::string first = folder + name + (name.ends_with(".json") ? "" : ".0.et");
    if (CheckRegular(first) && ByteSource::Open(first, {})) prefix = folder + name;
  }
}

// Converts a YAML document of lists, keeping values as texts. Malformed documents are reported by
// their parser.
Json JsonOfYaml(const std::string& text) {
  Json json = Json::object();
  try {
    for (const auto& entry : YAML::Load(text)) {
      Json list = Json::array();
      for (const YAML::Node& item : entry.second) list.push_back(item.Scalar());
      json[entry.first.Scalar()] = std::move(list);
    }
  } catch (const YAML::Exception&) {
    return Json::object();
  }
  return json;
}

// Repeats a single value for all dimensions, and returns their number.
size_t FillDims(Json& machine) {
  Json& network = machine["network"];  // its text has one dimension
  size_t dims = 1;
  for (const char* key : kDimKeys) {
    if (network.contains(key) && network[key].is_array())
      dims = std::max(dims, network[key].size());
  }
  const auto fill = [&](Json& value) {
    if (!value.is_array()) value = Json(dims, value);
  };
  for (const char* key : kDimKeys) {
    if (network.contains(key)) fill(network[key]);
  }
  Json& system = machine["system"];
  const bool has_any = std::ranges::any_of(kAlgorithmKeys, [&](const char* key) {
    return system.contains(key) || system.contains(key + std::string("-custom"));
  });
  if (machine.contains("algorithm") || !has_any) {
    Json algorithm = machine.value("algorithm", Json("ring"));
    fill(algorithm);
    for (const char* key : kAlgorithmKeys) system[key] = algorithm;
    // Not every algorithm is for all-to-alls.
    for (Json& choice : system["all-to-all-implementation"]) {
      if (!choice.is_string()) continue;
      const auto parsed = AlgorithmNamed(choice.get<std::string>(), "");
      if (parsed && !Info(parsed->algorithm).IsFor(CollectiveType::kAllToAll)) {
        choice = Info(CollectiveAlgorithm::kDirect).name;
      }
    }
  }
  machine.erase("algorithm");
  for (const char* key : kAlgorithmKeys) {
    if (system.contains(key)) fill(system[key]);
  }
  return dims;
}

// Returns "sweep.toml:3:7: job".
std::string PlacedKey(const SweepSetting& setting) {
  return fmt::format("{}: {}", setting.place, fmt::join(setting.path, "."));
}

// Returns the number of links of a one-dimensional network.
double LinksOf(const NetworkDim& dim) {
  const auto npus = static_cast<double>(dim.npus);
  if (dim.npus < 2) return 0;
  switch (dim.shape) {
    case NetworkShape::kRing: return dim.npus == 2 ? 1 : npus;
    case NetworkShape::kFullyConnected: return npus * (npus - 1) / 2;
    case NetworkShape::kSwitch: return npus;
    case NetworkShape::kGraph: break;
  }
  return 0;
}

// Checks a network, of any model, because the model may be set later.
Status CheckNetwork(const std::string& text, const std::string& where) {
  SimMachine scratch;
  if (IsListOfDims(text) && ParseAstraNetwork(text, where, scratch)) return {};
  const Result<NetworkGraph> graph = ParseNetworkGraph(text, where);
  return graph ? Status() : tl::unexpected<Error>(graph.error());
}

// Returns the model of a point that sets none.
const char* UsualModel(const SweepPoint& point) {
  const Json& network = point.machine.at("network");
  const bool is_of_astra = (point.network_of_astra || point.settings_of_astra) &&
                           point.machine.value("routes", "hashed") == "hashed";
  const bool is_graph = !is_of_astra || point.machine.contains("algorithms") ||
                        network.is_string() || NeedsGraph(network.dump());
  return is_graph ? "etude-1" : "astra-sim-2.0";
}

// Returns the GB/s of all links of each dimension.
std::vector<double> RatesOf(const SimMachine& machine) {
  if (machine.graph != nullptr) {
    std::vector<double> sums(machine.dims.size());
    // A link consists of two directions.
    for (const NetworkLink& link : machine.graph->links()) sums[link.dim] += link.bandwidth / 2;
    return sums;
  }
  constexpr double kGbOfGib = 1073741824.0 / 1e9;
  std::vector<double> rates;
  for (const NetworkDim& dim : machine.dims) {
    const double networks = static_cast<double>(machine.npus() / dim.npus);
    rates.push_back(networks * LinksOf(dim) * dim.bandwidth * kGbOfGib);
  }
  return rates;
}

// Parses a file that ParseAstraSystem or ParseAstraMemory accepted, which may contain comments.
Json ParseAgain(const std::string& text) {
  return Json::parse(text, nullptr, /*allow_exceptions=*/true, /*ignore_comments=*/true);
}

}  // namespace

std::string SweepPoint::PathOf(const std::string& file) const {
  if (file.starts_with('/')) return file;
  // Avoids names that read as options or standard input.
  return folder.empty() && file.starts_with('-') ? "./" + file : folder + file;
}

bool HasRanksOfJob(const SweepPoint& point) { return point.machine.contains("machine"); }

Result<SweepMachine> MachineOf(const SweepPoint& point, int64_t ranks) {
  SweepMachine made;
  const Json& json = point.machine;
  const auto name = [&](const char* section) { return fmt::format("{}: {}", point.name, section); };
  if (json.contains("energy")) {
    ETUDE_ASSIGN_OR_RETURN(
        made.energy, ParseEnergyFigures(json.at("energy").get<std::string>(), point.energy_file));
  }
  const auto faults = [&](const char* key, Status (*add)(std::string_view, SimMachine&)) -> Status {
    const Status added = add(json.at(key).get<std::string>(), made.machine);
    if (!added) return BadInput(fmt::format("{}: {}", name(key), added.error().message));
    return {};
  };
  const auto check = [&]() -> Status {
    const Status checked = CheckMachine(made.machine);
    if (!checked) return BadInput(fmt::format("{}: {}", point.name, checked.error().message));
    return {};
  };
  made.machine.system.replay_broadcasts = false;
  if (HasRanksOfJob(point)) {
    const auto text = json.at("machine").get<std::string>();
    const int64_t npus = std::max<int64_t>(ranks, 1);
    const std::string model = json.value("model", "");
    if (model == "astra-sim-2.0") {
      return BadInput(fmt::format("{}: found '{}', expected 'etude-1' beside 'machine', or none",
                                  name("model"), model));
    }
    if (model.empty()) {
      ETUDE_ASSIGN_OR_RETURN(TimedMachine timed, ParseTimedMachine(text, point.machine_file));
      made.machine.dims = {{.shape = NetworkShape::kGraph, .npus = npus}};
      made.machine.times = std::move(timed.times);
      made.machine.cores = timed.cores;
    } else {
      ETUDE_ASSIGN_OR_RETURN(made.machine, ParseFittedMachine(text, point.machine_file, npus));
      made.machine.system.replay_broadcasts = false;
    }
    if (ranks == 0) return made;
    ETUDE_RETURN_IF_ERROR(faults("straggler", AddStragglers));
    ETUDE_RETURN_IF_ERROR(check());
    return made;
  }
  const bool is_graph = json.at("model") == "etude-1";
  const bool by_load = json.value("routes", "hashed") == "least-loaded";
  if (by_load && !is_graph) {
    return BadInput(fmt::format("{}: found 'least-loaded', which requires model = \"etude-1\"",
                                name("routes")));
  }
  made.machine.routes = by_load ? RouteChoice::kLeastLoaded : RouteChoice::kHashed;
  const Json& network = json.at("network");
  if (network.is_string() && !is_graph) {
    return BadInput(fmt::format("{}: found {}, which requires model = \"etude-1\"", name("network"),
                                point.network_file));
  }
  if (is_graph) {
    ETUDE_ASSIGN_OR_RETURN(NetworkGraph graph,
                           network.is_string()
                               ? ParseNetworkGraph(network.get<std::string>(), point.network_file)
                               : MakeNetwork(network.dump(), name("network")));
    std::vector<std::string> slow_links;
    if (json.at("slow_link") != "none") {
      std::istringstream words(json.at("slow_link").get<std::string>());
      for (std::string word; words >> word;) slow_links.push_back(word);
    }
    const Status used = UseGraph(std::move(graph), slow_links, name("network"), made.machine);
    if (!used) {
      const bool of_links = used.error().code == ErrorCode::kUsage;
      return BadInput((of_links ? name("slow_link") + ": " : "") + used.error().message);
    }
  } else {
    ETUDE_RETURN_IF_ERROR(ParseAstraNetwork(network.dump(), name("network"), made.machine));
  }
  ETUDE_ASSIGN_OR_RETURN(made.collectives,
                         ParseAstraSystem(json.at("system").dump(), name("system"), made.machine));
  ETUDE_RETURN_IF_ERROR(SpreadAlgorithms(name("system"), made.machine));
  ETUDE_RETURN_IF_ERROR(ParseAstraMemory(json.at("memory").dump(), name("memory"), made.machine));
  if (json.contains("algorithms")) {
    if (!is_graph) {
      return BadInput(fmt::format("{}: requires model = \"etude-1\"", name("algorithms")));
    }
    const auto text = json.at("algorithms").get<std::string>();
    ETUDE_RETURN_IF_ERROR(
        UseAlgorithmRules(text, text == kGlooRules ? text : point.algorithms_file, made.machine));
  }
  made.machine.congestion = json.at("congestion").get<std::string>() == "aware";
  if (is_graph && made.machine.congestion) {
    return BadInput(fmt::format("{}: found 'aware', which requires model = \"astra-sim-2.0\"",
                                name("congestion")));
  }
  made.machine.system.queues = json.at("queues").get<int64_t>();
  made.machine.system.rendezvous = json.at("rendezvous").get<bool>();
  made.machine.system.endpoint_delay *= json.at("injection_scale").get<int64_t>();
  ETUDE_RETURN_IF_ERROR(faults("straggler", AddStragglers));
  if (!is_graph) ETUDE_RETURN_IF_ERROR(faults("slow_link", AddSlowLinks));
  ETUDE_RETURN_IF_ERROR(check());
  return made;
}

double LinkBandwidthOf(const SimMachine& machine) {
  double sum = 0;
  for (const double rate : RatesOf(machine)) sum += rate;
  return sum;
}

Result<double> CostOf(const SimMachine& machine, const SweepPrices& prices) {
  const size_t dims = machine.dims.size();
  if (prices.bandwidth.size() > 1 && prices.bandwidth.size() != dims) {
    return BadInput(
        fmt::format("prices: found {} bandwidth prices, expected one, or {} (one per dimension)",
                    prices.bandwidth.size(), dims));
  }
  double cost = static_cast<double>(machine.npus()) * prices.npu;
  const std::vector<double> rates = RatesOf(machine);
  for (size_t i = 0; i < dims && !prices.bandwidth.empty(); ++i) {
    cost += rates[i] * prices.bandwidth[prices.bandwidth.size() == 1 ? 0 : i];
  }
  return cost;
}

SweepPlanner::SweepPlanner(const SweepSpec& spec, std::string path, Limits limits)
    : spec_(spec), path_(std::move(path)), folder_(FolderOf(path_)), limits_(limits) {}

Result<SweepPoint> SweepPlanner::PointAt(size_t index) {
  SweepPoint point{.folder = folder_, .machine = UsualMachine()};
  const std::vector<size_t> choices = spec_.ChoicesOf(index);
  point.name = fmt::format("{}: point {}", path_, index + 1);
  for (size_t i = 0; i < choices.size(); ++i) {
    point.labels.push_back(spec_.axes[i].choices[choices[i]].label);
    point.name +=
        fmt::format("{}{} {}", i == 0 ? " (" : ", ", spec_.axes[i].name, point.labels.back());
  }
  if (!choices.empty()) point.name += ")";
  const auto check_settings = [&](const std::vector<SweepSetting>& settings) -> Status {
    const auto has = [&](std::string_view key) {
      return std::ranges::any_of(settings,
                                 [&](const SweepSetting& one) { return one.path[0] == key; });
    };
    if (has("job") && has("generate")) {
      return BadInput(
          fmt::format("{}: found both 'job' and 'generate', expected one of them", point.name));
    }
    const auto other = std::ranges::find_if(
        kNetworkSettings, [&](std::string_view key) { return key != "model" && has(key); });
    if (!has("machine") || other == std::end(kNetworkSettings)) return {};
    return BadInput(
        fmt::format("{}: found both 'machine' and '{}', expected one of them", point.name, *other));
  };
  ETUDE_RETURN_IF_ERROR(check_settings(spec_.base));
  for (const SweepSetting& setting : spec_.base) ETUDE_RETURN_IF_ERROR(Apply(setting, point));
  for (size_t i = 0; i < choices.size(); ++i) {
    ETUDE_RETURN_IF_ERROR(check_settings(spec_.axes[i].choices[choices[i]].settings));
    for (const SweepSetting& setting : spec_.axes[i].choices[choices[i]].settings) {
      ETUDE_RETURN_IF_ERROR(Apply(setting, point));
    }
  }
  if (point.job.path.empty() && point.job.generate.empty()) {
    return BadInput(fmt::format("{}: missing 'job' or 'generate'", point.name));
  }
  if (!point.job.generate.empty() && !point.job.what_if.empty()) {
    return BadInput(
        fmt::format("{}: found 'whatif', which edits jobs, and 'generate', "
                    "expected 'job'",
                    point.name));
  }
  if (HasRanksOfJob(point)) return point;
  if (!point.machine.contains("model")) point.machine["model"] = UsualModel(point);
  const size_t dims = FillDims(point.machine);
  Json& system = point.machine["system"];
  if (dims > 1 && point.machine["model"] == "etude-1" && !point.has_system_file) {
    system.emplace("collective-optimization", "localBWAware");
  }
  return point;
}

Status SweepPlanner::Apply(const SweepSetting& setting, SweepPoint& point) {
  const std::string& key = setting.path[0];
  if (key == "job") {
    point.job.path = point.PathOf(setting.value.get<std::string>());
    point.places = {{point.job.path, PlacedKey(setting)}};
    point.job.generate.clear();
    point.generate_places.clear();
  } else if (key == "compute") {
    point.job.compute = setting.value.get<std::string>();
  } else if (key == "fill_ranks") {
    point.job.fill_ranks = setting.value.get<bool>();
  } else if (key == "capacity") {
    point.capacity = ParseBytes(setting.value.get<std::string>());
  } else if (key == "groups") {
    point.job.groups = point.PathOf(setting.value.get<std::string>());
    point.places[point.job.groups] = PlacedKey(setting);
  } else if (key == "whatif") {
    if (setting.path.size() != 2) {
      return BadInput(fmt::format("{}: {}: expected an option of 'etude whatif'", point.name,
                                  fmt::join(setting.path, ".")));
    }
    Json& value = point.job.what_if[setting.path[1]];
    value = setting.value;
    if (std::ranges::find(kRecordedEditPaths, setting.path[1]) != kRecordedEditPaths.end()) {
      value = point.PathOf(setting.value.get<std::string>());
      point.places[value.get<std::string>()] = PlacedKey(setting);
    }
  } else if (key == "generate") {
    point.places.erase(point.job.path);
    point.job.path.clear();
    if (setting.path.size() != 2) {
      return BadInput(fmt::format("{}: {}: expected an option of 'etude generate'", point.name,
                                  fmt::join(setting.path, ".")));
    }
    point.job.generate[setting.path[1]] = setting.value;
    point.generate_places[setting.path[1]] = PlacedKey(setting);
  } else {
    const Status applied = ApplyToMachine(setting, point);
    if (!applied && applied.error().code == ErrorCode::kBadInput) {
      return BadInput(fmt::format("{}: {}", point.name, applied.error().message));
    }
    return applied;
  }
  return {};
}

Status SweepPlanner::ApplyToMachine(const SweepSetting& setting, SweepPoint& point) {
  Json& machine = point.machine;
  const std::string& key = setting.path[0];
  if (key == "machine" || key == "energy") {
    ETUDE_ASSIGN_OR_RETURN(machine[key], ReadSection(setting, point));
    std::string& file = key == "machine" ? point.machine_file : point.energy_file;
    file = point.PathOf(setting.value.get<std::string>());
    if (key == "energy") return {};
    // Settings of networks have no meaning any more.
    const Json usual = UsualMachine();
    for (const std::string_view one : kNetworkSettings) {
      const std::string name(one);
      if (name == "model" && machine.value(name, "") == "etude-1") continue;
      machine.erase(name);
      if (usual.contains(name)) machine[name] = usual.at(name);
    }
    point.network_of_astra = point.settings_of_astra = point.has_system_file = false;
    return {};
  }
  if (std::ranges::find(kNetworkSettings, key) != std::end(kNetworkSettings) &&
      machine.contains("machine")) {
    if (key != "network" && key != "model") {
      return BadInput(fmt::format("{}: the machine file of this point has no such setting",
                                  PlacedKey(setting)));
    }
    if (key == "network") machine.erase("machine");
  }
  const bool is_section = key == "network" || key == "system" || key == "memory";
  if (key == "congestion") point.settings_of_astra = true;
  if (key == "algorithms") {
    machine[key] = setting.value;
    if (setting.value == kGlooRules) return {};
    ETUDE_ASSIGN_OR_RETURN(machine[key], ReadSection(setting, point));
    point.algorithms_file = point.PathOf(setting.value.get<std::string>());
    return {};
  }
  if (key == "network" && setting.path.size() == 1) {
    const std::string given = setting.value.get<std::string>();
    if (IsNetworkOfDims(given)) {
      const Result<std::string> text = NetworkOfDims(given);
      if (!text) return BadInput("network: " + text.error().message);
      ETUDE_RETURN_IF_ERROR(CheckNetwork(*text, key));
      machine[key] = JsonOfYaml(*text);
      point.network_of_astra = false;
      return {};
    }
  }
  if (is_section && setting.path.size() == 1) {
    ETUDE_ASSIGN_OR_RETURN(machine[key], ReadSection(setting, point));
    if (key == "network") {
      point.network_of_astra = machine[key].is_object();
      point.network_file = point.PathOf(setting.value.get<std::string>());
    } else {
      point.settings_of_astra = true;
      point.has_system_file = point.has_system_file || key == "system";
    }
    return {};
  }
  if (is_section && !machine[key].is_object()) {
    return BadInput(fmt::format("{}: expected a network of dimensions, found {}",
                                fmt::join(setting.path, "."), point.network_file));
  }
  Json* at = &machine;
  for (size_t i = 0; i + 1 < setting.path.size(); ++i) at = &(*at)[setting.path[i]];
  const std::string& last = setting.path.back();
  if (setting.path.size() <= 2) {
    (*at)[last] = setting.value;
    if (last.ends_with(kCustom)) FindPrograms(point.folder, (*at)[last]);
    return {};
  }
  // The value of one dimension: "network.bandwidth.1".
  const auto dim = ParseWhole(last);
  if (setting.path.size() == 3 && at->is_array() && dim && *dim >= 0 &&
      static_cast<size_t>(*dim) < at->size()) {
    (*at)[static_cast<size_t>(*dim)] = setting.value;
    return {};
  }
  return BadInput(
      fmt::format("{}: expected {}, a list with a value for each dimension, and the index of one "
                  "of them, from 0",
                  fmt::join(setting.path, "."), setting.path[1]));
}

std::vector<std::string> SweepPlanner::files() const {
  std::vector<std::string> paths;
  for (const auto& [key, content] : files_) paths.push_back(key.second);
  return paths;
}

Result<Json> SweepPlanner::ReadSection(const SweepSetting& setting, const SweepPoint& point) {
  const std::string& section = setting.path[0];
  const std::string path = point.PathOf(setting.value.get<std::string>());
  const auto [found, is_new] = files_.emplace(std::pair(section, path), Json());
  if (!is_new) return found->second;
  const Status regular = CheckRegular(path);
  const Result<std::string> read =
      regular ? ReadWholeFile(path, limits_) : tl::unexpected<Error>(regular.error());
  if (!read) {
    return MakeError(read.error().code,
                     fmt::format("{}: {}", PlacedKey(setting), read.error().message));
  }
  const std::string& text = *read;
  SimMachine machine;
  if (section == "network") {
    ETUDE_RETURN_IF_ERROR(CheckNetwork(text, path));
    found->second = IsListOfDims(text) ? JsonOfYaml(text) : Json(text);
  } else if (section == "machine") {
    ETUDE_RETURN_IF_ERROR(ParseTimedMachine(text, path));
    found->second = text;
  } else if (section == "algorithms") {
    ETUDE_RETURN_IF_ERROR(ParseAlgorithmRules(text, path));
    found->second = text;
  } else if (section == "energy") {
    ETUDE_RETURN_IF_ERROR(ParseEnergyFigures(text, path));
    found->second = text;
  } else if (section == "system") {
    ETUDE_RETURN_IF_ERROR(ParseAstraSystem(text, path, machine));
    found->second = ParseAgain(text);
    for (auto& [key, value] : found->second.items()) {
      if (key.ends_with(kCustom)) FindPrograms(FolderOf(path), value);
    }
  } else {
    ETUDE_RETURN_IF_ERROR(ParseAstraMemory(text, path, machine));
    found->second = ParseAgain(text);
  }
  return found->second;
}

}  // namespace etude
