#include "src/compat/python/py_json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "src/base/text/json_text.h"
#include "src/base/text/utf8.h"
#include "src/compat/chakra/json_bytes.h"
#include "src/compat/chakra/json_scanner.h"
#include "src/compat/python/py_number.h"
#include "src/compat/python/py_printable.h"

namespace etude::compat {
namespace {

uint32_t Hex4(const char* at) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value * 16 + static_cast<uint32_t>(HexValue(at[i]));
  return value;
}

bool IsHighSurrogate(uint32_t code) { return code >= 0xD800 && code < 0xDC00; }
bool IsLowSurrogate(uint32_t code) { return code >= 0xDC00 && code < 0xE000; }

// Decodes one character or escape of a string's inside; `at` must not be at its end.
uint32_t TakeCode(const char*& at, const char* end) {
  const auto byte = [&](ptrdiff_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(at[i])); };
  const uint32_t first = byte(0);
  if (first == '\\') {
    const char kind = at[1];
    at += 2;
    switch (kind) {
      case 'n': return '\n';
      case 'r': return '\r';
      case 't': return '\t';
      case 'b': return '\b';
      case 'f': return '\f';
      case 'u': break;
      default: return static_cast<uint32_t>(kind);
    }
    const uint32_t code = Hex4(at);
    at += 4;
    if (IsHighSurrogate(code) && end - at >= 6 && at[0] == '\\' && at[1] == 'u') {
      const uint32_t low = Hex4(at + 2);
      if (IsLowSurrogate(low)) {
        at += 6;
        return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      }
    }
    return code;
  }
  if (first < 0x80) {
    ++at;
    return first;
  }
  uint32_t code = 0;
  ptrdiff_t length = 0;
  if (first < 0xE0) {
    code = ((first & 0x1F) << 6) | (byte(1) & 0x3F);
    length = 2;
  } else if (first < 0xF0) {
    code = ((first & 0x0F) << 12) | ((byte(1) & 0x3F) << 6) | (byte(2) & 0x3F);
    length = 3;
  } else {
    code = ((first & 0x07) << 18) | ((byte(1) & 0x3F) << 12) | ((byte(2) & 0x3F) << 6) |
           (byte(3) & 0x3F);
    length = 4;
  }
  at += length;
  return code;
}

// Writes at most four bytes; requires reserved room.
void PutUtf8(uint32_t code, ByteBuffer& out) {
  char bytes[4];
  out.Put(std::string_view(bytes, utf8::Encode(code, bytes)));
}

// Returns the end of the string with quotes at `at`.
const char* StringEnd(const char* at, const char* end) {
  ++at;
  while (true) {
    at = FindStringStop(at, end);
    if (*at == '"') return at + 1;
    at += 2;
  }
}

// Returns the end of the number or word at `at`.
const char* ScalarEnd(const char* at, const char* end) {
  while (at != end && *at != ',' && *at != ']' && *at != '}' && *at != ':' && !IsBlank(*at)) ++at;
  return at;
}

bool IsFloatText(std::string_view number) {
  return std::ranges::any_of(number, [](char c) { return c == '.' || c == 'e' || c == 'E'; });
}

double ToDouble(std::string_view number) {
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc::result_out_of_range) return value;
  // Underflow or overflow, depending on the sign of the exponent.
  const size_t e = number.find_first_of("eE");
  const bool small = e != std::string_view::npos
                         ? number[e + 1] == '-'
                         : number.find_first_of("123456789") > number.find('.');
  const double limit = small ? 0.0 : HUGE_VAL;
  return number[0] == '-' ? -limit : limit;
}

// Appends the repr of a float without conversion, if possible: at most fifteen digits without
// exponent are their own repr.
bool AppendShortFloat(std::string_view text, ByteBuffer& out) {
  if (text.size() > 16) return false;
  const size_t sign = text[0] == '-' ? 1 : 0;
  const size_t point = text.find('.');
  if (point == std::string_view::npos) return false;
  for (size_t i = sign; i < text.size(); ++i) {
    if (i != point && !IsDigit(text[i])) return false;
  }
  if (text.size() - sign - 1 > 15) return false;
  if (text[sign] == '0' && text.size() - point > 2) {
    // Non-zero numbers below 0.0001 need an exponent.
    const size_t first = text.find_first_of("123456789");
    if (first != std::string_view::npos && first - point > 4) return false;
  }
  size_t size = text.size();
  while (text[size - 1] == '0' && text[size - 2] != '.') --size;
  out.Append(text.substr(0, size));
  return true;
}

