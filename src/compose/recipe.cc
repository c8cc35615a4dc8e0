#include "src/compose/recipe.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <numeric>
#include <set>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "src/base/text/ascii.h"
#include "src/base/text/nearest.h"
#include "src/compose/retype.h"
#include "src/formats/io/toml_reader.h"

namespace etude {
namespace {

constexpr std::string_view kFormat = "etude-recipe";
constexpr int64_t kVersion = 1;

class RecipeParser : private TomlReader {
 public:
  RecipeParser(const toml::table& root, const std::string& path) : TomlReader(path), root_(root) {}

  Result<Recipe> Run() {
    ETUDE_RETURN_IF_ERROR(CheckKeys(root_, "a recipe", {"format", "version", "traces", "part"}));
    ETUDE_RETURN_IF_ERROR(CheckFormat(root_, kFormat, kVersion));
    ETUDE_RETURN_IF_ERROR(ReadTraces());
    ETUDE_RETURN_IF_ERROR(ReadParts());
    ETUDE_RETURN_IF_ERROR(CheckWeights());
    return std::move(recipe_);
  }

 private:
  Status ReadTraces() {
    const toml::node* node = root_.get("traces");
    if (node == nullptr) return BadInput(path() + ": missing [traces]");
    const toml::table* table = node->as_table();
    if (table == nullptr) return WrongType(*node, "traces", "a table of names and paths");
    for (const auto& [key, value] : *table) {
      RecipeTrace trace{.name = std::string(key.str())};
      if (const toml::table* facts = value.as_table()) {
        ETUDE_RETURN_IF_ERROR(CheckKeys(*facts, "a trace", {"path", "rank"}));
        ETUDE_ASSIGN_OR_RETURN(trace.path, RequiredText(*facts, "path", "the trace"));
        if (const toml::node* rank = facts->get("rank")) {
          ETUDE_ASSIGN_OR_RETURN(trace.rank, Whole(*rank, "rank", 0, INT32_MAX));
        }
      } else if (value.is_string()) {
        ETUDE_ASSIGN_OR_RETURN(trace.path, Text(value, key.str()));
      } else {
        return WrongType(value, key.str(), "a path, or a table with 'path' and 'rank'");
      }
      recipe_.traces.push_back(std::move(trace));
    }
    if (recipe_.traces.empty()) return Wrong(*node, "traces: found none, expected at least one");
    return {};
  }

  Status ReadParts() {
    const toml::node* node = root_.get("part");
    if (node == nullptr) return BadInput(path() + ": missing [[part]], expected at least one");
    const toml::array* parts = node->as_array();
    if (parts == nullptr || parts->empty()) {
      return WrongType(*node, "part", "a list of tables: [[part]]");
    }
    for (const toml::node& part : *parts) {
      if (!part.is_table()) return WrongType(part, "part", "a table: [[part]]");
      ETUDE_RETURN_IF_ERROR(ReadPart(*part.as_table()));
    }
    return {};
  }

