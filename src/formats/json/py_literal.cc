#include "src/formats/json/py_literal.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "src/base/text/ascii.h"
#include "src/base/text/utf8.h"

namespace etude {
namespace {

void AppendUtf8(uint32_t code, std::string& out) {
  char bytes[4];
  out.append(bytes, utf8::Encode(code, bytes));
}

struct CodeRange {
  uint32_t first;
  uint32_t last;
};

// Code points beyond ASCII that Python considers unprintable: separators, format characters,
// surrogates and private use. Unassigned ones count as printable.
constexpr auto kUnprintable = std::to_array<CodeRange>({
    {0x80, 0xA0},
    {0xAD, 0xAD},
    {0x600, 0x605},
    {0x61C, 0x61C},
    {0x6DD, 0x6DD},
    {0x70F, 0x70F},
    {0x1680, 0x1680},
    {0x180E, 0x180E},
    {0x2000, 0x200F},
    {0x2028, 0x202F},
    {0x205F, 0x206F},
    {0x3000, 0x3000},
    {0xD800, 0xF8FF},
    {0xFEFF, 0xFEFF},
    {0xFFF0, 0xFFFB},
    {0xFFFE, 0xFFFF},
    {0xE0000, 0xE0FFF},
    {0xF0000, 0x10FFFF},
});

bool IsPrintable(uint32_t code) {
  if (code < 0x80) return code >= 0x20 && code != 0x7F;
  return std::ranges::none_of(kUnprintable, [&](const CodeRange& range) {
    return code >= range.first && code <= range.last;
  });
}

void AppendHex(uint32_t code, int digits, std::string& out) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) {
    out.push_back("0123456789abcdef"[(code >> shift) & 0xF]);
  }
}

}  // namespace

// Parser without recursion: open lists are on an explicit stack.
class PyParser {
 public:
  PyParser(std::string_view text, size_t depth, PyLiteral& literal)
      : text_(text), depth_(depth), literal_(literal) {}

  bool Run() {
    while (true) {
      SkipBlanks();
      if (position_ == text_.size()) return false;
      if (text_[position_] == '[') {
        if (open_.size() >= depth_) return false;
        ++position_;
        open_.push_back(Add(PyItem::Kind::kList));
        SkipBlanks();
        if (position_ == text_.size() || text_[position_] != ']') continue;
      } else if (!Scalar()) {
        return false;
      }
      switch (AfterItem()) {
        case After::kElement: break;
        case After::kEnd: return true;
        case After::kWrong: return false;
      }
    }
  }

 private:
  enum class After { kElement, kEnd, kWrong };

  // Closes the lists that end here, and takes the comma before the next element.
  After AfterItem() {
    while (true) {
      SkipBlanks();
      if (open_.empty()) return position_ == text_.size() ? After::kEnd : After::kWrong;
      if (position_ == text_.size()) return After::kWrong;
      const char c = text_[position_++];
      if (c == ',') return After::kElement;
      if (c != ']') return After::kWrong;
      items()[open_.back()].end = static_cast<uint32_t>(items().size());
      open_.pop_back();
    }
  }

  bool Scalar() {
    const char c = text_[position_];
    if (c == '\'' || c == '"') return String(c);
    if (c == '-' || c == '+' || c == '.' || IsDigit(c)) {
      if (const auto next = text_.substr(position_ + 1); c == '-' && !next.empty()) {
        if (next[0] == 'i' || next[0] == 'I') return ++position_, Word(true);
      }
      return Number();
    }
    return Word(false);
  }

  bool Word(bool negative) {
    size_t end = position_;
    while (end < text_.size() && IsLetter(text_[end])) ++end;
    const std::string_view word = text_.substr(position_, end - position_);
    position_ = end;
    if (word == "inf" || word == "Infinity") {
      const double infinity = std::numeric_limits<double>::infinity();
      return AddDouble(negative ? -infinity : infinity);
    }
    if (negative) return false;
    if (word == "nan" || word == "NaN") return AddDouble(std::numeric_limits<double>::quiet_NaN());
    if (word == "None" || word == "null") return Add(PyItem::Kind::kNone), true;
    const bool yes = word == "True" || word == "true";
    if (!yes && word != "False" && word != "false") return false;
    items()[Add(PyItem::Kind::kBool)].flag = yes;
    return true;
  }

