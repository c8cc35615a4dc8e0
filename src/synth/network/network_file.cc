#include "src/synth/network/network_file.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "src/base/text/nearest.h"
#include "src/formats/io/toml_reader.h"

namespace etude {
namespace {

constexpr std::string_view kNetworkFormat = "etude-network";
constexpr int64_t kNetworkVersion = 1;
constexpr int64_t kMostOfLayer = int64_t{1} << 24;

// Keys of a layer in addition to name, type, inputs and unit.
struct LayerKeys {
  std::vector<std::string_view> needs;
  std::vector<std::string_view> takes;
};
LayerKeys KeysOf(LayerKind kind) {
  switch (kind) {
    case LayerKind::kInput: return {{"shape"}, {}};
    case LayerKind::kConv:
      return {{"channels", "kernel"}, {"stride", "padding", "dilation", "groups", "bias"}};
    case LayerKind::kLinear: return {{"channels"}, {"bias"}};
    case LayerKind::kBatchNorm:
    case LayerKind::kLayerNorm: return {{}, {"affine"}};
    case LayerKind::kGroupNorm: return {{"groups"}, {"affine"}};
    case LayerKind::kMaxPool:
    case LayerKind::kAvgPool: return {{"kernel"}, {"stride", "padding"}};
    case LayerKind::kSlice: return {{"channels"}, {"offset"}};
    case LayerKind::kUpsample:
    case LayerKind::kPixelShuffle: return {{"factor"}, {}};
    case LayerKind::kAttention: return {{"heads"}, {}};
    case LayerKind::kPositions: return {{}, {"learned"}};
    case LayerKind::kSinusoid: return {{"channels"}, {}};
    case LayerKind::kEmbedding: return {{"channels", "rows"}, {}};
    case LayerKind::kRelu:
    case LayerKind::kRelu6:
    case LayerKind::kSilu:
    case LayerKind::kSigmoid:
    case LayerKind::kGelu:
    case LayerKind::kGeglu:
    case LayerKind::kGlobalPool:
    case LayerKind::kAdd:
    case LayerKind::kMultiply:
    case LayerKind::kModulate:
    case LayerKind::kConcat:
    case LayerKind::kFlatten:
    case LayerKind::kCrossEntropy:
    case LayerKind::kSquaredError: return {};
  }
  return {};
}

class NetworkParser : private TomlReader {
 public:
  NetworkParser(const toml::table& root, const std::string& path,
                std::span<const NetworkPreset> presets)
      : TomlReader(path), root_(root), presets_(presets) {}

  Result<NetworkModel> Run() {
    ETUDE_RETURN_IF_ERROR(
        CheckKeys(root_, "a network", {"format", "version", "preset", "network", "layer"}));
    ETUDE_RETURN_IF_ERROR(CheckFormat(root_, kNetworkFormat, kNetworkVersion));
    const toml::node* preset = root_.get("preset");
    const toml::node* layers = root_.get("layer");
    if ((preset == nullptr) == (layers == nullptr)) {
      return BadInput(fmt::format("{}: found {} 'preset' {} [[layer]], expected one of them",
                                  path(), preset == nullptr ? "neither" : "both",
                                  preset == nullptr ? "nor" : "and"));
    }
    if (preset != nullptr) {
      ETUDE_ASSIGN_OR_RETURN(const NetworkPreset* found, PresetOf(root_, presets_));
      model_ = found->model();
    } else {
      ETUDE_RETURN_IF_ERROR(ReadLayers(*layers));
    }
    ETUDE_RETURN_IF_ERROR(ReadTypes());
    if (const auto network = MakeNetwork(model_); !network) {
      return tl::unexpected(PlacedError(network.error(), layer_places_, PlaceOf(root_)));
    }
    return model_;
  }

 private:
  Status ReadTypes() {
    const toml::node* node = root_.get("network");
    if (node == nullptr) return {};
    const toml::table* table = node->as_table();
    if (table == nullptr) return WrongType(*node, "network", "a table: [network]");
    ETUDE_RETURN_IF_ERROR(CheckKeys(*table, "[network]", {"weights", "gradients", "optimizer"}));
    ETUDE_RETURN_IF_ERROR(ReadType(*table, "weights", model_.weights));
    ETUDE_RETURN_IF_ERROR(ReadType(*table, "gradients", model_.gradients));
    return ReadType(*table, "optimizer", model_.optimizer);
  }