  Status ReadPart(const toml::table& table) {
    ETUDE_RETURN_IF_ERROR(CheckKeys(table, "a part",
                                    {"name", "trace", "resize", "dtype", "select", "drop",
                                     "replace", "scale_comm", "repeat", "weight"}));
    RecipePart part;
    part.place = PlaceOf(table);
    ETUDE_ASSIGN_OR_RETURN(part.trace, FindTrace(table));
    if (const toml::node* resize = table.get("resize")) {
      ETUDE_ASSIGN_OR_RETURN(part.resize, ReadResize(*resize, part.trace));
    }
    if (const toml::node* dtype = table.get("dtype")) {
      ETUDE_ASSIGN_OR_RETURN(part.retype, ReadRetype(*dtype));
    }
    part.name = fmt::format("part {}", recipe_.parts.size() + 1);
    if (const toml::node* name = table.get("name")) {
      ETUDE_ASSIGN_OR_RETURN(part.name, Text(*name, "name"));
      if (!names_.insert(part.name).second) {
        return Wrong(
            *name, fmt::format("name: found another part '{}', expected unique names", part.name));
      }
    }
    part.select.place = PlaceOf(table);
    if (const toml::node* select = table.get("select")) {
      ETUDE_ASSIGN_OR_RETURN(part.select, ReadSelection(*select, "select"));
    }
    if (const toml::node* drop = table.get("drop")) ETUDE_RETURN_IF_ERROR(ReadDrops(*drop, part));
    if (const toml::node* replace = table.get("replace")) {
      ETUDE_RETURN_IF_ERROR(ReadReplacements(*replace, part));
    }
    if (const toml::node* scale = table.get("scale_comm")) {
      ETUDE_ASSIGN_OR_RETURN(part.scale_comm, Positive(*scale, "scale_comm"));
    }
    const toml::node* repeat = table.get("repeat");
    const toml::node* weight = table.get("weight");
    if (repeat != nullptr && weight != nullptr) {
      return Wrong(*weight, "weight: found both 'repeat' and 'weight', expected one of them");
    }
    if (repeat != nullptr) {
      ETUDE_ASSIGN_OR_RETURN(part.repeat, Whole(*repeat, "repeat", 1, kMostRepetitions));
    }
    if (weight != nullptr) {
      ETUDE_ASSIGN_OR_RETURN(part.weight, Positive(*weight, "weight"));
    }
    recipe_.parts.push_back(std::move(part));
    return {};
  }

  Result<size_t> FindTrace(const toml::table& part) const {
    const toml::node* node = part.get("trace");
    if (node == nullptr) {
      if (recipe_.traces.size() == 1) return 0;
      return Wrong(part, fmt::format("missing 'trace' of the part, expected one of {}",
                                     fmt::join(TraceNames(), ", ")));
    }
    return TraceNamed(*node, "trace");
  }
  Result<size_t> TraceNamed(const toml::node& node, std::string_view key) const {
    ETUDE_ASSIGN_OR_RETURN(const std::string name, Text(node, key));
    const auto found = std::ranges::find(recipe_.traces, name, &RecipeTrace::name);
    if (found != recipe_.traces.end()) return static_cast<size_t>(found - recipe_.traces.begin());
    return Wrong(node, fmt::format("{}: missing '{}' in [traces]{}", key, name,
                                   MeantOrAll(name, TraceNames())));
  }

  Result<RecipeResize> ReadResize(const toml::node& node, size_t trace) const {
    constexpr std::string_view kExample =
        "a table, as in { with = \"batch16\", sizes = [8, 16], to = 64 }";
    const toml::table* table = node.as_table();
    if (table == nullptr) return WrongType(node, "resize", kExample);
    ETUDE_RETURN_IF_ERROR(CheckKeys(*table, "resize", {"with", "sizes", "to"}));
    const toml::node* with = table->get("with");
    const toml::node* sizes = table->get("sizes");
    const toml::node* to = table->get("to");
    if (with == nullptr || sizes == nullptr || to == nullptr) {
      return Wrong(node, fmt::format("resize: expected {}", kExample));
    }
    RecipeResize resize;
    ETUDE_ASSIGN_OR_RETURN(resize.with, TraceNamed(*with, "with"));
    if (resize.with == trace) {
      return Wrong(*with,
                   "with: found the part's own trace, expected a recording with another size");
    }
    const toml::array* list = sizes->as_array();
    if (list == nullptr || list->size() != 2) {
      return WrongType(*sizes, "sizes",
                       "two whole numbers: the size in 'trace' and the size in 'with'");
    }
    constexpr int64_t kMostSize = int64_t{1} << 31;
    ETUDE_ASSIGN_OR_RETURN(resize.sizes.first, Whole(*list->get(0), "sizes", 1, kMostSize));
    ETUDE_ASSIGN_OR_RETURN(resize.sizes.second, Whole(*list->get(1), "sizes", 1, kMostSize));
    ETUDE_ASSIGN_OR_RETURN(resize.sizes.wanted, Whole(*to, "to", 1, kMostSize));
    if (resize.sizes.first == resize.sizes.second) {
      return Wrong(*sizes, "sizes: found the same size twice, expected two different sizes");
    }
    return resize;
  }

