#include "src/compat/chakra/json_scanner.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>

#include "src/compat/chakra/json_bytes.h"

namespace etude::compat {
namespace {

// Python's limit on the digits of an int (sys.int_info.default_max_str_digits).
constexpr size_t kMaxIntDigits = 4300;

}  // namespace

JsonScanner::JsonScanner(std::string_view text, std::string_view name, size_t max_depth)
    : begin_(text.data()),
      at_(begin_),
      end_(begin_ + text.size()),
      name_(name),
      max_depth_(max_depth) {}

void JsonScanner::Fail(std::string_view problem) {
  if (failed_) return;
  failed_ = true;
  problem_ = problem;
  problem_at_ = static_cast<size_t>(at_ - begin_);
}

Status JsonScanner::status() const {
  if (!failed_) return {};
  return BadInput(fmt::format("{}:byte {}: {}", name_, problem_at_, problem_));
}

void JsonScanner::SkipBlanks() { at_ = SkipBlanksFrom(at_, end_); }

const char* JsonScanner::Position() {
  SkipBlanks();
  return at_;
}

bool JsonScanner::Enter(char open) {
  if (failed_) return false;
  SkipBlanks();
  if (at_ == end_ || *at_ != open) return false;
  ++at_;
  ++depth_;
  return true;
}

bool JsonScanner::NextMember(bool& first, std::string_view& key) {
  if (failed_) return false;
  SkipBlanks();
  if (at_ != end_ && *at_ == '}') {
    ++at_;
    --depth_;
    return false;
  }
  if (!first) {
    if (at_ == end_ || *at_ != ',') {
      Fail("found something else, expected ',' or '}'");
      return false;
    }
    ++at_;
    SkipBlanks();
  }
  first = false;
  return ScanKey(key);
}

bool JsonScanner::ScanKey(std::string_view& key) {
  const char* begin = at_;
  if (at_ == end_ || *at_ != '"' || !ScanString()) {
    Fail("found something else, expected a key");
    return false;
  }
  key = {begin, static_cast<size_t>(at_ - begin)};
  SkipBlanks();
  if (at_ == end_ || *at_ != ':') {
    Fail("found something else, expected ':'");
    return false;
  }
  ++at_;
  return true;
}

bool JsonScanner::NextElement(bool& first) {
  if (failed_) return false;
  SkipBlanks();
  if (at_ != end_ && *at_ == ']') {
    ++at_;
    --depth_;
    return false;
  }
  if (!first) {
    if (at_ == end_ || *at_ != ',') {
      Fail("found something else, expected ',' or ']'");
      return false;
    }
    ++at_;
  }
  first = false;
  return true;
}

std::string_view JsonScanner::Value() {
  if (failed_) return {};
  SkipBlanks();
  const char* begin = at_;
  if (!ScanValue(depth_)) return {};
  return {begin, static_cast<size_t>(at_ - begin)};
}

void JsonScanner::ExpectEnd() {
  if (failed_) return;
  SkipBlanks();
  if (at_ != end_) Fail("found more, expected the end of the document");
}

bool JsonScanner::ScanValue(size_t depth) {
  if (at_ == end_) {
    Fail("found the end, expected a value");
    return false;
  }
  switch (*at_) {
    case '{': return ScanObject(depth);
    case '[': return ScanArray(depth);
    case '"': return ScanString();
    case 't': return ScanWord("true");
    case 'f': return ScanWord("false");
    case 'n': return ScanWord("null");
    case 'N': return ScanWord("NaN");
    case 'I': return ScanWord("Infinity");
    default: return ScanNumber();
  }
}

bool JsonScanner::ScanWord(std::string_view word) {
  if (static_cast<size_t>(end_ - at_) < word.size() ||
      std::memcmp(at_, word.data(), word.size()) != 0) {
    Fail("found something else, expected a value");
    return false;
  }
  at_ += word.size();
  return true;
}

bool JsonScanner::ScanString() {
  ++at_;
  last_is_plain_ = true;
  while (true) {
    at_ = FindStringStop(at_, end_);
    if (at_ == end_) break;
    if (*at_ == '"') {
      ++at_;
      return true;
    }
    if (*at_ != '\\') {
      Fail("found a control character in a string");
      return false;
    }
    last_is_plain_ = false;
    if (end_ - at_ < 2) break;
    constexpr std::string_view kEscapes = "\"\\/bfnrt";
    if (at_[1] == 'u') {
      if (end_ - at_ < 6) break;
      for (int i = 2; i < 6; ++i) {
        if (HexValue(at_[i]) < 0) {
          Fail("found an invalid \\u escape");
          return false;
        }
      }
      at_ += 6;
    } else if (kEscapes.find(at_[1]) != std::string_view::npos) {
      at_ += 2;
    } else {
      Fail("found an invalid escape");
      return false;
    }
  }
  at_ = end_;
  Fail("found the end in a string");
  return false;
}

bool JsonScanner::ScanNumber() {
  const char* begin = at_;
  if (*at_ == '-') {
    ++at_;
    if (at_ != end_ && *at_ == 'I') return ScanWord("Infinity");
  }
  const char* digits = at_;
  while (at_ != end_ && IsDigit(*at_)) ++at_;
  if (at_ == digits || (*digits == '0' && at_ - digits > 1)) {
    at_ = begin;
    Fail("found something else, expected a value");
    return false;
  }
  const auto digit_count = static_cast<size_t>(at_ - digits);
  bool is_float = false;
  if (at_ != end_ && *at_ == '.') {
    const char* fraction = ++at_;
    while (at_ != end_ && IsDigit(*at_)) ++at_;
    if (at_ == fraction) {
      Fail("found a number without digits behind its point");
      return false;
    }
    is_float = true;
  }
  if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
    ++at_;
    if (at_ != end_ && (*at_ == '+' || *at_ == '-')) ++at_;
    const char* exponent = at_;
    while (at_ != end_ && IsDigit(*at_)) ++at_;
    if (at_ == exponent) {
      Fail("found a number without an exponent behind its 'e'");
      return false;
    }
    is_float = true;
  }
  if (!is_float && digit_count > kMaxIntDigits) {
    Fail("found a whole number of more than 4300 digits, which Python refuses");
    return false;
  }
  return true;
}

