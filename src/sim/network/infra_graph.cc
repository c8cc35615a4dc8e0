#include "src/sim/network/infra_graph.h"

#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/text/nearest.h"
#include "src/base/text/quantity.h"
#include "src/sim/machine/yaml_error.h"

namespace etude {
namespace {

constexpr size_t kMostDevices = size_t{1} << 20;
constexpr size_t kMostEdges = size_t{1} << 22;
constexpr int kMostNesting = 8;  // of devices in devices

using Names = std::vector<std::string>;

Names SplitAtDots(std::string_view text) {
  Names words;
  while (true) {
    const size_t dot = text.find('.');
    words.emplace_back(text.substr(0, dot));
    if (dot == text.npos) return words;
    text.remove_prefix(dot + 1);
  }
}

// A component of a device, or an instance of a device.
struct InfraPart {
  std::string name;
  std::string kind;    // choice of a component
  std::string device;  // of an instance, and of a component that is a device
  int64_t count = 1;
};

struct InfraLink {
  std::optional<double> bandwidth;  // bytes per ns
  double latency = 0;               // ns; 0 if the file has none
};

struct InfraDevice {
  std::vector<InfraPart> components;
  std::map<std::string, InfraLink> links;
  YAML::Node node;
};

// An edge between expanded names.
struct InfraEdge {
  std::string a;
  std::string b;
  InfraLink link;
};

class InfraGraphReader {
 public:
  explicit InfraGraphReader(std::string path) : path_(std::move(path)) {}

  Result<NetworkGraph> Read(const YAML::Node& document) {
    YAML::Node root = document;
    if (root["infrastructure"]) root.reset(root["infrastructure"]);
    if (!root.IsMap()) return Wrong(root, "expected an InfraGraph with devices and instances");
    for (const YAML::Node& node : root["devices"]) ETUDE_RETURN_IF_ERROR(ReadDevice(node));
    ETUDE_ASSIGN_OR_RETURN(const auto links, LinksOf(root["links"]));
    ETUDE_RETURN_IF_ERROR(ReadInstances(root["instances"], ""));
    for (const InfraPart& instance : instances_) {
      for (int64_t i = 0; i < instance.count; ++i) {
        ETUDE_RETURN_IF_ERROR(Expand(fmt::format("{}.{}", instance.name, i), instance.device, 0));
      }
    }
    if (npus_.empty()) {
      return BadInput(fmt::format("{}: found no components of choice xpu, expected NPUs", path_));
    }
    ETUDE_RETURN_IF_ERROR(AddEdges(root, links, "", instances_));
    return Build();
  }

 private:
  tl::unexpected<Error> Wrong(const YAML::Node& node, std::string_view what) const {
    const YAML::Mark mark = node.Mark();
    if (mark.is_null()) return BadInput(fmt::format("{}: {}", path_, what));
    return BadInput(fmt::format("{}:{}:{}: {}", path_, mark.line + 1, mark.column + 1, what));
  }
  Result<std::string> TextOf(const YAML::Node& node, const char* key) const {
    const YAML::Node value = node.IsMap() ? node[key] : YAML::Node();
    if (!value || !value.IsScalar()) return Wrong(node, fmt::format("missing '{}'", key));
    return value.Scalar();
  }
  Result<int64_t> CountOf(const YAML::Node& node, int64_t unstated) const {
    const YAML::Node value = node["count"];
    if (!value) return unstated;
    const auto count = value.IsScalar() ? ParseWhole(value.Scalar()) : std::nullopt;
    if (!count || *count < 0 || *count > static_cast<int64_t>(kMostDevices)) {
      return Wrong(value, "found no count, expected a whole number");
    }
    return *count;
  }