  Result<RecipeRetype> ReadRetype(const toml::node& node) const {
    const toml::table* table = node.as_table();
    if (table == nullptr) {
      return WrongType(node, "dtype", "a table: { from = \"float32\", to = \"bfloat16\" }");
    }
    ETUDE_RETURN_IF_ERROR(CheckKeys(*table, "dtype", {"from", "to"}));
    RecipeRetype retype;
    for (const auto& [key, type] : {std::pair("from", &retype.from), std::pair("to", &retype.to)}) {
      ETUDE_ASSIGN_OR_RETURN(const std::string name, RequiredText(*table, key, "dtype"));
      *type = DTypeFromText(name);
      if (!IsNetworkType(*type)) {
        return Wrong(*table->get(key),
                     fmt::format("{}: found '{}', expected float32, float64, float16 or bfloat16",
                                 key, name));
      }
    }
    if (retype.from == retype.to) return Wrong(node, "dtype: found the same type twice");
    return retype;
  }

  std::vector<std::string> TraceNames() const {
    std::vector<std::string> names;
    for (const RecipeTrace& trace : recipe_.traces) names.push_back(trace.name);
    return names;
  }

  // Reads one text or number, or a list of them.
  Result<std::vector<std::string>> Words(const toml::node& node, std::string_view key) const {
    std::vector<std::string> words;
    const auto add = [&](const toml::node& word) -> Status {
      if (const auto* number = word.as_integer()) {
        words.push_back(std::to_string(number->get()));
        return {};
      }
      if (!word.is_string()) return WrongType(word, key, "text, a whole number, or a list of them");
      ETUDE_ASSIGN_OR_RETURN(words.emplace_back(), Text(word, key));
      return {};
    };
    const toml::array* list = node.as_array();
    if (list == nullptr) {
      ETUDE_RETURN_IF_ERROR(add(node));
      return words;
    }
    if (list->empty()) return Wrong(node, fmt::format("{}: found an empty list", key));
    for (const toml::node& word : *list) ETUDE_RETURN_IF_ERROR(add(word));
    return words;
  }

  Result<RecipeSelection> ReadSelection(const toml::node& node, std::string_view key) const {
    const toml::table* table = node.as_table();
    if (table == nullptr) return WrongType(node, key, "a table, as in { op = \"aten::mm\" }");
    ETUDE_RETURN_IF_ERROR(CheckKeys(*table, key,
                                    {"label", "step", "thread", "stream", "module", "time", "op",
                                     "phase", "micro_batch", "comm"}));
    RecipeSelection found{.selection = {.sigil = ""}, .place = PlaceOf(node)};
    Selection& selection = found.selection;
    const auto kinds = std::to_array<std::pair<std::string_view, std::vector<std::string>*>>({
        {"label", &selection.labels},
        {"step", &selection.steps},
        {"thread", &selection.threads},
        {"stream", &selection.streams},
        {"module", &selection.modules},
        {"time", &selection.times},
        {"op", &selection.operators},
        {"phase", &selection.phases},
        {"micro_batch", &selection.micro_batches},
    });
    for (const auto& [name, words] : kinds) {
      const toml::node* filter = table->get(name);
      if (filter == nullptr) continue;
      ETUDE_ASSIGN_OR_RETURN(*words, Words(*filter, name));
    }
    if (const toml::node* comm = table->get("comm")) {
      const auto* wanted = comm->as_boolean();
      if (wanted == nullptr || !wanted->get()) return WrongType(*comm, "comm", "true");
      selection.communication = true;
    }
    if (selection.empty()) {
      return Wrong(node,
                   fmt::format("{}: found an empty table, expected at least one filter", key));
    }
    return found;
  }

  Status ReadDrops(const toml::node& node, RecipePart& part) const {
    if (const toml::array* list = node.as_array()) {
      for (const toml::node& one : *list) {
        ETUDE_ASSIGN_OR_RETURN(part.drop.emplace_back(), ReadSelection(one, "drop"));
      }
      return {};
    }
    ETUDE_ASSIGN_OR_RETURN(part.drop.emplace_back(), ReadSelection(node, "drop"));
    return {};
  }

