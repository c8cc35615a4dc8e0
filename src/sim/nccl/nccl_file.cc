#include "src/sim/nccl/nccl_file.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace etude {
namespace {

constexpr std::array kArchitectures = {NcclArchitecture::kVolta, NcclArchitecture::kAmpere,
                                       NcclArchitecture::kHopper, NcclArchitecture::kBlackwell};
constexpr std::array kCpus = {NcclCpu::kIntel,    NcclCpu::kAmd,   NcclCpu::kMixed,
                              NcclCpu::kOtherX86, NcclCpu::kPower, NcclCpu::kOther};
constexpr std::array kPaths = {NcclPath::kLoc, NcclPath::kNvl, NcclPath::kNvb, NcclPath::kC2c,
                               NcclPath::kPix, NcclPath::kPxb, NcclPath::kP2c, NcclPath::kPxn,
                               NcclPath::kPhb, NcclPath::kSys, NcclPath::kNet, NcclPath::kDis};
constexpr int64_t kMaxGraphChannels = 64;
constexpr int64_t kMaxGpus = 1024;  // of a node

class NcclParser : private TomlReader {
 public:
  explicit NcclParser(const std::string& path) : TomlReader(path) {}

  Result<NcclMachine> Run(const toml::table& table) {
    ETUDE_RETURN_IF_ERROR(CheckKeys(table, "[nccl]",
                                    {"preset", "architecture", "cpu", "gpus_per_node", "nvls",
                                     "collnet_gathers", "graphs", "messages"}));
    const std::vector<NcclPreset> presets = NcclPresets();
    ETUDE_ASSIGN_OR_RETURN(const NcclPreset* preset, PresetOf(table, std::span(presets)));
    NcclMachine machine = preset == nullptr ? NcclMachine{} : preset->machine;
    for (const std::string_view key : {"architecture", "gpus_per_node", "graphs"}) {
      if (preset == nullptr && !table.contains(key)) {
        return Wrong(table, fmt::format("[nccl]: missing '{}' (or 'preset')", key));
      }
    }
    ETUDE_RETURN_IF_ERROR(
        ReadName(table, "architecture", std::span(kArchitectures), machine.architecture));
    ETUDE_RETURN_IF_ERROR(ReadName(table, "cpu", std::span(kCpus), machine.cpu));
    if (const toml::node* node = table.get("gpus_per_node")) {
      ETUDE_ASSIGN_OR_RETURN(machine.gpus_per_node, Whole(*node, "gpus_per_node", 1, kMaxGpus));
    }
    ETUDE_RETURN_IF_ERROR(ReadFlag(table, "nvls", machine.nvls));
    ETUDE_RETURN_IF_ERROR(ReadFlag(table, "collnet_gathers", machine.collnet_gathers));
    if (const toml::node* node = table.get("graphs")) {
      ETUDE_RETURN_IF_ERROR(ReadRows(*node, machine));
    }
    if (const toml::node* node = table.get("messages")) {
      ETUDE_ASSIGN_OR_RETURN(machine.messages, ReadMessages(*node));
    }
    return machine;
  }

 private:
  template <typename T>
  Result<T> NamedValue(const toml::node& node, std::string_view key,
                       std::span<const T> values) const {
    ETUDE_ASSIGN_OR_RETURN(const std::string text, Text(node, key));
    std::vector<std::string> names;
    for (const T value : values) {
      if (NameOf(value) == text) return value;
      names.emplace_back(NameOf(value));
    }
    return WrongName(node, key, text, names);
  }

  template <typename T, size_t size>
  Status ReadName(const toml::table& table, std::string_view key, std::span<const T, size> values,
                  T& to) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return {};
    ETUDE_ASSIGN_OR_RETURN(to, NamedValue(*node, key, std::span<const T>(values)));
    return {};
  }

