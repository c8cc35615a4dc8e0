#include "src/synth/transformer/transformer_file.h"

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "src/base/text/nearest.h"
#include "src/base/text/quantity.h"
#include "src/formats/io/toml_reader.h"
#include "src/synth/device/float_type.h"

namespace etude {
namespace {

constexpr std::string_view kModelFormat = "etude-model";
constexpr int64_t kModelVersion = 1;
constexpr int64_t kMostOfModel = int64_t{1} << 24;

class TransformerParser : private TomlReader {
 public:
  TransformerParser(const toml::table& root, const std::string& path)
      : TomlReader(path), root_(root) {}

  Result<TransformerFile> Run() {
    ETUDE_RETURN_IF_ERROR(CheckKeys(
        root_, "a model", {"format", "version", "preset", "model", "experts", "latent", "plan"}));
    ETUDE_RETURN_IF_ERROR(CheckFormat(root_, kModelFormat, kModelVersion));
    ETUDE_RETURN_IF_ERROR(ReadPreset());
    ETUDE_RETURN_IF_ERROR(ReadModel());
    ETUDE_RETURN_IF_ERROR(ReadExperts());
    ETUDE_RETURN_IF_ERROR(ReadLatent());
    ETUDE_RETURN_IF_ERROR(ReadPlan());
    KeyPlaces places = PlacesOf(root_);
    if (const Fits fits = CheckTransformer(model_); !fits) {
      return tl::unexpected(PlacedError(fits.error(), places, PlaceOf(root_)));
    }
    return TransformerFile{.model = model_, .plan = plan_, .places = std::move(places)};
  }

 private:
  struct Number {
    std::string_view key;
    int64_t* value;
    int64_t least = 1;
    bool required = true;  // without a preset
  };

  Status ReadPreset() {
    ETUDE_ASSIGN_OR_RETURN(const TransformerPreset* preset, PresetOf(root_, TransformerPresets()));
    if (preset == nullptr) return {};
    model_ = preset->model;
    has_preset_ = true;
    return {};
  }

  Status ReadNumbers(const toml::table& table, std::string_view what, bool complete,
                     std::span<const Number> numbers) const {
    for (const Number& number : numbers) {
      const toml::node* node = table.get(number.key);
      if (node != nullptr) {
        ETUDE_ASSIGN_OR_RETURN(*number.value, Whole(*node, number.key, number.least, kMostOfModel));
      } else if (number.required && !complete) {
        return Wrong(table, fmt::format("{}: missing '{}'", what, number.key));
      }
    }
    return {};
  }

