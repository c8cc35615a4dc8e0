#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace etude {

// Item of a literal: a list is followed by its elements.
struct PyItem {
  enum class Kind : uint8_t { kNone, kBool, kInt, kDouble, kString, kBigInt, kList };

  Kind kind = Kind::kNone;
  bool flag = false;      // kBool
  uint32_t end = 0;       // index of the item after this one and its contents
  int64_t integer = 0;    // kInt
  double real = 0;        // kDouble
  std::string_view text;  // kString: its characters; kBigInt: its digits
};

// Literal as written by Python's str() and json.dumps: numbers, strings, None and null, True and
// true, False and false, nan, inf, NaN, Infinity, and nested lists; no dicts. Chakra stores a
// node's arguments as such texts. Views point into the parsed text or into the literal itself. Not
// thread-safe.
class PyLiteral {
 public:
  // Replaces the contents by those of `text`, nested at most `depth` deep. Returns false if `text`
  // is not exactly one literal.
  bool Parse(std::string_view text, size_t depth);

  const std::vector<PyItem>& items() const { return items_; }

 private:
  friend class PyParser;

  std::vector<PyItem> items_;
  std::deque<std::string> unescaped_;
};

// Appends `text` as Python's repr() of a string does.
void AppendPyString(std::string_view text, std::string& out);
// Appends `value` as Python's repr() of a float does: the shortest digits that read back the same.
void AppendPyDouble(double value, std::string& out);

}  // namespace etude