  // Returns the value of the first of the keys that is present, times its factor.
  Result<std::optional<double>> QuantityOf(
      const YAML::Node& node, std::initializer_list<std::pair<const char*, double>> units) const {
    if (!node) return std::nullopt;
    std::string chosen;
    if (node.IsMap() && node["choice"]) {
      ETUDE_ASSIGN_OR_RETURN(chosen, TextOf(node, "choice"));
    }
    size_t given = 0;
    for (const auto& [key, factor] : units) given += node.IsMap() && node[key] ? 1 : 0;
    if (given > 1 && chosen.empty()) {
      return Wrong(node, "found several units, expected one, or a choice");
    }
    for (const auto& [key, factor] : units) {
      if (!chosen.empty() && chosen != key) continue;
      const YAML::Node value = node.IsMap() ? node[key] : YAML::Node();
      if (!value) continue;
      const auto number = value.IsScalar() ? ParseDecimal(value.Scalar()) : std::nullopt;
      if (!number || !(*number >= 0) || *number > 1e15) {
        return Wrong(value, fmt::format("{}: expected a number of 0 or more", key));
      }
      return *number * factor;
    }
    std::vector<std::string_view> known;
    for (const auto& [key, factor] : units) known.emplace_back(key);
    return Wrong(node, fmt::format("expected one of {}", fmt::join(known, ", ")));
  }

  Result<std::map<std::string, InfraLink>> LinksOf(const YAML::Node& list) const {
    std::map<std::string, InfraLink> links;
    if (!list) return links;
    for (const YAML::Node& node : list) {
      ETUDE_ASSIGN_OR_RETURN(const std::string name, TextOf(node, "name"));
      // The older form has no `physical`.
      const YAML::Node values = node["physical"] ? node["physical"] : node;
      if (!values.IsMap()) return Wrong(values, "expected a bandwidth and a latency");
      InfraLink link;
      ETUDE_ASSIGN_OR_RETURN(link.bandwidth,
                             QuantityOf(values["bandwidth"], {{"gigabits_per_second", 0.125},
                                                              {"gigabytes_per_second", 1},
                                                              {"giga_bits_per_second", 0.125},
                                                              {"giga_bytes_per_second", 1}}));
      ETUDE_ASSIGN_OR_RETURN(const auto latency,
                             QuantityOf(values["latency"], {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}}));
      link.latency = latency.value_or(0);
      if (!links.emplace(name, link).second) {
        return Wrong(node, fmt::format("found link '{}' twice", name));
      }
    }
    return links;
  }

  Status ReadDevice(const YAML::Node& node) {
    // In the older form a device may be named by its instances only.
    std::string name;
    if (node.IsMap() && node["name"] && node["name"].IsScalar()) name = node["name"].Scalar();
    if (name.empty()) name = fmt::format("device {}", devices_.size());
    InfraDevice device;
    device.node.reset(node);
    for (const YAML::Node& one : node["components"]) {
      InfraPart part;
      ETUDE_ASSIGN_OR_RETURN(part.name, TextOf(one, "name"));
      part.device = part.name;
      ETUDE_ASSIGN_OR_RETURN(part.kind, TextOf(one, one["choice"] ? "choice" : "type"));
      ETUDE_ASSIGN_OR_RETURN(part.count, CountOf(one, CountIn(node["connections"], part.name)));
      const auto known = std::ranges::find(device.components, part.name, &InfraPart::name);
      if (known != device.components.end()) {
        return Wrong(one, fmt::format("found component '{}' twice", part.name));
      }
      device.components.push_back(std::move(part));
    }
    ETUDE_ASSIGN_OR_RETURN(device.links, LinksOf(node["links"]));
    if (!devices_.emplace(name, std::move(device)).second) {
      return Wrong(node, fmt::format("found device '{}' twice", name));
    }
    return ReadInstances(node["instances"], name);
  }
  // `device`: that of instances that do not name it.
  Status ReadInstances(const YAML::Node& list, const std::string& device) {
    if (!list) return {};
    for (const YAML::Node& node : list) {
      InfraPart instance;
      ETUDE_ASSIGN_OR_RETURN(instance.name, TextOf(node, "name"));
      instance.device = device;
      if (device.empty() || node["device"]) {
        ETUDE_ASSIGN_OR_RETURN(instance.device, TextOf(node, "device"));
      }
      ETUDE_ASSIGN_OR_RETURN(instance.count, CountOf(node, 1));
      const bool known =
          std::ranges::find(instances_, instance.name, &InfraPart::name) != instances_.end();
      if (known) return Wrong(node, fmt::format("found instance '{}' twice", instance.name));
      instances_.push_back(std::move(instance));
    }
    return {};
  }
  // Returns the number of components that the older form implies.
  static int64_t CountIn(const YAML::Node& connections, const std::string& name) {
    int64_t count = 1;
    if (!connections) return count;
    for (const YAML::Node& connection : connections) {
      if (!connection.IsScalar()) continue;
      const Names words = SplitAtDots(connection.Scalar());
      for (size_t i = 0; i + 1 < words.size(); ++i) {
        const auto index = ParseWhole(words[i + 1]);
        if (words[i] == name && index && *index >= 0) count = std::max(count, *index + 1);
      }
    }
    return std::min<int64_t>(count, kMostDevices);
  }

