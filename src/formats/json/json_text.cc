#include "src/formats/json/json_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include "src/base/text/ascii.h"
#include "src/base/text/utf8.h"

namespace etude {
namespace {

std::optional<uint32_t> Hex4(std::string_view text) {
  if (text.size() < 4) return std::nullopt;
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + 4, value, 16);
  if (error != std::errc() || end != text.data() + 4) return std::nullopt;
  return value;
}

bool IsSimpleEscape(char c) {
  return std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos;
}

// Checks one value in a loop over its tokens, with a stack of the open brackets' closers.
class Checker {
 public:
  explicit Checker(std::string_view text) : text_(text) {}

  JsonCheck Check() {
    check_.valid = ReadValue();
    SkipBlanks();
    check_.valid = check_.valid && position_ == text_.size();
    return check_;
  }

  // Reads one value; returns false if it is invalid.
  bool ReadValue() {
    bool valid = Value();
    while (valid && !closers_.empty()) valid = AfterValue();
    return valid;
  }
  size_t position() const { return position_; }
  uint64_t non_finite() const { return check_.non_finite; }

 private:
  void SkipBlanks() {
    while (position_ < text_.size() && IsBlank(text_[position_])) ++position_;
  }
  bool Accept(char c) {
    if (position_ >= text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }
  bool AcceptWord(std::string_view word) {
    if (!text_.substr(position_).starts_with(word)) return false;
    position_ += word.size();
    return true;
  }

  // Opens containers until it has read a scalar or an empty container.
  bool Value() {
    while (true) {
      SkipBlanks();
      if (Accept('[')) {
        SkipBlanks();
        if (Accept(']')) return true;
        closers_.push_back(']');
      } else if (Accept('{')) {
        SkipBlanks();
        if (Accept('}')) return true;
        closers_.push_back('}');
        if (!Key()) return false;
      } else {
        return Scalar();
      }
    }
  }

  bool AfterValue() {
    SkipBlanks();
    if (Accept(closers_.back())) {
      closers_.pop_back();
      return true;
    }
    if (!Accept(',')) return false;
    return (closers_.back() == ']' || Key()) && Value();
  }

  bool Key() {
    SkipBlanks();
    if (!String()) return false;
    SkipBlanks();
    return Accept(':');
  }

  bool Scalar() {
    if (position_ >= text_.size()) return false;
    if (text_[position_] == '"') return String();
    if (AcceptWord("true") || AcceptWord("false") || AcceptWord("null")) return true;
    if (AcceptWord("NaN") || AcceptWord("Infinity") || AcceptWord("-Infinity")) {
      ++check_.non_finite;
      return true;
    }
    return Number();
  }

  bool String() {
    if (!Accept('"')) return false;
    while (position_ < text_.size()) {
      const char c = text_[position_++];
      if (c == '"') return true;
      if (static_cast<unsigned char>(c) < 0x20) return false;
      if (c == '\\' && !Escape()) return false;
    }
    return false;
  }

  bool Escape() {
    if (position_ >= text_.size()) return false;
    const char c = text_[position_++];
    if (c != 'u') return IsSimpleEscape(c);
    const bool valid = Hex4(text_.substr(position_)).has_value();
    position_ += valid ? 4 : 0;
    return valid;
  }

  size_t Digits() {
    const size_t begin = position_;
    while (position_ < text_.size() && IsDigit(text_[position_])) ++position_;
    return position_ - begin;
  }

  bool Number() {
    Accept('-');
    const bool leading_zero = position_ < text_.size() && text_[position_] == '0';
    const size_t whole = Digits();
    if (whole == 0 || (leading_zero && whole > 1)) return false;
    if (Accept('.') && Digits() == 0) return false;
    if (Accept('e') || Accept('E')) {
      if (!Accept('+')) Accept('-');
      if (Digits() == 0) return false;
    }
    return true;
  }

  std::string_view text_;
  size_t position_ = 0;
  std::string closers_;
  JsonCheck check_;
};

constexpr std::string_view kReplacementEscape = "\\ufffd";
constexpr std::string_view kReplacementUtf8 = "\xEF\xBF\xBD";

void AppendControl(std::string& out, char c) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += "\\u00";
  out += kHex[static_cast<unsigned char>(c) >> 4];
  out += kHex[static_cast<unsigned char>(c) & 0xF];
}

// Copies strings and repairs them.
class Repairer {
 public:
  Repairer(std::string_view text, Stats& stats) : text_(text), stats_(stats) {}

