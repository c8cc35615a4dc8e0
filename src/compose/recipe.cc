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

#define TOML_EXCEPTIONS 1
#define TOML_ENABLE_FORMATTERS 0
// toml++ asserts that some malformed texts cannot be, or takes it for granted: here they are
// errors.
[[noreturn]] static void RefuseMalformedToml() { throw std::runtime_error("malformed TOML"); }
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expr) ((expr) ? void() : RefuseMalformedToml())
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#include "src/base/nearest.h"
#include "src/compose/retype.h"

namespace etude {
namespace {

constexpr std::string_view kFormat = "etude-recipe";
constexpr int64_t kVersion = 1;

std::string_view TypeName(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table: return "a table";
    case toml::node_type::array: return "a list";
    case toml::node_type::string: return "text";
    case toml::node_type::integer: return "a whole number";
    case toml::node_type::floating_point: return "a number";
    case toml::node_type::boolean: return "true or false";
    case toml::node_type::date:
    case toml::node_type::time:
    case toml::node_type::date_time: return "a date or time";
    case toml::node_type::none: break;
  }
  return "nothing";
}

class RecipeParser {
 public:
  RecipeParser(const toml::table& root, const std::string& path) : root_(root), path_(path) {}

  Result<Recipe> Run() {
    ETUDE_RETURN_IF_ERROR(CheckKeys(root_, "a recipe", {"format", "version", "traces", "part"}));
    ETUDE_RETURN_IF_ERROR(CheckFormat());
    ETUDE_RETURN_IF_ERROR(ReadTraces());
    ETUDE_RETURN_IF_ERROR(ReadParts());
    ETUDE_RETURN_IF_ERROR(CheckWeights());
    return std::move(recipe_);
  }

 private:
  using Keys = std::initializer_list<std::string_view>;

  std::string PlaceOf(const toml::source_region& region) const {
    return fmt::format("{}:{}:{}", path_, region.begin.line, region.begin.column);
  }
  std::string PlaceOf(const toml::node& node) const { return PlaceOf(node.source()); }

  tl::unexpected<Error> Wrong(const toml::node& node, std::string_view message) const {
    return BadInput(fmt::format("{}: {}", PlaceOf(node), message));
  }
  tl::unexpected<Error> WrongType(const toml::node& node, std::string_view key,
                                  std::string_view expected) const {
    return Wrong(node, fmt::format("{}: found {}, expected {}", key, TypeName(node), expected));
  }

  Status CheckKeys(const toml::table& table, std::string_view what, Keys known) const {
    for (const auto& [key, value] : table) {
      if (std::ranges::find(known, key.str()) != known.end()) continue;
      const std::vector<std::string> names(known.begin(), known.end());
      const std::string near = Nearest(key.str(), names);
      return BadInput(
          fmt::format("{}: unknown key '{}' of {}{}", PlaceOf(key.source()), key.str(), what,
                      near.empty() ? fmt::format(", expected {}", fmt::join(names, ", "))
                                   : fmt::format("; did you mean '{}'?", near)));
    }
    return {};
  }

  Result<std::string> Text(const toml::node& node, std::string_view key) const {
    const auto* text = node.as_string();
    if (text == nullptr) return WrongType(node, key, "text");
    if (text->get().empty()) return Wrong(node, fmt::format("{}: found nothing in it", key));
    return text->get();
  }
  Result<std::string> RequiredText(const toml::table& table, std::string_view key,
                                   std::string_view what) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) {
      return Wrong(table, fmt::format("{} has no '{}', which it needs", what, key));
    }
    return Text(*node, key);
  }
  Result<int64_t> Whole(const toml::node& node, std::string_view key, int64_t least,
                        int64_t most) const {
    const auto* number = node.as_integer();
    if (number == nullptr) return WrongType(node, key, "a whole number");
    if (number->get() < least || number->get() > most) {
      return Wrong(node,
                   fmt::format("{}: found {}, expected {} to {}", key, number->get(), least, most));
    }
    return number->get();
  }

  Status CheckFormat() const {
    if (const toml::node* format = root_.get("format")) {
      ETUDE_ASSIGN_OR_RETURN(const std::string text, Text(*format, "format"));
      if (text != kFormat) {
        return Wrong(*format, fmt::format("format: found '{}', expected '{}'", text, kFormat));
      }
    }
    if (const toml::node* version = root_.get("version")) {
      ETUDE_RETURN_IF_ERROR(Whole(*version, "version", kVersion, kVersion));
    }
    return {};
  }

  Status ReadTraces() {
    const toml::node* node = root_.get("traces");
    if (node == nullptr) return BadInput(path_ + ": has no [traces], which a recipe needs");
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
    if (node == nullptr) return BadInput(path_ + ": has no [[part]], expected at least one");
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
        return Wrong(*name, fmt::format("name: there is another part '{}'", part.name));
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
      return Wrong(*weight, "weight: the part has 'repeat', expected one of them");
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
      return Wrong(part, fmt::format("the part has no 'trace', expected one of {}",
                                     fmt::join(TraceNames(), ", ")));
    }
    return TraceNamed(*node, "trace");
  }
  Result<size_t> TraceNamed(const toml::node& node, std::string_view key) const {
    ETUDE_ASSIGN_OR_RETURN(const std::string name, Text(node, key));
    const auto found = std::ranges::find(recipe_.traces, name, &RecipeTrace::name);
    if (found != recipe_.traces.end()) return static_cast<size_t>(found - recipe_.traces.begin());
    const std::string near = Nearest(name, TraceNames());
    return Wrong(
        node, fmt::format("{}: [traces] has no '{}'{}", key, name,
                          near.empty() ? fmt::format(", expected {}", fmt::join(TraceNames(), ", "))
                                       : fmt::format("; did you mean '{}'?", near)));
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
      return Wrong(*with, "with: is the part's own trace, expected a recording with another size");
    }
    const toml::array* list = sizes->as_array();
    if (list == nullptr || list->size() != 2) {
      return WrongType(*sizes, "sizes", "two whole numbers: that of 'trace' and that of 'with'");
    }
    constexpr int64_t kMostSize = int64_t{1} << 31;
    ETUDE_ASSIGN_OR_RETURN(resize.sizes.first, Whole(*list->get(0), "sizes", 1, kMostSize));
    ETUDE_ASSIGN_OR_RETURN(resize.sizes.second, Whole(*list->get(1), "sizes", 1, kMostSize));
    ETUDE_ASSIGN_OR_RETURN(resize.sizes.wanted, Whole(*to, "to", 1, kMostSize));
    if (resize.sizes.first == resize.sizes.second) {
      return Wrong(*sizes, "sizes: found the same twice, expected two different ones");
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

  // One text or number, or a list of them.
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
    ETUDE_RETURN_IF_ERROR(
        CheckKeys(*table, key,
                  {"label", "step", "thread", "stream", "module", "time", "op", "phase", "comm"}));
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
      return Wrong(node, fmt::format("{}: found nothing in it, expected at least one filter", key));
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
        return Wrong(*table->get("with"),
                     fmt::format("with: found '{}', expected an operator's name, as in "
                                 "aten::add.Tensor",
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
    const auto is_letter = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '_' || c == '.' || c == ':';
    };
    return colons != std::string_view::npos && colons > 0 && colons + 2 < name.size() &&
           std::ranges::all_of(name, is_letter);
  }

  Result<double> Positive(const toml::node& node, std::string_view key) const {
    double value = 0;
    if (const auto* number = node.as_floating_point()) {
      value = number->get();
    } else if (const auto* whole = node.as_integer()) {
      value = static_cast<double>(whole->get());
    } else {
      return WrongType(node, key, "a number above 0");
    }
    if (!std::isfinite(value) || value <= 0 || value > 1e9) {
      return Wrong(node, fmt::format("{}: found {}, expected a number above 0", key, value));
    }
    return value;
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
      return Wrong(
          *root_.get("part"),
          fmt::format("'{}' has no 'weight' and others have, expected all or none", without->name));
    }
    const auto repetitions = RepetitionsOf(weights);
    if (!repetitions) return Wrong(*root_.get("part"), repetitions.error().message);
    for (size_t i = 0; i < recipe_.parts.size(); ++i) recipe_.parts[i].repeat = (*repetitions)[i];
    return {};
  }

  const toml::table& root_;
  const std::string& path_;
  std::set<std::string> names_;
  Recipe recipe_;
};