  // Adds the nodes and edges of a device with a prefix, "server.0".
  Status Expand(const std::string& prefix, const std::string& name, int nesting) {
    const auto found = devices_.find(name);
    if (found == devices_.end()) {
      return BadInput(fmt::format("{}: found no device '{}' for '{}'", path_, name, prefix));
    }
    if (nesting > kMostNesting) {
      return BadInput(fmt::format("{}: found device '{}' nested too deeply", path_, name));
    }
    const InfraDevice& device = found->second;
    for (const InfraPart& part : device.components) {
      for (int64_t i = 0; i < part.count; ++i) {
        const std::string node = fmt::format("{}.{}.{}", prefix, part.name, i);
        if (part.kind == "device") {
          ETUDE_RETURN_IF_ERROR(Expand(node, part.device, nesting + 1));
          continue;
        }
        if (nodes_.size() >= kMostDevices) {
          return BadInput(fmt::format("{}: found more than {} components", path_, kMostDevices));
        }
        const bool is_npu = part.kind == "xpu" || part.kind == "npu";
        if (nodes_.emplace(node, is_npu).second) (is_npu ? npus_ : others_).push_back(node);
      }
    }
    return AddEdges(device.node, device.links, prefix + ".", device.components);
  }

  // Adds the edges of the infrastructure or of a device, whose parts the names begin with.
  Status AddEdges(const YAML::Node& node, const std::map<std::string, InfraLink>& links,
                  const std::string& prefix, const std::vector<InfraPart>& parts) {
    if (node["edges"]) {
      for (const YAML::Node& edge : node["edges"]) {
        ETUDE_RETURN_IF_ERROR(AddEdge(edge, links, prefix, parts));
      }
    }
    if (node["connections"]) {
      for (const YAML::Node& connection : node["connections"]) {
        ETUDE_RETURN_IF_ERROR(AddConnection(connection, links, prefix));
      }
    }
    return {};
  }