  Status ReadReplacements(const toml::node& node, RecipePart& part) const {
    const auto read = [&](const toml::node& one) -> Status {
      const toml::table* table = one.as_table();
      if (table == nullptr) {
        return WrongType(one, "replace", "a table: { op = \"aten::relu\", with = \"aten::tanh\" }");
      }
      ETUDE_RETURN_IF_ERROR(CheckKeys(*table, "replace", {"op", "with"}));
      Replacement replacement;
      ETUDE_ASSIGN_OR_RETURN(replacement.op, RequiredText(*table, "op", "replace"));
      ETUDE_ASSIGN_OR_RETURN(replacement.with, RequiredText(*table, "with", "replace"));
      if (!IsOperatorName(replacement.with)) {
        return Wrong(
            *table->get("with"),
            fmt::format("with: found '{}', expected an operator's name, such as aten::add.Tensor",
                        replacement.with));
      }
      part.replace.push_back(std::move(replacement));
      return {};
    };
    const toml::array* list = node.as_array();
    if (list == nullptr) return read(node);
    for (const toml::node& one : *list) ETUDE_RETURN_IF_ERROR(read(one));
    return {};
  }

  static bool IsOperatorName(std::string_view name) {
    const size_t colons = name.find("::");
    const auto is_of_name = [](char c) { return IsWord(c) || c == '.' || c == ':'; };
    return colons != std::string_view::npos && colons > 0 && colons + 2 < name.size() &&
           std::ranges::all_of(name, is_of_name);
  }

  Status CheckWeights() {
    std::vector<double> weights;
    for (const RecipePart& part : recipe_.parts) {
      if (part.weight) weights.push_back(*part.weight);
    }
    if (weights.empty()) return {};
    const auto without = std::ranges::find_if(
        recipe_.parts, [](const RecipePart& part) { return !part.weight.has_value(); });
    if (without != recipe_.parts.end()) {
      return Wrong(*root_.get("part"),
                   fmt::format("'{}' has no 'weight' but other parts have, expected all or none",
                               without->name));
    }
    const auto repetitions = RepetitionsOf(weights);
    if (!repetitions) return Wrong(*root_.get("part"), repetitions.error().message);
    for (size_t i = 0; i < recipe_.parts.size(); ++i) recipe_.parts[i].repeat = (*repetitions)[i];
    return {};
  }

  const toml::table& root_;
  std::set<std::string> names_;
  Recipe recipe_;
};

// Divides `total` by weights, by largest remainders.
std::vector<int64_t> ShareOut(const std::vector<double>& shares, int64_t total) {
  std::vector<int64_t> counts;
  std::vector<double> remainders;
  for (const double share : shares) {
    const double exact = share * static_cast<double>(total);
    counts.push_back(static_cast<int64_t>(exact));
    remainders.push_back(exact - std::floor(exact));
  }
  std::vector<size_t> order(shares.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](size_t i) { return remainders[i]; });
  int64_t left = total - std::accumulate(counts.begin(), counts.end(), int64_t{0});
  for (size_t i = 0; left > 0 && i < order.size(); ++i, --left) ++counts[order[i]];
  return counts;
}

}  // namespace

Result<std::vector<int64_t>> RepetitionsOf(const std::vector<double>& weights) {
  constexpr int64_t kMostTotal = 100;
  constexpr double kNear = 0.01 + 1e-9;
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<double> shares;
  for (const double weight : weights) shares.push_back(weight / sum);
  for (int64_t total = 1; total <= kMostTotal; ++total) {
    std::vector<int64_t> counts = ShareOut(shares, total);
    bool near = true;
    for (size_t i = 0; i < shares.size(); ++i) {
      const double share = static_cast<double>(counts[i]) / static_cast<double>(total);
      near = near && counts[i] > 0 && std::abs(share - shares[i]) <= kNear;
    }
    if (near) return counts;
  }
  return MakeError(
      ErrorCode::kUsage,
      fmt::format(
          "weights: found a part with {:.2g} of the total weight, expected at least one in {}",
          *std::ranges::min_element(shares), kMostTotal));
}

Result<Recipe> ParseRecipe(std::string_view text, const std::string& path) {
  return ParseToml<Recipe>(
      text, path, [&](const toml::table& table) { return RecipeParser(table, path).Run(); });
}

}  // namespace etude