  std::string Repair() {
    out_.reserve(text_.size() + text_.size() / 8);
    while (!text_.empty()) {
      const char c = text_.front();
      if (c == '"') in_string_ = !in_string_;
      if (!in_string_ || c == '"') {
        Take(1);
      } else if (c == '\\') {
        Escape();
      } else if (static_cast<unsigned char>(c) < 0x20) {
        AppendControl(out_, c);
        Drop(1, Stat::kRepairedEscape);
      } else if (const auto point = utf8::First(text_)) {
        Take(point->length);
      } else {
        out_ += kReplacementUtf8;
        Drop(1, Stat::kRepairedUtf8);
      }
    }
    return std::move(out_);
  }

 private:
  void Take(size_t count) {
    out_ += text_.substr(0, count);
    text_.remove_prefix(count);
  }
  void Drop(size_t count, Stat stat) {
    text_.remove_prefix(count);
    stats_.Count(stat);
  }

  // Handles an escape at the beginning of text_; the backslash does not end the text of a closed
  // string.
  void Escape() {
    if (text_.size() > 1 && IsSimpleEscape(text_[1])) return Take(2);
    const auto unit = text_.size() > 1 && text_[1] == 'u' ? Hex4(text_.substr(2)) : std::nullopt;
    if (!unit) {
      out_ += "\\\\";
      return Drop(1, Stat::kRepairedEscape);
    }
    const bool high = *unit >= 0xD800 && *unit <= 0xDBFF;
    const bool low = *unit >= 0xDC00 && *unit <= 0xDFFF;
    if (!high && !low) return Take(6);
    const std::string_view next = text_.substr(6);
    const auto second = next.starts_with("\\u") ? Hex4(next.substr(2)) : std::nullopt;
    if (high && second && *second >= 0xDC00 && *second <= 0xDFFF) return Take(12);
    out_ += kReplacementEscape;
    Drop(6, Stat::kRepairedUtf8);
  }