  Status AddEdge(const YAML::Node& edge, const std::map<std::string, InfraLink>& links,
                 const std::string& prefix, const std::vector<InfraPart>& parts) {
    ETUDE_ASSIGN_OR_RETURN(const std::string link, TextOf(edge, "link"));
    ETUDE_ASSIGN_OR_RETURN(const std::string scheme, TextOf(edge, "scheme"));
    Names ends[2];
    for (size_t i = 0; i < 2; ++i) {
      const char* key = i == 0 ? "ep1" : "ep2";
      const YAML::Node end = edge[key];
      if (!end || !end.IsMap()) return Wrong(edge, fmt::format("missing '{}'", key));
      ETUDE_ASSIGN_OR_RETURN(std::string text, TextOf(end, "component"));
      const YAML::Node before = end["instance"] ? end["instance"] : end["device"];
      if (before && before.IsScalar()) text = before.Scalar() + "." + text;
      ETUDE_ASSIGN_OR_RETURN(ends[i], ExpandEnd(end, text, parts));
      for (std::string& name : ends[i]) name = prefix + name;
    }
    if (scheme == "many2many") {
      for (const std::string& a : ends[0]) {
        for (const std::string& b : ends[1]) ETUDE_RETURN_IF_ERROR(Add(edge, a, b, links, link));
      }
      return {};
    }
    if (scheme == "one2one") {
      // As in the package: what has no partner stays without a link.
      const size_t pairs = std::min(ends[0].size(), ends[1].size());
      for (size_t i = 0; i < pairs; ++i) {
        ETUDE_RETURN_IF_ERROR(Add(edge, ends[0][i], ends[1][i], links, link));
      }
      return {};
    }
    if (scheme == "ring") {
      Names all = ends[0];
      for (const std::string& name : ends[1]) {
        if (std::ranges::find(ends[0], name) == ends[0].end()) all.push_back(name);
      }
      for (size_t i = 0; i < all.size(); ++i) {
        ETUDE_RETURN_IF_ERROR(Add(edge, all[i], all[(i + 1) % all.size()], links, link));
      }
      return {};
    }
    return Wrong(edge["scheme"], fmt::format("found scheme '{}', expected one2one, many2many or "
                                             "ring",
                                             scheme));
  }

  // Expands "server[0:2].nic[0]" to names.
  Result<Names> ExpandEnd(const YAML::Node& place, const std::string& text,
                          std::vector<InfraPart> parts) const {
    Names names = {""};
    for (const std::string& word : SplitAtDots(text)) {
      const std::string name = word.substr(0, word.find('['));
      const auto part = std::ranges::find(parts, name, &InfraPart::name);
      if (part == parts.end()) {
        std::vector<std::string> known;
        for (const InfraPart& one : parts) known.push_back(one.name);
        return Wrong(place, fmt::format("found '{}'{}", name, MeantOrAll(name, known)));
      }
      ETUDE_ASSIGN_OR_RETURN(const std::vector<int64_t> indices,
                             IndicesOf(place, word.substr(name.size()), part->count));
      Names longer;
      if (names.size() * indices.size() > kMostDevices) return Wrong(place, "found too many ends");
      for (const std::string& before : names) {
        for (const int64_t index : indices) {
          longer.push_back(
              fmt::format("{}{}{}.{}", before, before.empty() ? "" : ".", name, index));
        }
      }
      names = std::move(longer);
      const auto device = devices_.find(part->device);
      parts = device == devices_.end() ? std::vector<InfraPart>() : device->second.components;
    }
    return names;
  }

  // Returns the indices of "", "[3]", "[-1]", "[1:4]", "[::2]" … among `count`, as in Python.
  Result<std::vector<int64_t>> IndicesOf(const YAML::Node& place, std::string_view slice,
                                         int64_t count) const {
    std::vector<int64_t> indices;
    const auto wrong = [&] {
      return Wrong(place, fmt::format("found '{}' of {}, expected an index such as [0] or a slice "
                                      "such as [0:2]",
                                      slice, count));
    };
    std::optional<int64_t> values[3];
    size_t colons = 0;
    if (!slice.empty()) {
      if (!slice.starts_with('[') || !slice.ends_with(']') || slice.size() < 2) return wrong();
      std::string_view rest = slice.substr(1, slice.size() - 2);
      while (true) {
        const size_t colon = rest.find(':');
        const std::string_view word = rest.substr(0, colon);
        if (!word.empty() && !(values[colons] = ParseWhole(word))) return wrong();
        if (colon == rest.npos) break;
        if (++colons > 2) return wrong();
        rest.remove_prefix(colon + 1);
      }
    }
    if (colons == 0 && values[0]) {
      const int64_t index = *values[0] < 0 ? *values[0] + count : *values[0];
      if (index < 0 || index >= count) return wrong();
      return std::vector<int64_t>{index};
    }
    const int64_t step = values[2].value_or(1);
    if (step == 0) return wrong();
    const auto bound = [&](std::optional<int64_t> value, int64_t unstated) {
      if (!value) return unstated;
      const int64_t from_begin = *value < 0 ? *value + count : *value;
      return std::clamp<int64_t>(from_begin, step > 0 ? 0 : -1, step > 0 ? count : count - 1);
    };
    const int64_t begin = bound(values[0], step > 0 ? 0 : count - 1);
    const int64_t end = bound(values[1], step > 0 ? count : -1);
    for (int64_t i = begin; step > 0 ? i < end : i > end; i += step) indices.push_back(i);
    return indices;
  }