bool JsonScanner::ScanArray(size_t depth) {
  if (depth >= max_depth_) {
    Fail("found nesting beyond the limit 'depth'");
    return false;
  }
  ++at_;
  SkipBlanks();
  if (at_ != end_ && *at_ == ']') {
    ++at_;
    return true;
  }
  while (true) {
    SkipBlanks();
    if (!ScanValue(depth + 1)) return false;
    SkipBlanks();
    if (at_ == end_ || (*at_ != ',' && *at_ != ']')) {
      Fail("found something else, expected ',' or ']'");
      return false;
    }
    if (*at_++ == ']') return true;
  }
}

bool JsonScanner::ScanObject(size_t depth) {
  if (depth >= max_depth_) {
    Fail("found nesting beyond the limit 'depth'");
    return false;
  }
  ++at_;
  SkipBlanks();
  if (at_ != end_ && *at_ == '}') {
    ++at_;
    return true;
  }
  KeySet keys;
  std::string_view key;
  while (true) {
    SkipBlanks();
    if (!ScanKey(key)) return false;
    irregular_ |= !keys.Add(key, last_is_plain_);
    SkipBlanks();
    if (!ScanValue(depth + 1)) return false;
    SkipBlanks();
    if (at_ == end_ || (*at_ != ',' && *at_ != '}')) {
      Fail("found something else, expected ',' or '}'");
      return false;
    }
    if (*at_++ == '}') return true;
  }
}

}  // namespace etude::compat