  Status ReadFlag(const toml::table& table, std::string_view key, bool& to) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return {};
    ETUDE_ASSIGN_OR_RETURN(to, Flag(*node, key));
    return {};
  }

  Result<NcclMessages> ReadMessages(const toml::node& node) const {
    const toml::table* table = node.as_table();
    if (table == nullptr) return WrongType(node, "messages", "a table: [nccl.messages]");
    ETUDE_RETURN_IF_ERROR(CheckKeys(*table, "[nccl.messages]", {"within", "between"}));
    const toml::node* within = table->get("within");
    if (within == nullptr) return Wrong(*table, "[nccl.messages]: missing 'within'");
    NcclMessages messages;
    ETUDE_ASSIGN_OR_RETURN(messages.within, ReadLink(*within, "within"));
    if (const toml::node* between = table->get("between")) {
      ETUDE_ASSIGN_OR_RETURN(messages.between, ReadLink(*between, "between"));
    }
    return messages;
  }

  Result<NcclLink> ReadLink(const toml::node& node, std::string_view what) const {
    const toml::table* table = node.as_table();
    if (table == nullptr) {
      return WrongType(node, what, "a table: {latency = 5.0, bandwidth = 300}");
    }
    ETUDE_RETURN_IF_ERROR(CheckKeys(*table, what, {"latency", "bandwidth"}));
    for (const std::string_view key : {"latency", "bandwidth"}) {
      if (!table->contains(key)) return Wrong(*table, fmt::format("{}: missing '{}'", what, key));
    }
    NcclLink link;
    ETUDE_ASSIGN_OR_RETURN(link.latency, Positive(*table->get("latency"), "latency"));
    ETUDE_ASSIGN_OR_RETURN(link.bandwidth, Positive(*table->get("bandwidth"), "bandwidth"));
    return link;
  }

  // Adds the rows, before those of the preset.
  Status ReadRows(const toml::node& node, NcclMachine& machine) const {
    const toml::array* array = node.as_array();
    if (array == nullptr) return WrongType(node, "graphs", "tables [[nccl.graphs]]");
    std::vector<NcclGraphs> rows;
    for (const toml::node& element : *array) {
      const toml::table* table = element.as_table();
      if (table == nullptr) return WrongType(element, "graphs", "tables [[nccl.graphs]]");
      ETUDE_ASSIGN_OR_RETURN(NcclGraphs row, ReadRow(*table));
      rows.push_back(std::move(row));
    }
    machine.graphs.insert(machine.graphs.begin(), rows.begin(), rows.end());
    return {};
  }

  Result<NcclGraphs> ReadRow(const toml::table& table) const {
    ETUDE_RETURN_IF_ERROR(
        CheckKeys(table, "[[nccl.graphs]]",
                  {"gpus", "nodes", "ring", "tree", "nvls", "collnet_direct", "collnet_chain"}));
    for (const std::string_view key : {"nodes", "ring", "tree"}) {
      if (!table.contains(key)) {
        return Wrong(table, fmt::format("[[nccl.graphs]]: missing '{}'", key));
      }
    }
    NcclGraphs row;
    if (const toml::node* node = table.get("gpus")) {
      ETUDE_ASSIGN_OR_RETURN(row.gpus, Whole(*node, "gpus", 1, kMaxGpus));
    }
    ETUDE_ASSIGN_OR_RETURN(const std::string nodes, Text(*table.get("nodes"), "nodes"));
    if (nodes != "one" && nodes != "several") {
      return WrongName(*table.get("nodes"), "nodes", nodes, {"one", "several"});
    }
    row.several_nodes = nodes == "several";
    ETUDE_ASSIGN_OR_RETURN(row.ring, ReadGraph(*table.get("ring"), "ring"));
    ETUDE_ASSIGN_OR_RETURN(row.tree, ReadGraph(*table.get("tree"), "tree"));
    ETUDE_ASSIGN_OR_RETURN(row.plain_tree, ReadPattern(*table.get("tree")->as_table()));
    ETUDE_RETURN_IF_ERROR(ReadOptionalGraph(table, "nvls", row.nvls));
    ETUDE_RETURN_IF_ERROR(ReadOptionalGraph(table, "collnet_direct", row.collnet_direct));
    ETUDE_RETURN_IF_ERROR(ReadOptionalGraph(table, "collnet_chain", row.collnet_chain));
    ETUDE_RETURN_IF_ERROR(CheckCollNet(table, row));
    return row;
  }

  Status CheckCollNet(const toml::table& table, const NcclGraphs& row) const {
    if (row.collnet_direct.has_value() != row.collnet_chain.has_value()) {
      return Wrong(table, "[[nccl.graphs]]: collnet_direct requires collnet_chain, and reverse");
    }
    if (row.collnet_chain && !row.several_nodes) {
      return Wrong(table, "[[nccl.graphs]]: collnet_chain requires nodes = \"several\"");
    }
    return {};
  }

  Result<bool> ReadPattern(const toml::table& tree) const {
    const toml::node* node = tree.get("pattern");
    if (node == nullptr) return false;
    ETUDE_ASSIGN_OR_RETURN(const int64_t pattern, Whole(*node, "tree.pattern", 1, 3));
    return pattern == 3;
  }

  Status ReadOptionalGraph(const toml::table& table, std::string_view key,
                           std::optional<NcclGraph>& to) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return {};
    ETUDE_ASSIGN_OR_RETURN(to, ReadGraph(*node, key));
    return {};
  }

  Result<NcclGraph> ReadGraph(const toml::node& node, std::string_view what) const {
    const toml::table* table = node.as_table();
    if (table == nullptr) return WrongType(node, what, "a table");
    const bool tree = what == "tree";
    ETUDE_RETURN_IF_ERROR(
        tree
            ? CheckKeys(*table, what,
                        {"channels", "speeds", "paths", "latency", "same_channels", "pattern"})
            : CheckKeys(*table, what, {"channels", "speeds", "paths", "latency", "same_channels"}));
    for (const std::string_view key : {"channels", "speeds", "paths"}) {
      if (!table->contains(key)) return Wrong(*table, fmt::format("{}: missing '{}'", what, key));
    }
    NcclGraph graph;
    ETUDE_ASSIGN_OR_RETURN(graph.channels,
                           Whole(*table->get("channels"), "channels", 1, kMaxGraphChannels));
    ETUDE_RETURN_IF_ERROR(ReadSpeeds(*table->get("speeds"), graph));
    ETUDE_RETURN_IF_ERROR(ReadPaths(*table->get("paths"), graph));
    if (const toml::node* latency = table->get("latency")) {
      const bool is_zero = latency->is_number() && latency->value<double>() == 0.0;
      if (!is_zero) {
        ETUDE_ASSIGN_OR_RETURN(graph.inter_latency, Positive(*latency, "latency"));
      }
    }
    ETUDE_RETURN_IF_ERROR(ReadFlag(*table, "same_channels", graph.same_channels));
    return graph;
  }

  Status ReadSpeeds(const toml::node& node, NcclGraph& graph) const {
    const toml::array* array = node.as_array();
    if (array == nullptr) return WrongType(node, "speeds", "two numbers in GB/s");
    if (array->size() != 2) {
      return Wrong(
          node, fmt::format("speeds: found a list of {}, expected two numbers: within and between "
                            "nodes, in GB/s",
                            array->size()));
    }
    ETUDE_ASSIGN_OR_RETURN(graph.intra_speed, Positive((*array)[0], "speeds"));
    ETUDE_ASSIGN_OR_RETURN(graph.inter_speed, Positive((*array)[1], "speeds"));
    return {};
  }

  // Reads "NVL/PIX", as in NCCL's log.
  Status ReadPaths(const toml::node& node, NcclGraph& graph) const {
    ETUDE_ASSIGN_OR_RETURN(const std::string text, Text(node, "paths"));
    const size_t slash = text.find('/');
    const auto path = [](std::string_view name) {
      return std::ranges::find_if(kPaths, [name](NcclPath p) { return NameOf(p) == name; });
    };
    const auto intra = path(std::string_view(text).substr(0, slash));
    const auto inter =
        slash == std::string::npos ? kPaths.end() : path(std::string_view(text).substr(slash + 1));
    if (intra == kPaths.end() || inter == kPaths.end()) {
      return Wrong(node, fmt::format("paths: found '{}', expected two of NCCL's kinds of paths, "
                                     "such as NVL/PIX",
                                     text));
    }
    graph.intra_path = *intra;
    graph.inter_path = *inter;
    return {};
  }
};

}  // namespace

Result<NcclMachine> ParseNcclMachine(const toml::table& table, const std::string& path) {
  return NcclParser(path).Run(table);
}

}  // namespace etude