  Status ReadType(const toml::table& table, std::string_view key, DType& type) const {
    constexpr auto kTypes = std::to_array<std::pair<std::string_view, DType>>({
        {"float32", DType::kFloat32},
        {"float16", DType::kFloat16},
        {"bfloat16", DType::kBFloat16},
    });
    const toml::node* node = table.get(key);
    if (node == nullptr) return {};
    ETUDE_ASSIGN_OR_RETURN(const std::string name, Text(*node, key));
    for (const auto& [known, value] : kTypes) {
      if (name != known) continue;
      type = value;
      return {};
    }
    return Wrong(*node,
                 fmt::format("{}: found '{}', expected float32, float16 or bfloat16", key, name));
  }

  Status ReadLayers(const toml::node& node) {
    const toml::array* array = node.as_array();
    if (array == nullptr) return WrongType(node, "layer", "tables: [[layer]]");
    for (const toml::node& element : *array) {
      const toml::table* table = element.as_table();
      if (table == nullptr) return WrongType(element, "layer", "a table: [[layer]]");
      ETUDE_RETURN_IF_ERROR(ReadLayer(*table));
    }
    return {};
  }

  Status ReadLayer(const toml::table& table) {
    ETUDE_RETURN_IF_ERROR(CheckKeys(
        table, "[[layer]]",
        {"name", "type", "inputs", "unit", "shape", "channels", "kernel", "stride", "padding",
         "dilation", "groups", "bias", "affine", "learned", "heads", "offset", "factor", "rows"}));
    NetworkLayer layer;
    ETUDE_ASSIGN_OR_RETURN(layer.name, RequiredText(table, "name", "[[layer]]"));
    if (index_.contains(layer.name)) {
      return Wrong(*table.get("name"),
                   fmt::format("name: found '{}' twice, expected unique names", layer.name));
    }
    ETUDE_RETURN_IF_ERROR(ReadKind(table, layer));
    ETUDE_RETURN_IF_ERROR(ReadInputs(table, layer));
    layer.unit = layer.name;
    if (const toml::node* unit = table.get("unit")) {
      ETUDE_ASSIGN_OR_RETURN(layer.unit, Text(*unit, "unit"));
    }
    ETUDE_RETURN_IF_ERROR(ReadShape(table, layer));
    ETUDE_RETURN_IF_ERROR(ReadNumbers(table, layer));
    std::vector<Shape> inputs;
    for (const size_t input : layer.inputs) inputs.push_back(shapes_[input]);
    const auto shape = ShapeOf(layer, inputs);
    if (!shape) return WrongLayer(table, layer.name, shape.error());
    shapes_.push_back(*shape);
    index_[layer.name] = model_.layers.size();
    const std::string key = "layer." + layer.name;
    layer_places_[key] = PlaceOf(table);
    for (const auto& [inner, node] : table) {
      layer_places_[fmt::format("{}.{}", key, inner.str())] = PlaceOf(node);
    }
    model_.layers.push_back(std::move(layer));
    return {};
  }

  // Reports the error at the first of its keys in the table.
  tl::unexpected<Error> WrongLayer(const toml::table& table, const std::string& name,
                                   const Misfit& misfit) const {
    const std::string message = fmt::format("{}: {}", name, misfit.message);
    for (const std::string& key : misfit.keys) {
      if (const toml::node* node = table.get(key)) return Wrong(*node, message);
    }
    return Wrong(table, message);
  }

  Status ReadKind(const toml::table& table, NetworkLayer& layer) const {
    ETUDE_ASSIGN_OR_RETURN(const std::string type, RequiredText(table, "type", "[[layer]]"));
    const auto found =
        std::ranges::find(LayerKinds(), type, &std::pair<std::string_view, LayerKind>::first);
    if (found == LayerKinds().end()) {
      std::vector<std::string> names;
      for (const auto& [name, kind] : LayerKinds()) names.emplace_back(name);
      return WrongName(*table.get("type"), "type", type, names);
    }
    layer.kind = found->second;
    const LayerKeys keys = KeysOf(layer.kind);
    for (const std::string_view key : keys.needs) {
      if (table.contains(key)) continue;
      return Wrong(table,
                   fmt::format("{}: missing '{}', which {} requires", layer.name, key, type));
    }
    for (const auto& [key, value] : table) {
      const auto is = [&](std::string_view other) { return key.str() == other; };
      if (is("name") || is("type") || is("inputs") || is("unit") ||
          std::ranges::any_of(keys.needs, is) || std::ranges::any_of(keys.takes, is)) {
        continue;
      }
      return Wrong(value, fmt::format("{}: {} does not support '{}'", layer.name, type, key.str()));
    }
    return {};
  }

