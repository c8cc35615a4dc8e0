#pragma once

#include <cstddef>
#include <istream>
#include <iterator>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "src/base/limits.h"

namespace etude {

// SAX handler that stops a parser at nesting deeper than `most`. Parsing does not recurse, but
// copying, comparing or writing the value does, and a deep value would overflow the stack. (With a
// parser callback instead, the parser would scan a whole list after each object in it.)
template <typename Json>
class JsonWatch : public nlohmann::json_sax<Json> {
 public:
  explicit JsonWatch(size_t most) : most_(most) {}

  bool too_deep() const { return depth_ > most_; }

  bool null() override { return Pass(); }
  bool boolean(bool) override { return Pass(); }
  bool number_integer(typename Json::number_integer_t) override { return Pass(); }
  bool number_unsigned(typename Json::number_unsigned_t) override { return Pass(); }
  bool number_float(typename Json::number_float_t, const typename Json::string_t&) override {
    return Pass();
  }
  bool string(typename Json::string_t&) override { return Pass(); }
  bool binary(typename Json::binary_t&) override { return Pass(); }
  bool start_object(size_t) override { return Enter(); }
  bool end_object() override { return Leave(); }
  bool start_array(size_t) override { return Enter(); }
  bool end_array() override { return Leave(); }
  bool key(typename Json::string_t& name) override {
    Key(name);
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 protected:
  // Returns the number of open objects and lists.
  size_t depth() const { return depth_; }

 private:
  virtual void Open() {}   // called at the beginning of an object or a list
  virtual void Close() {}  // called at its end, before Value
  virtual void Key(const std::string& /*name*/) {}
  virtual void Value() {}

  bool Enter() {
    ++depth_;
    Open();
    return !too_deep();
  }
  bool Leave() {
    --depth_;
    Close();
    return Pass();
  }
  bool Pass() {
    Value();
    return true;
  }

  size_t most_;
  size_t depth_ = 0;
};

// Parses untrusted JSON. Returns a discarded value if the text is invalid or nested deeper than
// `depth`.
template <typename Json>
Json ParseBounded(std::string_view text, size_t depth = Limits{}.depth) {
  JsonWatch<Json> watch(depth);
  if (!Json::sax_parse(text, &watch)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}
template <typename Json>
Json ParseBounded(std::istream& stream, size_t depth = Limits{}.depth) {
  return ParseBounded<Json>(std::string(std::istreambuf_iterator(stream), {}), depth);
}

}  // namespace etude
