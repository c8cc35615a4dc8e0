#include "src/synth/transformer_file.h"

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "src/base/nearest.h"
#include "src/formats/toml_reader.h"
#include "src/synth/float_type.h"

namespace etude {
namespace {

constexpr std::string_view kModelFormat = "etude-model";
constexpr int64_t kModelVersion = 1;
constexpr int64_t kMostOfModel = int64_t{1} << 24;

class TransformerParser : private TomlReader {
 public:
  TransformerParser(const toml::table& root, const std::string& path)
      : TomlReader(path), root_(root) {}

  Result<TransformerModel> Run() {
    ETUDE_RETURN_IF_ERROR(
        CheckKeys(root_, "a model", {"format", "version", "preset", "model", "experts"}));
    ETUDE_RETURN_IF_ERROR(CheckFormat(root_, kModelFormat, kModelVersion));
    ETUDE_RETURN_IF_ERROR(ReadPreset());
    ETUDE_RETURN_IF_ERROR(ReadModel());
    ETUDE_RETURN_IF_ERROR(ReadExperts());
    if (const Status fits = CheckTransformer(model_); !fits) {
      const toml::node* place = root_.get("model");
      return Wrong(place == nullptr ? root_ : *place, fits.error().message);
    }
    return model_;
  }

 private:
  struct Number {
    std::string_view key;
    int64_t* value;
    int64_t least = 1;
    bool required = true;  // without a preset
  };

  Status ReadPreset() {
    const toml::node* node = root_.get("preset");
    if (node == nullptr) return {};
    ETUDE_ASSIGN_OR_RETURN(const std::string name, Text(*node, "preset"));
    if (const TransformerPreset* preset = FindTransformerPreset(name)) {
      model_ = preset->model;
      has_preset_ = true;
      return {};
    }
    std::vector<std::string> names;
    for (const TransformerPreset& preset : TransformerPresets()) names.emplace_back(preset.name);
    const std::string near = Nearest(name, names);
    return Wrong(*node,
                 fmt::format("preset: there is no '{}'{}", name,
                             near.empty() ? fmt::format(", expected {}", fmt::join(names, ", "))
                                          : fmt::format("; did you mean '{}'?", near)));
  }

  Status ReadNumbers(const toml::table& table, std::string_view what, bool complete,
                     std::span<const Number> numbers) const {
    for (const Number& number : numbers) {
      const toml::node* node = table.get(number.key);
      if (node != nullptr) {
        ETUDE_ASSIGN_OR_RETURN(*number.value, Whole(*node, number.key, number.least, kMostOfModel));
      } else if (number.required && !complete) {
        return Wrong(table, fmt::format("{} has no '{}', which it needs", what, number.key));
      }
    }
    return {};
  }

  Status ReadModel() {
    const toml::node* node = root_.get("model");
    if (node == nullptr) {
      if (has_preset_) return {};
      return BadInput(path() + ": found neither 'preset' nor [model], expected one of them");
    }
    const toml::table* table = node->as_table();
    if (table == nullptr) return WrongType(*node, "model", "a table: [model]");
    ETUDE_RETURN_IF_ERROR(
        CheckKeys(*table, "[model]",
                  {"layers", "hidden", "heads", "kv_heads", "head_size", "ffn", "vocabulary",
                   "sequence", "positions", "gated", "biases", "norm", "qk_norm", "tied", "weights",
                   "gradients", "optimizer"}));
    const TransformerModel before = model_;
    const auto numbers = std::to_array<Number>({
        {"layers", &model_.layers},
        {"hidden", &model_.hidden},
        {"heads", &model_.heads},
        {"kv_heads", &model_.kv_heads, 1, false},
        {"head_size", &model_.head_size, 1, false},
        {"ffn", &model_.ffn},
        {"vocabulary", &model_.vocabulary},
        {"sequence", &model_.sequence},
        {"positions", &model_.positions, 0, false},
    });
    ETUDE_RETURN_IF_ERROR(ReadNumbers(*table, "[model]", has_preset_, numbers));
    if (!has_preset_ && !table->contains("kv_heads")) model_.kv_heads = model_.heads;
    const bool resized = model_.hidden != before.hidden || model_.heads != before.heads;
    if (resized && !table->contains("head_size")) {
      if (model_.hidden % model_.heads != 0) {
        return Wrong(*table, fmt::format("found {} heads, which {} hidden units cannot be split "
                                         "into, and no 'head_size'",
                                         model_.heads, model_.hidden));
      }
      model_.head_size = model_.hidden / model_.heads;
    }
    ETUDE_RETURN_IF_ERROR(ReadFlag(*table, "gated", model_.gated));
    ETUDE_RETURN_IF_ERROR(ReadFlag(*table, "biases", model_.biases));
    ETUDE_RETURN_IF_ERROR(ReadFlag(*table, "qk_norm", model_.qk_norm));
    ETUDE_RETURN_IF_ERROR(ReadFlag(*table, "tied", model_.tied));
    ETUDE_RETURN_IF_ERROR(ReadNorm(*table));
    ETUDE_RETURN_IF_ERROR(ReadType(*table, "weights", model_.weights));
    ETUDE_RETURN_IF_ERROR(ReadType(*table, "gradients", model_.gradients));
    return ReadType(*table, "optimizer", model_.optimizer);
  }

