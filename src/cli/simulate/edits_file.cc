#include "src/cli/simulate/edits_file.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "src/base/text/nearest.h"
#include "src/formats/io/file_text.h"
#include "src/formats/io/toml_reader.h"

namespace etude {
namespace {

constexpr std::string_view kEditsFormat = "etude-edits";
constexpr int64_t kEditsVersion = 1;

class EditsFileParser : private TomlReader {
 public:
  EditsFileParser(const std::string& path, const Options& options,
                  const std::vector<std::string_view>& paths)
      : TomlReader(path), options_(options), paths_(paths) {}

  Result<std::vector<PlacedOption>> Run(const toml::table& root) const {
    ETUDE_RETURN_IF_ERROR(CheckFormat(root, kEditsFormat, kEditsVersion));
    const std::vector<std::string> names = options_.Names();
    std::vector<std::pair<toml::source_position, PlacedOption>> found;
    for (const auto& [key, value] : root) {
      if (key.str() == "format" || key.str() == "version") continue;
      PlacedOption option{.place = PlaceOf(key.source()), .name = {}, .words = {}};
      std::string name(key.str());
      std::ranges::replace(name, '_', '-');
      if (std::ranges::find(names, name) == names.end()) {
        return BadInput(fmt::format("{}: unknown key '{}'{}", option.place, key.str(),
                                    MeantOrAll(name, names)));
      }
      for (const auto& [position, other] : found) {
        if (other.name != name) continue;
        return BadInput(fmt::format("{}: found '{}' twice", option.place, name));
      }
      option.name = name;
      ETUDE_ASSIGN_OR_RETURN(option.words, WordsOf(name, value));
      found.emplace_back(key.source().begin, std::move(option));
    }
    std::ranges::sort(found, {},
                      [](const auto& one) { return std::pair(one.first.line, one.first.column); });
    std::vector<PlacedOption> options;
    for (auto& [position, option] : found) options.push_back(std::move(option));
    return options;
  }

 private:
  Result<std::vector<std::string>> WordsOf(const std::string& name, const toml::node& value) const {
    const std::string option = "--" + name;
    const auto text_of = [&](const toml::node& node) -> std::string {
      const std::string& text = node.as_string()->get();
      if (std::ranges::find(paths_, name) == paths_.end() || text.empty()) return text;
      return (std::filesystem::path(path()).parent_path() / text).string();
    };
    if (value.is_string()) return std::vector<std::string>{option, text_of(value)};
    if (const auto* number = value.as_integer()) {
      return std::vector<std::string>{option, fmt::format("{}", number->get())};
    }
    if (const auto* number = value.as_floating_point()) {
      return std::vector<std::string>{option, fmt::format("{}", number->get())};
    }
    if (const auto* truth = value.as_boolean()) {
      return truth->get() ? std::vector<std::string>{option} : std::vector<std::string>{};
    }
    const bool is_repeatable = options_.IsRepeatable(name);
    const toml::array* list = value.as_array();
    if (!is_repeatable || list == nullptr || !list->is_homogeneous(toml::node_type::string)) {
      return WrongType(
          value, name,
          is_repeatable ? "a text, or a list of texts" : "a text, a number, or true or false");
    }
    std::vector<std::string> words;
    for (const toml::node& one : *list) {
      words.push_back(option);
      words.push_back(text_of(one));
    }
    return words;
  }

  const Options& options_;
  const std::vector<std::string_view>& paths_;
};

}  // namespace

Result<std::vector<PlacedOption>> ReadEditsFile(const std::string& path, const Options& options,
                                                const std::vector<std::string_view>& paths,
                                                const Limits& limits) {
  ETUDE_ASSIGN_OR_RETURN(const FileText file, FileText::Open(path, limits));
  return ParseToml<std::vector<PlacedOption>>(file.text(), path, [&](const toml::table& root) {
    return EditsFileParser(path, options, paths).Run(root);
  });
}

}  // namespace etude
