#pragma once

#include <simdjson.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace etude {

// A JSON value flattened into one array, so that several values can be walked in parallel. Views
// point into the text parsed by simdjson and into its parser, and are valid as long as these.
class JsonTape {
 public:
  enum class Kind : uint8_t { kArray, kObject, kString, kNumber, kTrue, kFalse, kNull, kInvalid };

  struct Token {
    Kind kind = Kind::kNull;
    uint32_t next = 0;          // index of the token after this value
    uint32_t count = 0;         // kArray: number of elements; the first one is the next token
    const char* raw = nullptr;  // beginning of the value's text
    std::string_view text;      // kString: unescaped; kNumber and kInvalid: the token, trimmed
  };

  // Objects are kept as one token: walked values contain none.
  simdjson::error_code Read(simdjson::ondemand::value& value);
  void Clear() { tokens_.clear(); }

  bool empty() const { return tokens_.empty(); }
  const Token& operator[](size_t i) const { return tokens_[i]; }

 private:
  simdjson::error_code ReadArray(simdjson::ondemand::value& value, const char* raw);
  simdjson::error_code ReadScalar(simdjson::ondemand::value& value, std::string_view raw);

  std::vector<Token> tokens_;
};

}  // namespace etude
