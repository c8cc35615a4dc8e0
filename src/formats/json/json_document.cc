#include "src/formats/json/json_document.h"

#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "src/base/text/bounded_json.h"
#include "src/formats/io/byte_source.h"

namespace etude {
namespace {

using Json = nlohmann::json;

constexpr size_t kDocumentBytesMax = size_t{256} << 20;

Result<std::string> ReadWhole(const std::string& path, std::string_view name,
                              const RunContext& context) {
  return ReadWholeFile(path, context.limits, kDocumentBytesMax, fmt::format(", expected {}", name));
}

// Finds the first duplicate key in an object while parsing.
class KeyWatch : public JsonWatch<Json> {
 public:
  using JsonWatch::JsonWatch;

  // ".classes[1].file"; empty: none.
  const std::string& twice() const { return twice_; }

 private:
  // An open object or list.
  struct Level {
    std::set<std::string> keys;
    std::string key;  // the last one; empty in lists
    size_t values = 0;
  };

  void Open() override { open_.emplace_back(); }
  void Close() override { open_.pop_back(); }
  void Value() override {
    if (!open_.empty()) ++open_.back().values;
  }
  void Key(const std::string& key) override {
    open_.back().key = key;
    if (open_.back().keys.insert(key).second || !twice_.empty()) return;
    for (const Level& level : open_) {
      twice_ += level.keys.empty() ? fmt::format("[{}]", level.values) : "." + level.key;
    }
  }

  std::vector<Level> open_;
  std::string twice_;
};

// Parses a document. A duplicate key is an error if `unique`, else a warning.
Result<Json> ParseText(const std::string& path, std::string_view text, std::string_view name,
                       bool unique, const RunContext& context) {
  KeyWatch keys(context.limits.depth);
  const bool valid = Json::sax_parse(text, &keys);
  if (keys.too_deep()) return BadInput(path + ": nested too deeply (limit 'depth')");
  Json json = valid ? Json::parse(text, nullptr, /*allow_exceptions=*/false)
                    : Json(Json::value_t::discarded);
  if (json.is_discarded()) {
    return BadInput(fmt::format("{}: not valid JSON, expected {}", path, name));
  }
  if (!keys.twice().empty() && !unique) {
    context.Warn(
        fmt::format("{}{}: found the key twice, using the last value", path, keys.twice()));
  } else if (!keys.twice().empty()) {
    return BadInput(fmt::format("{}{}: found the key twice, expected it once", path, keys.twice()));
  }
  return json;
}

Status CheckKind(const std::string& path, const Json& json, const DocumentKind& kind) {
  if (!json.is_object() || json.value("format", Json()) != kind.format) {
    return BadInput(fmt::format("{}: expected \"format\": \"{}\"", path, kind.format));
  }
  const Json found = json.value("version", Json());
  if (!found.is_number_integer() || found < 1) {
    return BadInput(fmt::format("{}: expected a \"version\": a whole number >= 1", path));
  }
  if (found > kind.version) {
    return BadInput(
        fmt::format("{}: found version {}, expected at most {}", path, found.dump(), kind.version));
  }
  return {};
}

const Json& AbsentMember() {
  static const Json kNothing;
  return kNothing;
}

}  // namespace

Result<Json> ParseDocument(const std::string& path, std::string_view text, const DocumentKind& kind,
                           const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(Json json, ParseText(path, text, kind.name, /*unique=*/true, context));
  ETUDE_RETURN_IF_ERROR(CheckKind(path, json, kind));
  return json;
}

Result<Json> ReadDocument(const std::string& path, const DocumentKind& kind,
                          const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const std::string text, ReadWhole(path, kind.name, context));
  return ParseDocument(path, text, kind, context);
}

Result<Json> ReadForeignDocument(const std::string& path, std::string_view name,
                                 const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const std::string text, ReadWhole(path, name, context));
  return ParseText(path, text, name, /*unique=*/false, context);
}