void AppendFloat(double value, bool json, ByteBuffer& out) {
  if (json) {
    AppendJsonFloat(value, out);
  } else {
    AppendPyFloat(value, out);
  }
}

void AppendLiteral(std::string_view text, bool json, ByteBuffer& out) {
  const char last = text.back();
  if (!IsDigit(last)) {  // NaN, Infinity, -Infinity
    AppendFloat(last == 'N' ? NAN : text[0] == '-' ? -HUGE_VAL : HUGE_VAL, json, out);
  } else if (!IsFloatText(text)) {
    out.Append(text == "-0" ? std::string_view("0") : text);
  } else if (!AppendShortFloat(text, out)) {
    AppendFloat(ToDouble(text), json, out);
  }
}

// Appends json.dump's output for the inside of a string.
void AppendDumpInside(const char* at, const char* end, ByteBuffer& out) {
  const std::string_view inside(at, static_cast<size_t>(end - at));
  if (IsAsciiWithout(inside, '\\', '"')) {
    out.Append(inside);
    return;
  }
  out.Ensure(inside.size() * 6);
  while (at != end) PutJsonCode(TakeCode(at, end), out);
}

void AppendDecoded(const char* at, const char* end, ByteBuffer& out) {
  out.Ensure(static_cast<size_t>(end - at));
  while (at != end) PutUtf8(TakeCode(at, end), out);
}

// Appends repr() of the string with the given inside.
void AppendReprInside(const char* at, const char* end, ByteBuffer& out) {
  const std::string_view inside(at, static_cast<size_t>(end - at));
  if (IsAsciiWithout(inside, '\\', '\'')) {
    out.Ensure(inside.size() + 2);
    out.Put('\'');
    out.Put(inside);
    out.Put('\'');
    return;
  }
  bool has_single = false;
  bool has_double = false;
  for (const char* scan = at; scan != end;) {
    const uint32_t code = TakeCode(scan, end);
    has_single |= code == '\'';
    has_double |= code == '"';
  }
  const char quote = has_single && !has_double ? '"' : '\'';
  out.Ensure(inside.size() * 5 + 16);
  out.Put(quote);
  while (at != end) {
    const uint32_t code = TakeCode(at, end);
    if (code == '\\' || code == static_cast<uint32_t>(quote)) {
      out.Put('\\');
      out.Put(static_cast<char>(code));
    } else if (code == '\n') {
      out.Put("\\n");
    } else if (code == '\r') {
      out.Put("\\r");
    } else if (code == '\t') {
      out.Put("\\t");
    } else if (code >= ' ' && code != 0x7F && (code < 0x7F || IsPyPrintable(code))) {
      PutUtf8(code, out);
    } else if (code < 0x100) {
      out.Put("\\x");
      PutHex(code, 2, out);
    } else if (code < 0x10000) {
      out.Put("\\u");
      PutHex(code, 4, out);
    } else {
      out.Put("\\U");
      PutHex(code, 8, out);
    }
  }
  out.Put(quote);
}

// Prints checked text like Python: as json.dump(indent=4), or as repr().
template <bool kDump>
class Dumper {
 public:
  Dumper(std::string_view json, ByteBuffer& out)
      : at_(json.data()), end_(at_ + json.size()), out_(out) {}

  void Value(size_t level) {
    Blanks();
    switch (*at_) {
      case '{': Container<'}'>(level); break;
      case '[': Container<']'>(level); break;
      case '"': String(); break;
      case 't': Word(4, kDump ? "true" : "True"); break;
      case 'f': Word(5, kDump ? "false" : "False"); break;
      case 'n': Word(4, kDump ? "null" : "None"); break;
      default: Number();
    }
  }

 private:
  void Blanks() { at_ = SkipBlanksFrom(at_, end_); }

  void Word(ptrdiff_t length, std::string_view python) {
    at_ += length;
    out_.Append(python);
  }

  void Number() {
    const char* begin = at_;
    if (*at_ == '-') ++at_;
    while (at_ != end_ && IsDigit(*at_)) ++at_;
    const bool is_whole = at_ == end_ || *at_ == ',' || *at_ == ']' || IsBlank(*at_);
    if (is_whole && *begin != '-') {
      out_.Append({begin, static_cast<size_t>(at_ - begin)});
      return;
    }
    at_ = ScalarEnd(at_, end_);
    AppendLiteral({begin, static_cast<size_t>(at_ - begin)}, kDump, out_);
  }

