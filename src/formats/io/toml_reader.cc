#define TOML_IMPLEMENTATION  // toml++ itself
#include "src/formats/io/toml_reader.h"

#include <algorithm>
#include <cmath>

#include "src/base/text/nearest.h"

namespace etude {
namespace {

std::string_view TomlTypeName(const toml::node& node) {
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

}  // namespace

std::string TomlReader::PlaceOf(const toml::source_region& region) const {
  return fmt::format("{}:{}:{}", path_, region.begin.line, region.begin.column);
}

std::map<std::string, std::string, std::less<>> TomlReader::PlacesOf(
    const toml::table& root) const {
  std::map<std::string, std::string, std::less<>> places;
  for (const auto& [key, value] : root) {
    const std::string name(key.str());
    places[name] = PlaceOf(value);
    if (!value.is_table()) continue;
    for (const auto& [inner, node] : *value.as_table()) {
      places[fmt::format("{}.{}", name, inner.str())] = PlaceOf(node);
    }
  }
  return places;
}

tl::unexpected<Error> TomlReader::Wrong(const toml::node& node, std::string_view message) const {
  return BadInput(fmt::format("{}: {}", PlaceOf(node), message));
}

tl::unexpected<Error> TomlReader::WrongType(const toml::node& node, std::string_view key,
                                            std::string_view expected) const {
  return Wrong(node, fmt::format("{}: found {}, expected {}", key, TomlTypeName(node), expected));
}

tl::unexpected<Error> TomlReader::WrongName(const toml::node& node, std::string_view key,
                                            std::string_view name,
                                            const std::vector<std::string>& names) const {
  return Wrong(node, fmt::format("{}: unknown '{}'{}", key, name, MeantOrAll(name, names)));
}

Status TomlReader::CheckKeys(const toml::table& table, std::string_view what, Keys known) const {
  for (const auto& [key, value] : table) {
    if (std::ranges::find(known, key.str()) != known.end()) continue;
    const std::vector<std::string> names(known.begin(), known.end());
    return BadInput(fmt::format("{}: unknown key '{}' of {}{}", PlaceOf(key.source()), key.str(),
                                what, MeantOrAll(key.str(), names)));
  }
  return {};
}

Status TomlReader::CheckFormat(const toml::table& root, std::string_view format,
                               int64_t version) const {
  if (const toml::node* node = root.get("format")) {
    ETUDE_ASSIGN_OR_RETURN(const std::string text, Text(*node, "format"));
    if (text != format) {
      return Wrong(*node, fmt::format("format: found '{}', expected '{}'", text, format));
    }
  }
  if (const toml::node* node = root.get("version")) {
    ETUDE_RETURN_IF_ERROR(Whole(*node, "version", version, version));
  }
  return {};
}

Result<std::string> TomlReader::Text(const toml::node& node, std::string_view key) const {
  const auto* text = node.as_string();
  if (text == nullptr) return WrongType(node, key, "text");
  if (text->get().empty()) return Wrong(node, fmt::format("{}: found an empty table", key));
  return text->get();
}

Result<std::string> TomlReader::RequiredText(const toml::table& table, std::string_view key,
                                             std::string_view what) const {
  const toml::node* node = table.get(key);
  if (node == nullptr) {
    return Wrong(table, fmt::format("{}: missing '{}'", what, key));
  }
  return Text(*node, key);
}

Result<int64_t> TomlReader::Whole(const toml::node& node, std::string_view key, int64_t least,
                                  int64_t most) const {
  const auto* number = node.as_integer();
  if (number == nullptr) return WrongType(node, key, "a whole number");
  if (number->get() < least || number->get() > most) {
    return Wrong(node,
                 fmt::format("{}: found {}, expected {} to {}", key, number->get(), least, most));
  }
  return number->get();
}

Result<double> TomlReader::Positive(const toml::node& node, std::string_view key) const {
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

Result<bool> TomlReader::Flag(const toml::node& node, std::string_view key) const {
  const auto* flag = node.as_boolean();
  if (flag == nullptr) return WrongType(node, key, "true or false");
  return flag->get();
}

Status CheckTomlKeys(std::string_view text, const std::string& path) {
  const size_t most = Limits{}.depth;
  size_t dots = 0;  // in a possible key, since its beginning
  size_t line = 1;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (c == '"' || c == '\'') {
      // To its end; each line of a multi-line text counts as one.
      while (++i < text.size() && text[i] != c && text[i] != '\n') {
        if (text[i] == '\\' && c == '"') ++i;
      }
      if (i < text.size() && text[i] == '\n') --i;
    } else if (c == '#') {
      i = std::min(text.find('\n', i), text.size()) - 1;
    } else if (c == '.') {
      if (++dots < most) continue;
      return BadInput(fmt::format("{}:{}: nested too deeply", path, line));
    } else if (c == '=' || c == ',' || c == '{' || c == '[' || c == '\n') {
      dots = 0;
    }
  }
  return {};
}

size_t MalformedTomlLine(std::string_view text) {
  size_t line = 0;
  for (size_t end = 0; end != std::string_view::npos && end < text.size(); ++line) {
    end = text.find('\n', end);
    if (end != std::string_view::npos) ++end;
    try {
      (void)toml::parse(text.substr(0, end));
    } catch (const toml::parse_error&) {
      // Continues on the next line.
    } catch (const std::exception&) {
      return line + 1;
    }
  }
  return line;
}

}  // namespace etude