JsonMembers::JsonMembers(std::string where, const Json& json, Status& status)
    : where_(std::move(where)), json_(&json), status_(&status) {
  if (!json.is_object() && !json.is_null()) RefuseAt(where_, "an object", json);
}

std::optional<std::string> JsonMembers::Text(const char* key) const {
  const Json* value = Find(key, &Json::is_string, "a text");
  return value == nullptr ? std::nullopt : std::optional(value->get<std::string>());
}

std::optional<bool> JsonMembers::Truth(const char* key) const {
  const Json* value = Find(key, &Json::is_boolean, "true or false");
  return value == nullptr ? std::nullopt : std::optional(value->get<bool>());
}

std::optional<int64_t> JsonMembers::Whole(const char* key, int64_t least, int64_t most) const {
  std::string expected = fmt::format("a whole number, {} to {}", least, most);
  if (most == INT64_MAX) expected = fmt::format("a whole number >= {}", least);
  if (least == INT64_MIN && most == INT64_MAX) expected = "a whole number";
  const Json* value = Find(key, &Json::is_number_integer, expected);
  if (value == nullptr) return std::nullopt;
  const bool fits = !value->is_number_unsigned() || value->get<uint64_t>() <= INT64_MAX;
  const int64_t number = fits ? value->get<int64_t>() : 0;
  if (fits && number >= least && number <= most) return number;
  RefuseAt(Place(key), expected, *value);
  return std::nullopt;
}

std::optional<double> JsonMembers::Number(const char* key) const {
  const Json* value = Find(key, &Json::is_number, "a number");
  if (value == nullptr) return std::nullopt;
  const double number = value->get<double>();
  if (std::isfinite(number)) return number;
  RefuseAt(Place(key), "a finite number", *value);
  return std::nullopt;
}

JsonMembers JsonMembers::Object(const char* key) const {
  const Json* value = Find(key, &Json::is_object, "an object");
  return {Place(key), value == nullptr ? AbsentMember() : *value, *status_};
}

const Json& JsonMembers::List(const char* key) const {
  const Json* value = Find(key, &Json::is_array, "a list");
  return value == nullptr ? AbsentMember() : *value;
}

std::vector<std::string> JsonMembers::Texts(const char* key) const {
  std::vector<std::string> texts;
  for (const Json& value : List(key)) {
    if (!value.is_string()) {
      RefuseAt(Place(key), "a list of texts", value);
      break;
    }
    texts.push_back(value.get<std::string>());
  }
  return texts;
}

std::vector<JsonMembers> JsonMembers::Objects(const char* key) const {
  std::vector<JsonMembers> objects;
  for (const Json& value : List(key)) {
    const std::string where = fmt::format("{}[{}]", Place(key), objects.size());
    if (!value.is_object()) {
      RefuseAt(where, "an object", value);
      break;
    }
    objects.emplace_back(where, value, *status_);
  }
  return objects;
}

std::string JsonMembers::Place(std::string_view key) const {
  return fmt::format("{}.{}", where_, key);
}

void JsonMembers::Refuse(const char* key, std::string_view expected) const {
  RefuseAt(Place(key), expected, Has(key) ? json_->at(key) : AbsentMember());
}

const Json* JsonMembers::Find(const char* key, bool (Json::*is)() const,
                              std::string_view expected) const {
  const auto it = json_->is_object() ? json_->find(key) : json_->end();
  if (it == json_->end() || it->is_null()) return nullptr;
  if (((*it).*is)()) return &*it;
  RefuseAt(Place(key), expected, *it);
  return nullptr;
}

void JsonMembers::RefuseAt(std::string_view where, std::string_view expected,
                           const Json& found) const {
  if (!*status_) return;
  constexpr size_t kShown = 40;
  std::string text = found.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  if (text.size() > kShown) text = text.substr(0, kShown) + "...";
  *status_ = BadInput(fmt::format("{}: found {}, expected {}", where, text, expected));
}

}  // namespace etude
