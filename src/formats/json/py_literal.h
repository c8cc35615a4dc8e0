#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace etude {

// One item of a literal: a list is followed by its elements.
struct PyItem {
  enum class Kind : uint8_t { kNone, kBool, kInt, kDouble, kString, kBigInt, kList };

  Kind kind = Kind::kNone;
  bool flag = false;      // kBool
  uint32_t end = 0;       // index of the item after this one and all that it contains
  int64_t integer = 0;    // kInt
  double real = 0;        // kDouble
  std::string_view text;  // kString: its characters; kBigInt: its digits
};

// A literal as Python's str() and json.dumps write it: numbers, strings, None and null, True and
// true, False and false, nan, inf, NaN, Infinity, and nested lists; no dicts. Chakra keeps the
// arguments of a node as such texts. Views point into the text parsed, or into the literal itself.
// Not thread-safe.
class PyLiteral {
 public:
  // Forgets what it held and parses `text`, nested at most `depth` deep. False if `text` is
  // anything else or more than one literal.
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