  std::string_view text_;
  Stats& stats_;
  std::string out_;
  bool in_string_ = false;
};

// Parses the most frequent numbers: digits without a sign, too few to overflow.
std::optional<int64_t> ShortNumber(std::string_view digits) {
  constexpr size_t kMostShown = 18;
  if (digits.empty() || digits.size() > kMostShown) return std::nullopt;
  int64_t value = 0;
  for (const char c : digits) {
    if (!IsDigit(c)) return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

template <typename T>
std::optional<T> WholeNumber(std::string_view token) {
  if (const auto number = ShortNumber(token); number && std::in_range<T>(*number)) {
    if (token.size() > 1 && token.front() == '0') return std::nullopt;
    return static_cast<T>(*number);
  }
  token = Trimmed(token);
  T value = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (error != std::errc() || end != token.data() + token.size()) return std::nullopt;
  const std::string_view digits = token.substr(token.front() == '-' ? 1 : 0);
  if (digits.size() > 1 && digits.front() == '0') return std::nullopt;
  return value;
}

// Decimal number: digits_ times ten to the exponent.
struct Decimal {
  bool negative = false;
  std::string_view whole;
  std::string_view fraction;
  int64_t exponent = 0;
};

std::optional<Decimal> DecimalIn(std::string_view token) {
  Decimal decimal;
  if (token.starts_with('-')) {
    decimal.negative = true;
    token.remove_prefix(1);
  }
  const auto digits = [&] {
    const size_t count = std::min(token.find_first_not_of("0123456789"), token.size());
    const std::string_view run = token.substr(0, count);
    token.remove_prefix(count);
    return run;
  };
  decimal.whole = digits();
  if (decimal.whole.empty()) return std::nullopt;
  if (token.starts_with('.')) {
    token.remove_prefix(1);
    decimal.fraction = digits();
    if (decimal.fraction.empty()) return std::nullopt;
  }
  if (token.starts_with('e') || token.starts_with('E')) {
    token.remove_prefix(1);
    const bool minus = token.starts_with('-');
    if (minus || token.starts_with('+')) token.remove_prefix(1);
    if (token.empty()) return std::nullopt;
    token.remove_prefix(std::min(token.find_first_not_of('0'), token.size() - 1));
    const auto exponent = WholeNumber<uint32_t>(token);
    if (!exponent) return std::nullopt;
    decimal.exponent = minus ? -int64_t{*exponent} : int64_t{*exponent};
    token = {};
  }
  if (!token.empty()) return std::nullopt;
  return decimal;
}

}  // namespace

JsonCheck CheckJson(std::string_view text) { return Checker(text).Check(); }

std::optional<JsonPrefix> JsonValueAt(std::string_view text) {
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  Checker checker(text);
  if (!checker.ReadValue()) return std::nullopt;
  return JsonPrefix{.text = text.substr(0, checker.position()), .non_finite = checker.non_finite()};
}

void RepairJsonStrings(std::string& text, Stats& stats) { text = Repairer(text, stats).Repair(); }

void AppendJsonString(std::string_view text, std::string& out) {
  const auto is_plain = [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\';
  };
  out += '"';
  while (true) {
    const auto plain = static_cast<size_t>(std::ranges::find_if_not(text, is_plain) - text.begin());
    out += text.substr(0, plain);
    if (plain == text.size()) break;
    const char c = text[plain];
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else {
      AppendControl(out, c);
    }
    text.remove_prefix(plain + 1);
  }
  out += '"';
}

std::string JsonString(std::string_view text) {
  std::string out;
  AppendJsonString(text, out);
  return out;
}

std::string MicrosText(Nanos time) {
  constexpr auto kPerMicro = static_cast<uint64_t>(kNanosPerMicro);
  // The magnitude of INT64_MIN does not fit int64_t.
  const bool negative = time.count < 0;
  const auto bits = static_cast<uint64_t>(time.count);
  const uint64_t nanos = negative ? 0 - bits : bits;
  std::string text = negative ? "-" : "";
  text += std::to_string(nanos / kPerMicro);
  const uint64_t rest = nanos % kPerMicro;
  if (rest == 0) return text;
  std::string digits = std::to_string(rest + kPerMicro).substr(1);
  while (digits.back() == '0') digits.pop_back();
  return text + "." + digits;
}

std::optional<int64_t> JsonInt(std::string_view token) { return WholeNumber<int64_t>(token); }
std::optional<uint64_t> JsonUint(std::string_view token) { return WholeNumber<uint64_t>(token); }

JsonTime JsonMicros(std::string_view token) {
  // Fast path for the profiler's format: whole microseconds, or three decimals.
  constexpr size_t kDecimals = 3;
  const size_t point_at = token.find('.');
  if (point_at != std::string_view::npos && token.size() == point_at + 1 + kDecimals) {
    const auto whole = ShortNumber(token.substr(0, point_at));
    const auto fraction = ShortNumber(token.substr(point_at + 1));
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 1000 - 1;
    if (whole && fraction && *whole <= kMost) return {.nanos = Nanos{*whole * 1000 + *fraction}};
  }
  token = Trimmed(token);
  const auto decimal = DecimalIn(token);
  if (!decimal) return {};
  // Nanoseconds are the digits before the point, after moving it by three and by the exponent.
  const int64_t point =
      std::ssize(decimal->whole) + decimal->exponent + 3;  // digits before the new point
  const int64_t digits = std::ssize(decimal->whole) + std::ssize(decimal->fraction);
  const auto digit = [&](int64_t i) {
    if (i < 0 || i >= digits) return 0;
    const auto at = static_cast<size_t>(i);
    const char c = at < decimal->whole.size() ? decimal->whole[at]
                                              : decimal->fraction[at - decimal->whole.size()];
    return c - '0';
  };
  JsonTime time;
  int64_t nanos = 0;
  for (int64_t i = 0; i < point; ++i) {
    if (i >= digits && nanos == 0) break;  // only zeros follow
    if (__builtin_mul_overflow(nanos, 10, &nanos)) return {};
    if (__builtin_add_overflow(nanos, digit(i), &nanos)) return {};
  }
  // Rounds the digits after the point, halves to even.
  bool more = false;
  for (int64_t i = std::max<int64_t>(point + 1, 0); i < digits; ++i) more = more || digit(i) != 0;
  const int tenth = digit(point);
  const int picos = tenth * 100 + digit(point + 1) * 10 + digit(point + 2);
  time.rounded = picos != 0 && picos != 999;
  const bool up = tenth > 5 || (tenth == 5 && (more || nanos % 2 != 0));
  if (up && __builtin_add_overflow(nanos, 1, &nanos)) return {};
  time.nanos = Nanos{decimal->negative ? -nanos : nanos};
  return time;
}

}  // namespace etude