// `total` shared out by weights, by largest remainders.
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
      fmt::format("weights: the lightest part has {:.2g} of all, expected at least one "
                  "in {}",
                  *std::ranges::min_element(shares), kMostTotal));
}

// The line up to which a text can be read before an assertion of toml++ fails, from 1.
static size_t MalformedLine(std::string_view text) {
  size_t line = 0;
  for (size_t end = 0; end != std::string_view::npos && end < text.size(); ++line) {
    end = text.find('\n', end);
    if (end != std::string_view::npos) ++end;
    try {
      (void)toml::parse(text.substr(0, end));
    } catch (const toml::parse_error&) {
      // It goes on in the next line.
    } catch (const std::exception&) {
      return line + 1;
    }
  }
  return line;
}

// Where the first character stands that is not ASCII's and in no text or comment, or behind a
// backslash and the blanks and ends of lines that it makes nothing of: toml++ asks of it whether it
// is a blank and takes the answer no for impossible. nullopt if there is none. Of a malformed text
// it may be another one behind what is malformed.
static std::optional<size_t> ForeignCharacter(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  size_t i = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  while (i < text.size()) {
    const char c = text[i];
    if (static_cast<unsigned char>(c) >= 0x80) return i;
    if (c == '#') {
      i = std::min(text.find('\n', i), text.size());
    } else if (c == '"' || c == '\'') {
      const std::string_view many = c == '"' ? "\"\"\"" : "'''";
      const bool spans_lines = text.substr(i).starts_with(many);
      const std::string_view quote = spans_lines ? many : many.substr(0, 1);
      i += quote.size();
      while (i < text.size() && !text.substr(i).starts_with(quote)) {
        if (text[i] == '\n' && !spans_lines) break;
        if (text[i++] != '\\' || c == '\'') continue;
        const size_t next = text.find_first_not_of(" \t\r\n", i);
        if (next < text.size() && static_cast<unsigned char>(text[next]) >= 0x80) return next;
        if (i < text.size() && (text[i] != '\n' || spans_lines)) ++i;
      }
      i += quote.size();
    } else {
      ++i;
    }
  }
  return std::nullopt;
}

Result<Recipe> ParseRecipe(std::string_view text, const std::string& path) {
  if (const auto foreign = ForeignCharacter(text)) {
    const std::string_view before = text.substr(0, *foreign);
    return BadInput(
        fmt::format("{}:{}:{}: found a character that is not ASCII, expected it in "
                    "quotes, not behind a backslash, or in a comment",
                    path, std::ranges::count(before, '\n') + 1, *foreign - before.rfind('\n')));
  }
  try {
    const toml::table table = toml::parse(text, path);
    return RecipeParser(table, path).Run();
  } catch (const toml::parse_error& error) {
    return BadInput(fmt::format("{}:{}:{}: {}", path, error.source().begin.line,
                                error.source().begin.column, error.description()));
  } catch (const std::exception& error) {
    return BadInput(fmt::format("{}:{}: {}", path, MalformedLine(text), error.what()));
  }
}

}  // namespace etude
