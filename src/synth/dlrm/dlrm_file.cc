#include "src/synth/dlrm/dlrm_file.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "src/formats/io/toml_reader.h"
#include "src/synth/device/float_type.h"

namespace etude {
namespace {

constexpr std::string_view kDlrmFormat = "etude-model";
constexpr int64_t kDlrmVersion = 1;
constexpr int64_t kMostOfDlrm = int64_t{1} << 40;
constexpr size_t kMostOfTables = 1 << 14;

class DlrmParser : private TomlReader {
 public:
  DlrmParser(const toml::table& root, const std::string& path) : TomlReader(path), root_(root) {}

  Result<DlrmModel> Run() {
    ETUDE_RETURN_IF_ERROR(
        CheckKeys(root_, "a model", {"format", "version", "preset", "dlrm", "tables"}));
    ETUDE_RETURN_IF_ERROR(CheckFormat(root_, kDlrmFormat, kDlrmVersion));
    ETUDE_RETURN_IF_ERROR(ReadPreset());
    ETUDE_RETURN_IF_ERROR(ReadModel());
    ETUDE_RETURN_IF_ERROR(ReadTables());
    if (const Fits fits = CheckDlrm(model_); !fits) {
      KeyPlaces places = PlacesOf(root_);
      places.merge(table_places_);
      return tl::unexpected(PlacedError(fits.error(), places, PlaceOf(root_)));
    }
    return model_;
  }

 private:
  Status ReadPreset() {
    ETUDE_ASSIGN_OR_RETURN(const DlrmPreset* preset, PresetOf(root_, DlrmPresets()));
    if (preset == nullptr) return {};
    model_ = preset->model;
    has_preset_ = true;
    return {};
  }

  // `required`: a missing key is an error.
  Status ReadNumber(const toml::table& table, std::string_view key, std::string_view what,
                    bool required, int64_t& value) const {
    if (const toml::node* node = table.get(key)) {
      ETUDE_ASSIGN_OR_RETURN(value, Whole(*node, key, 1, kMostOfDlrm));
    } else if (required) {
      return Wrong(table, fmt::format("{}: missing '{}'", what, key));
    }
    return {};
  }

  Status ReadUnits(const toml::table& table, std::string_view key, std::vector<int64_t>& units) {
    const toml::node* node = table.get(key);
    if (node == nullptr) {
      if (has_preset_) return {};
      return Wrong(table, fmt::format("[dlrm]: missing '{}'", key));
    }
    const toml::array* array = node->as_array();
    if (array == nullptr || array->empty()) {
      return WrongType(*node, key, "a list of layer widths, such as [512, 256, 64]");
    }
    units.clear();
    for (const toml::node& unit : *array) {
      ETUDE_ASSIGN_OR_RETURN(units.emplace_back(), Whole(unit, key, 1, kMostOfDlrm));
    }
    return {};
  }

  Status ReadModel() {
    const toml::node* node = root_.get("dlrm");
    if (node == nullptr) {
      if (has_preset_) return {};
      return BadInput(path() + ": missing 'preset' or [dlrm]");
    }
    const toml::table* table = node->as_table();
    if (table == nullptr) return WrongType(*node, "dlrm", "a table: [dlrm]");
    ETUDE_RETURN_IF_ERROR(
        CheckKeys(*table, "[dlrm]",
                  {"dense", "bottom", "top", "interaction", "cross_layers", "cross_rank", "type"}));
    ETUDE_RETURN_IF_ERROR(ReadNumber(*table, "dense", "[dlrm]", !has_preset_, model_.dense));
    ETUDE_RETURN_IF_ERROR(ReadUnits(*table, "bottom", model_.bottom));
    ETUDE_RETURN_IF_ERROR(ReadUnits(*table, "top", model_.top));
    ETUDE_RETURN_IF_ERROR(ReadInteraction(*table));
    if (const toml::node* type = table->get("type")) {
      ETUDE_ASSIGN_OR_RETURN(const std::string name, Text(*type, "type"));
      const std::optional<DType> found = FloatType(name);
      if (!found) {
        return Wrong(*type, fmt::format("type: found '{}', expected {}", name, FloatTypeNames()));
      }
      model_.type = *found;
    }
    return {};
  }

  Status ReadInteraction(const toml::table& table) {
    if (const toml::node* node = table.get("interaction")) {
      ETUDE_ASSIGN_OR_RETURN(const std::string name, Text(*node, "interaction"));
      if (name == "dot") {
        model_.interaction = Interaction::kDot;
      } else if (name == "concat") {
        model_.interaction = Interaction::kConcat;
      } else if (name == "cross") {
        model_.interaction = Interaction::kCross;
      } else {
        return Wrong(*node,
                     fmt::format("interaction: found '{}', expected dot, concat or cross", name));
      }
    }
    if (model_.interaction != Interaction::kCross) {
      model_.cross_layers = 0;
      model_.cross_rank = 0;
      for (const std::string_view key : {"cross_layers", "cross_rank"}) {
        if (const toml::node* node = table.get(key)) {
          return Wrong(*node, fmt::format("{} requires interaction = \"cross\"", key));
        }
      }
      return {};
    }
    ETUDE_RETURN_IF_ERROR(ReadNumber(table, "cross_layers", "[dlrm] with cross layers",
                                     model_.cross_layers == 0, model_.cross_layers));
    return ReadNumber(table, "cross_rank", "[dlrm] with cross layers", model_.cross_rank == 0,
                      model_.cross_rank);
  }

  Status ReadTables() {
    const toml::node* node = root_.get("tables");
    if (node == nullptr) {
      if (has_preset_) return {};
      return BadInput(path() + ": found no [[tables]], expected one or more");
    }
    const toml::array* array = node->as_array();
    if (array == nullptr) return WrongType(*node, "tables", "a list of tables: [[tables]]");
    model_.tables.clear();
    for (const toml::node& element : *array) {
      const toml::table* table = element.as_table();
      if (table == nullptr) return WrongType(element, "tables", "a table: [[tables]]");
      ETUDE_RETURN_IF_ERROR(
          CheckKeys(*table, "[[tables]]", {"rows", "dimension", "lookups", "count"}));
      EmbeddingTable read{.dimension = model_.bottom.back()};
      int64_t count = 1;
      ETUDE_RETURN_IF_ERROR(ReadNumber(*table, "rows", "[[tables]]", true, read.rows));
      ETUDE_RETURN_IF_ERROR(ReadNumber(*table, "dimension", "[[tables]]", false, read.dimension));
      ETUDE_RETURN_IF_ERROR(ReadNumber(*table, "lookups", "[[tables]]", false, read.lookups));
      ETUDE_RETURN_IF_ERROR(ReadNumber(*table, "count", "[[tables]]", false, count));
      if (static_cast<uint64_t>(count) > kMostOfTables - model_.tables.size()) {
        return Wrong(*table, fmt::format("found more than {} tables", kMostOfTables));
      }
      for (const auto& [key, value] : *table) {
        table_places_[fmt::format("tables.{}.{}", model_.tables.size(), key.str())] =
            PlaceOf(value);
      }
      model_.tables.insert(model_.tables.end(), static_cast<size_t>(count), read);
    }
    return {};
  }

  const toml::table& root_;
  DlrmModel model_;
  KeyPlaces table_places_;  // "tables.0.rows", for the first of equal ones
  bool has_preset_ = false;
};

}  // namespace

Result<DlrmModel> ParseDlrm(std::string_view text, const std::string& path) {
  return ParseToml<DlrmModel>(
      text, path, [&](const toml::table& table) { return DlrmParser(table, path).Run(); });
}

}  // namespace etude
