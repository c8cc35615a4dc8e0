#include "src/formats/json/json_tape.h"

#include "src/formats/json/json_walk.h"

namespace etude {

simdjson::error_code JsonTape::Read(simdjson::ondemand::value& value) {
  const std::string_view raw = value.raw_json_token();
  return raw.starts_with('[') ? ReadArray(value, raw.data()) : ReadScalar(value, raw);
}

simdjson::error_code JsonTape::ReadArray(simdjson::ondemand::value& value, const char* raw) {
  const size_t at = tokens_.size();
  tokens_.push_back({.kind = Kind::kArray, .raw = raw});
  uint32_t count = 0;
  const auto read = [&](simdjson::ondemand::value& child) {
    ++count;
    return Read(child);
  };
  if (const auto error = ForEachElement(value, read)) return error;
  tokens_[at].count = count;
  tokens_[at].next = static_cast<uint32_t>(tokens_.size());
  return simdjson::SUCCESS;
}

simdjson::error_code JsonTape::ReadScalar(simdjson::ondemand::value& value, std::string_view raw) {
  Token token{.next = static_cast<uint32_t>(tokens_.size() + 1), .raw = raw.data()};
  switch (raw.empty() ? '\0' : raw.front()) {
    case '{': token.kind = Kind::kObject; break;
    case '"': {
      token.kind = Kind::kString;
      if (const auto error = value.get_string().get(token.text)) return error;
      break;
    }
    default: {
      const std::string_view text = TrimmedToken(raw);
      const bool numeric = !text.empty() && (text[0] == '-' || (text[0] >= '0' && text[0] <= '9'));
      token.text = text;
      token.kind = numeric             ? Kind::kNumber
                   : Is(text, "true")  ? Kind::kTrue
                   : Is(text, "false") ? Kind::kFalse
                   : Is(text, "null")  ? Kind::kNull
                                       : Kind::kInvalid;
    }
  }
  tokens_.push_back(token);
  return simdjson::SUCCESS;
}

}  // namespace etude