  Status ReadModel() {
    const toml::node* node = root_.get("model");
    if (node == nullptr) {
      if (has_preset_) return {};
      return BadInput(path() + ": missing 'preset' or [model]");
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
    const bool latent = model_.latent || root_.contains("latent");
    if (resized && !latent && !table->contains("head_size")) {
      if (model_.hidden % model_.heads != 0) {
        const toml::node* heads = table->get("heads");
        return Wrong(
            heads == nullptr ? *table->get("hidden") : *heads,
            fmt::format("found {} heads, which do not divide {} hidden units, and no 'head_size'",
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
    ETUDE_RETURN_IF_ERROR(CheckKeys(*table, "[experts]",
                                    {"experts", "top_k", "ffn", "shared_ffn", "dense_layers",
                                     "capacity_factor", "imbalance", "seed", "shares"}));
    const bool complete = model_.experts.has_value();
    if (!complete) model_.experts.emplace();
    ExpertsModel& experts = *model_.experts;
    const auto numbers = std::to_array<Number>({
        {"experts", &experts.experts},
        {"top_k", &experts.top_k},
        {"ffn", &experts.ffn},
        {"shared_ffn", &experts.shared_ffn, 0, false},
        {"dense_layers", &experts.dense_layers, 0, false},
        {"seed", &experts.seed, 0, false},
    });
    ETUDE_RETURN_IF_ERROR(ReadNumbers(*table, "[experts]", complete, numbers));
    if (const toml::node* factor = table->get("capacity_factor")) {
      ETUDE_ASSIGN_OR_RETURN(experts.capacity_factor, Positive(*factor, "capacity_factor"));
    }
    if (const toml::node* imbalance = table->get("imbalance")) {
      ETUDE_ASSIGN_OR_RETURN(experts.imbalance, NotNegative(*imbalance, "imbalance"));
    }
    const toml::node* shares = table->get("shares");
    if (shares == nullptr) return {};
    const toml::array* list = shares->as_array();
    if (list == nullptr) return WrongType(*shares, "shares", "a list of numbers");
    experts.shares.clear();
    for (const toml::node& share : *list) {
      ETUDE_ASSIGN_OR_RETURN(experts.shares.emplace_back(), NotNegative(share, "shares"));
    }
    return {};
  }

  Status ReadLatent() {
    const toml::node* node = root_.get("latent");
    if (node != nullptr) {
      const toml::table* table = node->as_table();
      if (table == nullptr) return WrongType(*node, "latent", "a table: [latent]");
      ETUDE_RETURN_IF_ERROR(CheckKeys(
          *table, "[latent]", {"query_rank", "kv_rank", "nope_size", "rope_size", "value_size"}));
      const bool complete = model_.latent.has_value();
      if (!complete) model_.latent.emplace();
      LatentAttention& latent = *model_.latent;
      const auto numbers = std::to_array<Number>({
          {"query_rank", &latent.query_rank, 0, false},
          {"kv_rank", &latent.kv_rank},
          {"nope_size", &latent.nope_size},
          {"rope_size", &latent.rope_size},
          {"value_size", &latent.value_size},
      });
      ETUDE_RETURN_IF_ERROR(ReadNumbers(*table, "[latent]", complete, numbers));
    }
    if (!model_.latent) return {};
    const toml::table* model = root_["model"].as_table();
    if (model == nullptr || !model->contains("head_size")) {
      model_.head_size = model_.latent->nope_size + model_.latent->rope_size;
    }
    if (model == nullptr || !model->contains("kv_heads")) model_.kv_heads = model_.heads;
    return {};
  }

  Result<double> NotNegative(const toml::node& node, std::string_view key) const {
    const std::optional<double> value = node.value<double>();
    if (value == 0) return 0.0;
    return Positive(node, key);
  }

  Status ReadPlan() {
    const toml::node* node = root_.get("plan");
    if (node == nullptr) return {};
    const toml::table* table = node->as_table();
    if (table == nullptr) return WrongType(*node, "plan", "a table: [plan]");
    ETUDE_RETURN_IF_ERROR(
        CheckKeys(*table, "[plan]", {"dp",           "tp",        "pp",
                                     "cp",           "ep",        "sequence_parallel",
                                     "zero",         "sequences", "micro_batches",
                                     "schedule",     "chunks",    "bucket",
                                     "first_bucket", "keep_ends", "clip",
                                     "recompute",    "attention", "phase",
                                     "cached",       "tokens",    "cache_type",
                                     "context"}));
    for (const PlanNumber& number : PlanNumbers()) {
      const toml::node* value = table->get(number.name);
      if (value == nullptr) continue;
      ETUDE_ASSIGN_OR_RETURN(plan_.*number.value,
                             Whole(*value, number.name, number.least, number.most));
    }
    for (const auto& [key, setting] :
         {std::pair("sequence_parallel", &plan_.sequence_parallel), std::pair("clip", &plan_.clip),
          std::pair("keep_ends", &plan_.keep_ends)}) {
      const toml::node* flag = table->get(key);
      if (flag == nullptr) continue;
      ETUDE_ASSIGN_OR_RETURN(*setting, Flag(*flag, key));
    }
    ETUDE_RETURN_IF_ERROR(ReadBytes(*table, "bucket", plan_.bucket));
    ETUDE_RETURN_IF_ERROR(ReadBytes(*table, "first_bucket", plan_.first_bucket));
    ETUDE_RETURN_IF_ERROR(ReadWord(*table, "schedule", ScheduleWords(), plan_.schedule));
    ETUDE_RETURN_IF_ERROR(ReadWord(*table, "recompute", RecomputeWords(), plan_.recompute));
    ETUDE_RETURN_IF_ERROR(ReadWord(*table, "attention", AttentionWords(), plan_.attention));
    ETUDE_RETURN_IF_ERROR(ReadWord(*table, "context", ContextWords(), plan_.context_kind));
    ETUDE_RETURN_IF_ERROR(ReadWord(*table, "phase", PhaseWords(), plan_.phase));
    if (table->contains("cache_type")) {
      DType type = DType::kBFloat16;
      ETUDE_RETURN_IF_ERROR(ReadType(*table, "cache_type", type));
      plan_.cache_type = type;
    }
    // If the file has no phase, an option may set it.
    const auto unfit = plan_.phase ? SettingOfOtherPhase(plan_) : std::nullopt;
    if (!unfit) return {};
    return Wrong(*table->get(unfit->first),
                 fmt::format("{} requires phase {}", unfit->first, unfit->second));
  }

  Status ReadBytes(const toml::table& table, std::string_view key,
                   std::optional<Bytes>& value) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return {};
    ETUDE_ASSIGN_OR_RETURN(const std::string text, Text(*node, key));
    value = ParseBytes(text);
    if (value) return {};
    return Wrong(*node,
                 fmt::format("{}: found '{}', expected bytes, such as \"25MiB\"", key, text));
  }

  template <typename T>
  Status ReadWord(const toml::table& table, std::string_view key, PlanWords<T> words,
                  std::optional<T>& value) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return {};
    ETUDE_ASSIGN_OR_RETURN(const std::string text, Text(*node, key));
    std::vector<std::string> names;
    for (const auto& [name, meaning] : words) {
      if (name == text) {
        value = meaning;
        return {};
      }
      names.emplace_back(name);
    }
    return Wrong(*node, fmt::format("{}: found '{}', expected {}{}", key, text,
                                    fmt::join(names, ", "), DidYouMean(text, names)));
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
  PlanSettings plan_;
  bool has_preset_ = false;
};

}  // namespace

Result<TransformerFile> ParseTransformerFile(std::string_view text, const std::string& path) {
  return ParseToml<TransformerFile>(
      text, path, [&](const toml::table& table) { return TransformerParser(table, path).Run(); });
}

}  // namespace etude