  // Reads inputs by name; without any, the previous layer.
  Status ReadInputs(const toml::table& table, NetworkLayer& layer) const {
    const toml::node* node = table.get("inputs");
    if (node == nullptr) {
      if (layer.kind != LayerKind::kInput && !model_.layers.empty()) {
        layer.inputs = {model_.layers.size() - 1};
      }
      return {};
    }
    const toml::array* array = node->as_array();
    if (array == nullptr) return WrongType(*node, "inputs", "names of layers: [\"conv1\"]");
    for (const toml::node& element : *array) {
      ETUDE_ASSIGN_OR_RETURN(const std::string name, Text(element, "inputs"));
      const auto found = index_.find(name);
      if (found == index_.end()) {
        std::vector<std::string> names;
        for (const NetworkLayer& earlier : model_.layers) names.push_back(earlier.name);
        return Wrong(element, fmt::format("inputs: found '{}', expected a layer above it{}", name,
                                          DidYouMean(name, names)));
      }
      layer.inputs.push_back(found->second);
    }
    return {};
  }

  Status ReadShape(const toml::table& table, NetworkLayer& layer) const {
    const toml::node* node = table.get("shape");
    if (node == nullptr) return {};
    const toml::array* array = node->as_array();
    if (array == nullptr || array->empty() || array->size() > 3) {
      return WrongType(*node, "shape", "channels, height and width: [3, 224, 224]");
    }
    const std::array<int64_t*, 3> parts = {&layer.shape.channels, &layer.shape.height,
                                           &layer.shape.width};
    for (size_t i = 0; i < array->size(); ++i) {
      ETUDE_ASSIGN_OR_RETURN(*parts[i], Whole(*array->get(i), "shape", 1, kMostOfLayer));
    }
    return {};
  }

  Status ReadExtent(const toml::table& table, std::string_view key, int64_t least,
                    Extent& extent) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return {};
    const toml::array* array = node->as_array();
    if (array == nullptr) {
      ETUDE_ASSIGN_OR_RETURN(extent.height, Whole(*node, key, least, kMostOfLayer));
      extent.width = extent.height;
      return {};
    }
    if (array->size() != 2) return WrongType(*node, key, "a number, or one for each side: [3, 5]");
    ETUDE_ASSIGN_OR_RETURN(extent.height, Whole(*array->get(0), key, least, kMostOfLayer));
    ETUDE_ASSIGN_OR_RETURN(extent.width, Whole(*array->get(1), key, least, kMostOfLayer));
    return {};
  }

  Status ReadNumbers(const toml::table& table, NetworkLayer& layer) const {
    ETUDE_RETURN_IF_ERROR(ReadExtent(table, "kernel", 1, layer.kernel));
    const bool is_pool = layer.kind == LayerKind::kMaxPool || layer.kind == LayerKind::kAvgPool;
    if (is_pool) layer.stride = layer.kernel;
    ETUDE_RETURN_IF_ERROR(ReadExtent(table, "stride", 1, layer.stride));
    ETUDE_RETURN_IF_ERROR(ReadExtent(table, "padding", 0, layer.padding));
    ETUDE_RETURN_IF_ERROR(ReadExtent(table, "dilation", 1, layer.dilation));
    for (const auto& [key, value, least] :
         std::initializer_list<std::tuple<std::string_view, int64_t*, int64_t>>{
             {"channels", &layer.shape.channels, 1},
             {"groups", &layer.groups, 1},
             {"heads", &layer.heads, 1},
             {"offset", &layer.offset, 0},
             {"factor", &layer.factor, 1},
             {"rows", &layer.rows, 1}}) {
      if (const toml::node* node = table.get(key)) {
        ETUDE_ASSIGN_OR_RETURN(*value, Whole(*node, key, least, kMostOfLayer));
      }
    }
    for (const auto& [key, flag] : std::initializer_list<std::pair<std::string_view, bool*>>{
             {"bias", &layer.bias}, {"affine", &layer.affine}, {"learned", &layer.affine}}) {
      if (const toml::node* node = table.get(key)) {
        ETUDE_ASSIGN_OR_RETURN(*flag, Flag(*node, key));
      }
    }
    return {};
  }

  const toml::table& root_;
  const std::span<const NetworkPreset> presets_;
  NetworkModel model_;
  std::vector<Shape> shapes_;  // by layer
  std::map<std::string, size_t, std::less<>> index_;
  KeyPlaces layer_places_;  // "layer.conv1", "layer.conv1.kernel"
};

}  // namespace

Result<NetworkModel> ParseNetwork(std::string_view text, const std::string& path,
                                  std::span<const NetworkPreset> presets) {
  return ParseToml<NetworkModel>(text, path, [&](const toml::table& table) {
    return NetworkParser(table, path, presets).Run();
  });
}

}  // namespace etude