  Status ReadExperts() {
    const toml::node* node = root_.get("experts");
    if (node == nullptr) return {};
    const toml::table* table = node->as_table();
    if (table == nullptr) return WrongType(*node, "experts", "a table: [experts]");
    ETUDE_RETURN_IF_ERROR(
        CheckKeys(*table, "[experts]",
                  {"experts", "top_k", "ffn", "shared_ffn", "dense_layers", "capacity_factor"}));
    const bool complete = model_.experts.has_value();
    if (!complete) model_.experts.emplace();
    ExpertsModel& experts = *model_.experts;
    const auto numbers = std::to_array<Number>({
        {"experts", &experts.experts},
        {"top_k", &experts.top_k},
        {"ffn", &experts.ffn},
        {"shared_ffn", &experts.shared_ffn, 0, false},
        {"dense_layers", &experts.dense_layers, 0, false},
    });
    ETUDE_RETURN_IF_ERROR(ReadNumbers(*table, "[experts]", complete, numbers));
    if (const toml::node* factor = table->get("capacity_factor")) {
      ETUDE_ASSIGN_OR_RETURN(experts.capacity_factor, Positive(*factor, "capacity_factor"));
    }
    return {};
  }

  Status ReadFlag(const toml::table& table, std::string_view key, bool& flag) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return {};
    ETUDE_ASSIGN_OR_RETURN(flag, Flag(*node, key));
    return {};
  }

  Status ReadNorm(const toml::table& table) {
    const toml::node* node = table.get("norm");
    if (node == nullptr) return {};
    ETUDE_ASSIGN_OR_RETURN(const std::string name, Text(*node, "norm"));
    constexpr auto kNorms = std::to_array<std::pair<std::string_view, NormKind>>({
        {"rms", NormKind::kRmsNorm},
        {"layer", NormKind::kLayerNorm},
        {"layer-no-offset", NormKind::kLayerNormNoOffset},
    });
    for (const auto& [known, kind] : kNorms) {
      if (name != known) continue;
      model_.norm = kind;
      return {};
    }
    return Wrong(*node,
                 fmt::format("norm: found '{}', expected rms, layer or layer-no-offset", name));
  }

  Status ReadType(const toml::table& table, std::string_view key, DType& type) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return {};
    ETUDE_ASSIGN_OR_RETURN(const std::string name, Text(*node, key));
    const std::optional<DType> found = FloatType(name);
    if (!found) {
      return Wrong(*node, fmt::format("{}: found '{}', expected {}", key, name, FloatTypeNames()));
    }
    type = *found;
    return {};
  }

  const toml::table& root_;
  TransformerModel model_;
  bool has_preset_ = false;
};

}  // namespace

Result<TransformerModel> ParseTransformer(std::string_view text, const std::string& path) {
  return ParseToml<TransformerModel>(
      text, path, [&](const toml::table& table) { return TransformerParser(table, path).Run(); });
}

}  // namespace etude
