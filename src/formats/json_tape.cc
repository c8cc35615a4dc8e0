#include "src/formats/json_tape.h"

#include "src/formats/json_walk.h"

namespace etude {

simdjson::error_code JsonTape::Read(simdjson::ondemand::value value) {
  const size_t at = tokens_.size();
  tokens_.emplace_back();
  const std::string_view raw = value.raw_json_token();
  tokens_[at].raw = raw.data();
  switch (raw.empty() ? '\0' : raw.front()) {
    case '[': {
      tokens_[at].kind = Kind::kArray;
      uint32_t count = 0;
      const auto read = [&](simdjson::ondemand::value child) {
        ++count;
        return Read(child);
      };
      if (const auto error = ForEachElement(value, read)) return error;
      tokens_[at].count = count;
      break;
    }
    case '{': tokens_[at].kind = Kind::kObject; break;
    case '"': {
      tokens_[at].kind = Kind::kString;
      if (const auto error = value.get_string().get(tokens_[at].text)) return error;
      break;
    }
    default: {
      const std::string_view token = ScalarToken(value);
      const bool numeric =
          !token.empty() && (token[0] == '-' || (token[0] >= '0' && token[0] <= '9'));
      tokens_[at].text = token;
      tokens_[at].kind = numeric            ? Kind::kNumber
                         : token == "true"  ? Kind::kTrue
                         : token == "false" ? Kind::kFalse
                         : token == "null"  ? Kind::kNull
                                            : Kind::kInvalid;
    }
  }
  tokens_[at].next = static_cast<uint32_t>(tokens_.size());
  return simdjson::SUCCESS;
}

}  // namespace etude