  bool Number() {
    const char* first = text_.data() + position_;
    const char* last = text_.data() + text_.size();
    size_t end = position_ + (text_[position_] == '-' ? 1 : 0);
    const size_t digits = end;
    while (end < text_.size() && IsDigit(text_[end])) ++end;
    const bool is_integer =
        end > digits &&
        (end == text_.size() || (text_[end] != '.' && text_[end] != 'e' && text_[end] != 'E'));
    if (is_integer) {
      int64_t value = 0;
      const auto [stop, error] = std::from_chars(first, last, value);
      const std::string_view all = text_.substr(position_, end - position_);
      position_ = end;
      if (error == std::errc::result_out_of_range) {
        items()[Add(PyItem::Kind::kBigInt)].text = all;
        return true;
      }
      if (error != std::errc()) return false;
      items()[Add(PyItem::Kind::kInt)].integer = value;
      return true;
    }
    double value = 0;
    const auto [stop, error] = std::from_chars(first, last, value);
    if (error != std::errc()) return false;
    position_ = static_cast<size_t>(stop - text_.data());
    return AddDouble(value);
  }

  bool String(char quote) {
    const size_t begin = ++position_;
    const size_t plain = text_.find_first_of(quote == '\'' ? "'\\" : "\"\\", begin);
    if (plain == std::string_view::npos) return false;
    if (text_[plain] == quote) {
      items()[Add(PyItem::Kind::kString)].text = text_.substr(begin, plain - begin);
      position_ = plain + 1;
      return true;
    }
    std::string& out = literal_.unescaped_.emplace_back();
    while (position_ < text_.size()) {
      const char c = text_[position_++];
      if (c == quote) {
        items()[Add(PyItem::Kind::kString)].text = out;
        return true;
      }
      if (c != '\\') {
        out.push_back(c);
      } else if (!Escape(out)) {
        return false;
      }
    }
    return false;
  }

  bool Escape(std::string& out) {
    if (position_ == text_.size()) return false;
    const char c = text_[position_++];
    switch (c) {
      case '\\':
      case '\'':
      case '"':
      case '/': out.push_back(c); return true;
      case 'n': out.push_back('\n'); return true;
      case 't': out.push_back('\t'); return true;
      case 'r': out.push_back('\r'); return true;
      case 'b': out.push_back('\b'); return true;
      case 'f': out.push_back('\f'); return true;
      case 'x': return CodePoint(2, out);
      case 'u': return CodePoint(4, out);
      case 'U': return CodePoint(8, out);
      default: return false;
    }
  }