  // Adds "server.0.nic.0.eth1.leaf.0.port.0": names and indices around the name of a link.
  Status AddConnection(const YAML::Node& node, const std::map<std::string, InfraLink>& links,
                       const std::string& prefix) {
    const Names words = node.IsScalar() ? SplitAtDots(node.Scalar()) : Names();
    size_t link = 0;
    while (link + 1 < words.size() && ParseWhole(words[link + 1])) link += 2;
    if (link < 2 || link + 2 >= words.size()) {
      return Wrong(node, "expected a connection such as server.0.nic.0.eth.leaf.0.port.0");
    }
    const auto joined = [&](size_t begin, size_t end) {
      return prefix +
             fmt::format("{}", fmt::join(words.begin() + static_cast<ptrdiff_t>(begin),
                                         words.begin() + static_cast<ptrdiff_t>(end), "."));
    };
    return Add(node, joined(0, link), joined(link + 1, words.size()), links, words[link]);
  }

  Status Add(const YAML::Node& place, const std::string& a, const std::string& b,
             const std::map<std::string, InfraLink>& links, const std::string& name) {
    if (a == b) return {};
    for (const std::string& end : {a, b}) {
      if (!nodes_.contains(end)) {
        return Wrong(place, fmt::format("found '{}', which is no component of an instance", end));
      }
    }
    const auto link = links.find(name);
    if (link == links.end()) return Wrong(place, fmt::format("found no link '{}'", name));
    if (!link->second.bandwidth || !(*link->second.bandwidth > 0)) {
      return Wrong(
          place, fmt::format(
                     "found link '{}' {}, expected gigabits_per_second or "
                     "gigabytes_per_second above 0 for the link from {} to {}",
                     name, link->second.bandwidth ? "with a bandwidth of 0" : "without a bandwidth",
                     a, b));
    }
    if (!pairs_.insert(std::minmax(a, b)).second) return {};
    if (edges_.size() >= kMostEdges) return Wrong(place, "found too many edges");
    edges_.push_back({.a = a, .b = b, .link = link->second});
    return {};
  }

  NetworkGraph Build() const {
    NetworkDimInfo info{
        .topology = fmt::format("InfraGraph of {} NPUs, {} other components, {} links",
                                npus_.size(), others_.size(), edges_.size()),
        .npus = static_cast<int64_t>(npus_.size())};
    NetworkGraph graph({std::move(info)});
    for (uint32_t i = 0; i < npus_.size(); ++i) graph.NameNpu(i, npus_[i]);
    for (const std::string& name : others_) graph.AddDevice(name);
    for (const InfraEdge& edge : edges_) {
      graph.AddLink({.from = *graph.Find(edge.a),
                     .to = *graph.Find(edge.b),
                     .bandwidth = *edge.link.bandwidth,
                     .latency = edge.link.latency});
    }
    return graph;
  }

  const std::string path_;
  std::map<std::string, InfraDevice> devices_;
  std::vector<InfraPart> instances_;
  std::unordered_map<std::string, bool> nodes_;  // with whether it is an NPU
  Names npus_;
  Names others_;
  std::vector<InfraEdge> edges_;
  std::set<std::pair<std::string, std::string>> pairs_;
};

}  // namespace

Result<NetworkGraph> ParseInfraGraph(const std::string& text, const std::string& path) {
  try {
    return InfraGraphReader(path).Read(YAML::Load(text));
  } catch (const YAML::Exception& error) {
    return YamlError(path, error);
  }
}

}  // namespace etude