  void String() {
    const char* begin = at_ + 1;
    at_ = StringEnd(at_, end_);
    if constexpr (!kDump) {
      AppendReprInside(begin, at_ - 1, out_);
    } else {
      out_.Append('"');
      AppendDumpInside(begin, at_ - 1, out_);
      out_.Append('"');
    }
  }

  // Appends `before` and, if each value has its own line, a line break.
  void Break(std::string_view before, size_t level) {
    const size_t blanks = kDump ? 4 * level : 0;
    out_.Ensure(before.size() + blanks + 1);
    if (!before.empty()) out_.Put(before);
    if constexpr (kDump) {
      out_.Put('\n');
      out_.PutSpaces(blanks);
    }
  }

  template <char kClose>
  void Container(size_t level) {
    const char open = *at_++;
    Blanks();
    if (*at_ == kClose) {
      ++at_;
      out_.Append(kClose == '}' ? "{}" : "[]");
      return;
    }
    Break({&open, 1}, level + 1);
    while (true) {
      if constexpr (kClose == '}') {
        Blanks();
        String();
        Blanks();
        ++at_;
        out_.Append(": ");
      }
      Value(level + 1);
      Blanks();
      if (*at_++ == kClose) break;
      Break(kDump ? "," : ", ", level + 1);
    }
    Break({}, level);
    out_.Append(kClose);
  }

  const char* at_;
  const char* end_;
  ByteBuffer& out_;
};

}  // namespace

std::optional<PyNumber> ParsePyNumber(std::string_view json) {
  if (json.empty() || !IsDigit(json.back())) return std::nullopt;
  if (IsFloatText(json)) {
    const double value = ToDouble(json);
    if (!std::isfinite(value)) return std::nullopt;
    return PyNumber::Float(value);
  }
  int64_t whole = 0;
  const auto [end, error] = std::from_chars(json.data(), json.data() + json.size(), whole);
  if (error != std::errc() || end != json.data() + json.size()) return std::nullopt;
  return PyNumber::Int(whole);
}

std::string DecodeString(std::string_view json) {
  ByteBuffer out;
  AppendDecoded(json.data() + 1, json.data() + json.size() - 1, out);
  return std::string(out.view());
}

bool HasSurrogate(std::string_view decoded) {
  for (size_t i = 0; i + 1 < decoded.size(); ++i) {
    if (decoded[i] == '\xED' && static_cast<uint8_t>(decoded[i + 1]) >= 0xA0) return true;
  }
  return false;
}

std::string WithoutRepeatedKeys(std::string_view json) {
  JsonScanner scanner(json, "", json.size());
  std::string out;
  std::string_view key;
  bool first = true;
  if (scanner.EnterArray()) {
    out = "[";
    while (scanner.NextElement(first)) {
      if (out.size() > 1) out += ',';
      out += WithoutRepeatedKeys(scanner.Value());
    }
    return out + "]";
  }
  if (!scanner.EnterObject()) return std::string(json);
  std::vector<std::pair<std::string, std::string_view>> members;
  std::vector<std::string> names;
  while (scanner.NextMember(first, key)) {
    std::string name = DecodeString(key);
    const std::string_view value = scanner.Value();
    const auto found = std::ranges::find(members, name, &decltype(members)::value_type::first);
    if (found != members.end()) {
      found->second = value;
    } else {
      members.emplace_back(std::move(name), value);
      ByteBuffer plain;
      AppendPyDumpString(key, plain);
      names.emplace_back(plain.view());
    }
  }
  out = "{";
  for (size_t i = 0; i < members.size(); ++i) {
    if (i != 0) out += ',';
    out += names[i] + ":" + WithoutRepeatedKeys(members[i].second);
  }
  return out + "}";
}

void AppendPyDump(std::string_view json, size_t level, ByteBuffer& out) {
  Dumper<true>(json, out).Value(level);
}

void AppendPyDumpString(std::string_view json, ByteBuffer& out) {
  out.Append('"');
  AppendDumpInside(json.data() + 1, json.data() + json.size() - 1, out);
  out.Append('"');
}

void AppendPyStr(std::string_view json, ByteBuffer& out) {
  if (json[0] == '"') {
    AppendDecoded(json.data() + 1, json.data() + json.size() - 1, out);
  } else {
    Dumper<false>(json, out).Value(0);
  }
}

void AppendPyFloat(double value, ByteBuffer& out) {
  if (std::isnan(value)) {
    out.Append("nan");
  } else if (std::isinf(value)) {
    out.Append(value < 0 ? "-inf" : "inf");
  } else {
    AppendJsonFloat(value, out);
  }
}

}  // namespace etude::compat