  // Joins surrogate pairs, as JSON writes them, to one code point; refuses lone ones.
  bool CodePoint(size_t digits, std::string& out) {
    uint32_t code = 0;
    if (!Hex(digits, code)) return false;
    if (code >= 0xD800 && code < 0xDC00 && text_.substr(position_).starts_with("\\u")) {
      uint32_t low = 0;
      position_ += 2;
      if (!Hex(4, low) || low < 0xDC00 || low > 0xDFFF) return false;
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return false;
    AppendUtf8(code, out);
    return true;
  }

  bool Hex(size_t digits, uint32_t& code) {
    if (text_.size() - position_ < digits) return false;
    const char* first = text_.data() + position_;
    const auto [stop, error] = std::from_chars(first, first + digits, code, 16);
    position_ += digits;
    return error == std::errc() && stop == first + digits;
  }

  bool AddDouble(double value) {
    items()[Add(PyItem::Kind::kDouble)].real = value;
    return true;
  }

  uint32_t Add(PyItem::Kind kind) {
    PyItem item;
    item.kind = kind;
    item.end = static_cast<uint32_t>(items().size() + 1);
    items().push_back(item);
    return item.end - 1;
  }

  void SkipBlanks() {
    while (position_ < text_.size() && IsBlank(text_[position_])) ++position_;
  }

  std::vector<PyItem>& items() { return literal_.items_; }

  std::string_view text_;
  size_t depth_;
  PyLiteral& literal_;
  size_t position_ = 0;
  std::vector<uint32_t> open_;  // open lists
};

bool PyLiteral::Parse(std::string_view text, size_t depth) {
  items_.clear();
  unescaped_.clear();
  // Positions and items are counted in 32 bits; every item takes at least one byte.
  if (text.size() >= std::numeric_limits<uint32_t>::max()) return false;
  return PyParser(text, depth, *this).Run();
}

void AppendPyString(std::string_view text, std::string& out) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const bool has_double = text.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  out.push_back(quote);
  const auto is_plain = [quote](char c) { return c >= ' ' && c <= '~' && c != quote && c != '\\'; };
  while (!text.empty()) {
    const auto plain = static_cast<size_t>(std::ranges::find_if_not(text, is_plain) - text.begin());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    // Invalid UTF-8 is printed byte by byte.
    const auto [code, length] = utf8::First(text).value_or(
        utf8::Point{.code = static_cast<uint8_t>(text.front()), .length = 1});
    const std::string_view bytes = text.substr(0, length);
    text.remove_prefix(length);
    if (code == '\\' || code == static_cast<uint32_t>(quote)) {
      out.push_back('\\');
      out += bytes;
    } else if (IsPrintable(code)) {
      out += bytes;
    } else if (code == '\n') {
      out += "\\n";
    } else if (code == '\r') {
      out += "\\r";
    } else if (code == '\t') {
      out += "\\t";
    } else if (code < 0x100) {
      out += "\\x";
      AppendHex(code, 2, out);
    } else if (code < 0x10000) {
      out += "\\u";
      AppendHex(code, 4, out);
    } else {
      out += "\\U";
      AppendHex(code, 8, out);
    }
  }
  out.push_back(quote);
}

void AppendPyDouble(double value, std::string& out) {
  if (std::isnan(value)) {
    out += "nan";
    return;
  }
  if (std::isinf(value)) {
    out += value < 0 ? "-inf" : "inf";
    return;
  }
  std::array<char, 32> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                          std::chars_format::scientific);
  const std::string_view text(buffer.data(), static_cast<size_t>(end - buffer.data()));
  const size_t e = text.find('e');
  int exponent = 0;
  const size_t sign = text[e + 1] == '+' ? 1 : 0;
  std::from_chars(text.data() + e + 1 + sign, text.data() + text.size(), exponent);
  std::array<char, 20> digit_buffer{};  // 17 digits are enough for any double
  size_t count = 0;
  for (const char c : text.substr(0, e)) {
    if (IsDigit(c)) digit_buffer[count++] = c;
  }
  const std::string_view digits(digit_buffer.data(), count);
  if (text[0] == '-') out.push_back('-');
  if (exponent < -4 || exponent >= 16) {
    out.push_back(digits[0]);
    if (count > 1) out.append(1, '.').append(digits.substr(1));
    out += exponent < 0 ? "e-" : "e+";
    const int size = exponent < 0 ? -exponent : exponent;
    if (size < 10) out.push_back('0');
    out += std::to_string(size);
  } else if (exponent < 0) {
    out += "0.";
    out.append(static_cast<size_t>(-exponent - 1), '0').append(digits);
  } else {
    const size_t whole = static_cast<size_t>(exponent) + 1;
    out += digits.substr(0, whole);
    if (whole > count) out.append(whole - count, '0');
    out.push_back('.');
    out += whole < count ? digits.substr(whole) : std::string_view("0");
  }
}

}  // namespace etude
