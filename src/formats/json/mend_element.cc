#include "src/formats/json/mend_element.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "src/base/text/ascii.h"

namespace etude {
namespace {

constexpr size_t kNoPlace = std::string_view::npos;

// Answer that may need bytes not yet available.
enum class Answer : uint8_t { kNo, kYes, kMore };

// Bytes so far, and whether more may come.
struct JsonBytes {
  std::string_view text;
  bool last = false;

  size_t SkipBlanks(size_t at) const {
    while (at < text.size() && IsBlank(text[at])) ++at;
    return at;
  }
  bool ends_at(size_t at) const { return at >= text.size(); }
  // Returns the meaning of the end of the bytes where something must, or may, follow.
  Answer AtEnd(bool may_end) const {
    if (!last) return Answer::kMore;
    return may_end ? Answer::kYes : Answer::kNo;
  }
  // Returns true if the quotation mark at `at` has an odd number of backslashes before it.
  bool IsEscaped(size_t at, size_t begin) const {
    size_t backslashes = 0;
    while (at - backslashes > begin && text[at - backslashes - 1] == '\\') ++backslashes;
    return backslashes % 2 != 0;
  }
  // Returns the first unescaped quotation mark from `at` on.
  size_t StringEnd(size_t at) const {
    while (at < text.size()) {
      if (text[at] == '"') return at;
      at += text[at] == '\\' ? 2 : 1;
    }
    return kNoPlace;
  }
};

struct KeyAt {
  Answer answer = Answer::kNo;
  std::string_view key{};
};

// Finds a short key in quotes and its colon.
KeyAt FindKey(const JsonBytes& bytes, size_t at) {
  constexpr size_t kLongest = 64;
  at = bytes.SkipBlanks(at);
  if (bytes.ends_at(at)) return {bytes.AtEnd(false)};
  if (bytes.text[at] != '"') return {Answer::kNo};
  const size_t begin = at + 1;
  const size_t length = bytes.text.substr(begin, kLongest + 1).find_first_of("\"\\\n");
  if (length == kNoPlace) {
    return {bytes.text.size() - begin <= kLongest ? bytes.AtEnd(false) : Answer::kNo};
  }
  at = begin + length;
  if (bytes.text[at] != '"' || length == 0) return {Answer::kNo};
  at = bytes.SkipBlanks(at + 1);
  if (bytes.ends_at(at)) return {bytes.AtEnd(false)};
  if (bytes.text[at] != ':') return {Answer::kNo};
  return {Answer::kYes, bytes.text.substr(begin, length)};
}

bool Contains(std::span<const std::string_view> words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// Returns whether an element of the list begins at `at`.
Answer BeginsElement(const JsonBytes& bytes, size_t at, const ElementRules& rules) {
  if (bytes.text[at] != '{') return Answer::kNo;
  at = bytes.SkipBlanks(at + 1);
  if (bytes.ends_at(at)) return bytes.AtEnd(true);
  if (bytes.text[at] == '}') return Answer::kYes;
  const KeyAt key = FindKey({bytes.text}, at);
  if (key.answer == Answer::kMore) return bytes.AtEnd(true);  // truncated inside its first key
  if (key.answer == Answer::kNo) return Answer::kNo;
  return Contains(rules.keys, key.key) ? Answer::kYes : Answer::kNo;
}

// Returns whether the list continues, or ends, at `at`, after an element.
Answer ListGoesOn(const JsonBytes& bytes, size_t at, const ElementRules& rules) {
  at = bytes.SkipBlanks(at);
  while (!bytes.ends_at(at) && bytes.text[at] == ',') at = bytes.SkipBlanks(at + 1);
  if (bytes.ends_at(at)) return bytes.AtEnd(true);
  if (bytes.text[at] == ']') return Answer::kYes;
  return BeginsElement(bytes, at, rules);
}

// Returns the latest possible end of the element: there the list continues or, if `may_be_last`,
// ends. kNoPlace if it is not in the bytes.
size_t LatestEnd(const JsonBytes& bytes, std::string_view first_key, const ElementRules& rules,
                 bool may_be_last = true) {
  for (size_t at = bytes.text.find('}'); at != kNoPlace; at = bytes.text.find('}', at + 1)) {
    size_t next = bytes.SkipBlanks(at + 1);
    bool after_comma = false;
    while (!bytes.ends_at(next) && bytes.text[next] == ',') {
      after_comma = true;
      next = bytes.SkipBlanks(next + 1);
    }
    if (bytes.ends_at(next)) continue;
    if (bytes.text[next] == '{') {
      const KeyAt key = FindKey(bytes, next + 1);
      if (key.answer != Answer::kYes) continue;
      if (key.key == first_key || key.key == rules.first) return at + 1;
    } else if (may_be_last && bytes.text[next] == ']' && !after_comma) {
      next = bytes.SkipBlanks(next + 1);
      if (bytes.ends_at(next)) {
        if (bytes.last) return at + 1;
      } else if (bytes.text[next] == '}') {
        if (bytes.last && bytes.ends_at(bytes.SkipBlanks(next + 1))) return at + 1;
      } else if (bytes.text[next] == ',') {
        const KeyAt key = FindKey(bytes, next + 1);
        if (key.answer == Answer::kYes && !Contains(rules.keys, key.key)) return at + 1;
      }
    }
  }
  return kNoPlace;
}

// One way to read an element. Copied if there are alternatives.
class Walk {
 public:
  enum class End : uint8_t { kClosed, kFailed, kMore, kAtName };

  Walk(const JsonBytes& bytes, size_t max_depth) : bytes_(&bytes), max_depth_(max_depth) {}

  // Continues to the element's end, or, if `to_name`, to the text of its name. Texts end at the
  // first quotation mark; if `lenient`, at the first one after which the element can continue.
  End Run(bool lenient, bool to_name = false) {
    lenient_ = lenient;
    while (true) {
      at_ = bytes_->SkipBlanks(at_);
      if (bytes_->ends_at(at_)) return End::kMore;
      if (to_name && state_ == State::kValue && closers_.size() == 1 && key_ == "name" &&
          bytes_->text[at_] == '"') {
        return End::kAtName;
      }
      if (const auto end = Step(bytes_->text[at_])) return *end;
    }
  }

  // Takes the text at the current position to end at the quotation mark `end`.
  void TakeText(size_t end) {
    NoteText(at_ + 1, end);
    at_ = end + 1;
    state_ = State::kAfter;
  }

  size_t at() const { return at_; }
  bool too_deep() const { return too_deep_; }
  std::string_view first_key() const { return keys_.empty() ? std::string_view() : keys_.front(); }
  bool HasKey(std::string_view key) const { return Contains(keys_, key); }
  bool is_unchanged() const { return edits_.empty(); }

  MendedElement Mended() const {
    MendedElement mended{.outcome = MendedElement::Outcome::kMended, .length = at_};
    if (edits_.empty()) {
      mended.outcome = MendedElement::Outcome::kWhole;
      return mended;
    }
    mended.first_repair = edits_.front().begin;
    size_t from = 0;
    for (const Edit& edit : edits_) {
      mended.text += bytes_->text.substr(from, edit.begin - from);
      from = edit.end;
      if (edit.is_text) {
        ++mended.quotes;
        AppendEscaped(bytes_->text.substr(edit.begin, edit.end - edit.begin), mended.text);
      } else {
        ++mended.commas;
        if (edit.begin == edit.end) mended.text += ',';
      }
    }
    mended.text += bytes_->text.substr(from, at_ - from);
    return mended;
  }

 private:
  enum class State : uint8_t {
    kBegin,   // '{'
    kFirst,   // after an opening bracket
    kMember,  // after a comma
    kColon,
    kValue,  // after a colon
    kAfter,  // after a value
  };

  // Bytes to be written differently: a text without its quotes, a comma, or, if empty, the position
  // of a missing comma.
  struct Edit {
    size_t begin = 0;
    size_t end = 0;
    bool is_text = false;
  };

  // Takes one token; nullopt: it continues.
  std::optional<End> Step(char c) {
    switch (state_) {
      case State::kBegin: return c == '{' ? Open(c) : End::kFailed;
      case State::kFirst:
        if (c == closers_.back()) return Close();
        if (c == ',') return DropComma(at_++);
        return Member(c);
      case State::kMember:
        if (c == closers_.back()) {
          DropComma(comma_);
          return Close();
        }
        if (c == ',') return DropComma(at_++);
        return Member(c);
      case State::kColon:
        if (c != ':') return End::kFailed;
        ++at_;
        state_ = State::kValue;
        return std::nullopt;
      case State::kValue: return Value(c);
      case State::kAfter: break;
    }
    if (c == closers_.back()) return Close();
    if (c == ',') {
      comma_ = at_++;
      state_ = State::kMember;
      return std::nullopt;
    }
    const bool lacks_comma = closers_.back() == '}' ? c == '"' : c == '{' || c == '[';
    if (!lacks_comma) return End::kFailed;
    edits_.push_back({.begin = at_, .end = at_});
    return Member(c);
  }

  std::optional<End> DropComma(size_t at) {
    edits_.push_back({.begin = at, .end = at + 1});
    return std::nullopt;
  }

  std::optional<End> Open(char c) {
    if (closers_.size() >= max_depth_) {
      too_deep_ = true;
      return End::kFailed;
    }
    closers_.push_back(c == '{' ? '}' : ']');
    state_ = State::kFirst;
    ++at_;
    return std::nullopt;
  }

  std::optional<End> Close() {
    closers_.pop_back();
    state_ = State::kAfter;
    ++at_;
    return closers_.empty() ? std::optional(End::kClosed) : std::nullopt;
  }

  std::optional<End> Member(char c) { return closers_.back() == '}' ? Key(c) : Value(c); }

  std::optional<End> Key(char c) {
    if (c != '"') return End::kFailed;
    const size_t end = bytes_->StringEnd(at_ + 1);
    if (end == kNoPlace) return End::kMore;
    key_ = bytes_->text.substr(at_ + 1, end - at_ - 1);
    if (closers_.size() == 1) keys_.push_back(key_);
    at_ = end + 1;
    state_ = State::kColon;
    return std::nullopt;
  }

  std::optional<End> Value(char c) {
    if (c == '{' || c == '[') return Open(c);
    if (c == '"') {
      const size_t end = lenient_ ? PlausibleEnd() : bytes_->StringEnd(at_ + 1);
      if (end == kNoPlace) return End::kMore;
      TakeText(end);
      return std::nullopt;
    }
    const auto is_scalar = [](char byte) {
      return IsLetter(byte) || IsDigit(byte) || byte == '-' || byte == '+' || byte == '.';
    };
    if (!is_scalar(c)) return End::kFailed;
    while (!bytes_->ends_at(at_) && is_scalar(bytes_->text[at_])) ++at_;
    state_ = State::kAfter;
    return std::nullopt;
  }

  // Returns the first quotation mark of a text after which its container can continue.
  size_t PlausibleEnd() const {
    size_t end = bytes_->StringEnd(at_ + 1);
    while (end != kNoPlace && GoesOn(end + 1) == Answer::kNo) end = bytes_->StringEnd(end + 1);
    return end;
  }

  Answer GoesOn(size_t at) const {
    at = bytes_->SkipBlanks(at);
    if (bytes_->ends_at(at)) return bytes_->AtEnd(false);
    const char c = bytes_->text[at];
    if (c == closers_.back()) {
      at = bytes_->SkipBlanks(at + 1);
      if (bytes_->ends_at(at)) return bytes_->AtEnd(true);
      const char next = bytes_->text[at];
      return next == ',' || next == ']' || next == '}' ? Answer::kYes : Answer::kNo;
    }
    if (c != ',') return Answer::kNo;
    if (closers_.back() == '}') return FindKey(*bytes_, at + 1).answer;
    at = bytes_->SkipBlanks(at + 1);
    if (bytes_->ends_at(at)) return bytes_->AtEnd(false);
    const char next = bytes_->text[at];
    const bool is_value =
        next == '"' || next == '{' || next == '[' || next == '-' || IsDigit(next) || IsLetter(next);
    return is_value ? Answer::kYes : Answer::kNo;
  }

  // Records a text that is not valid JSON.
  void NoteText(size_t begin, size_t end) {
    if (bytes_->StringEnd(begin) != end) {
      edits_.push_back({.begin = begin, .end = end, .is_text = true});
    }
  }

  static void AppendEscaped(std::string_view text, std::string& out) {
    for (size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (c == '\\' && i + 1 < text.size()) {
        out += c;
        out += text[++i];
      } else {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
      }
    }
  }

  const JsonBytes* bytes_;
  size_t max_depth_;
  State state_ = State::kBegin;
  bool lenient_ = false;
  bool too_deep_ = false;
  size_t at_ = 0;
  size_t comma_ = 0;  // the last one
  std::string closers_;
  std::string_view key_;
  std::vector<std::string_view> keys_;  // of the element itself
  std::vector<Edit> edits_;
};

// Tries the possible readings of an element.
class Mender {
 public:
  Mender(const JsonBytes& bytes, const ElementRules& rules, size_t max_depth)
      : bytes_(bytes), rules_(rules), start_(bytes_, max_depth) {}

  MendedElement Mend() {
    using Outcome = MendedElement::Outcome;
    Walk plain = start_;
    const Walk::End end = plain.Run(/*lenient=*/false);
    if (plain.too_deep()) return {.outcome = Outcome::kTooDeep};
    if (end == Walk::End::kMore && !bytes_.last)
      return {.outcome = Outcome::kMore, .is_clean = true};
    Answer goes_on = Answer::kNo;
    if (end == Walk::End::kClosed) {
      goes_on = ListGoesOn(bytes_, plain.at(), rules_);
      if (goes_on == Answer::kMore) return {.outcome = Outcome::kMore, .is_clean = true};
      if (goes_on == Answer::kYes && plain.HasKey(rules_.required)) return plain.Mended();
    }
    latest_ = LatestEnd(bytes_, plain.first_key(), rules_);
    // The bytes so far are valid, and nothing follows: the document was truncated.
    if (end == Walk::End::kMore && latest_ == kNoPlace) {
      return {.outcome = Outcome::kCut, .is_clean = true};
    }
    if (auto mended = TryNames()) return std::move(*mended);
    if (end == Walk::End::kClosed && (goes_on == Answer::kYes || plain.is_unchanged())) {
      const bool is_whole = goes_on == Answer::kYes || IsSeparated(plain.at());
      if (is_whole) return plain.Mended();
    }
    if (latest_ != kNoPlace) return {.outcome = Outcome::kLost, .length = latest_};
    if (!bytes_.last) return {.outcome = Outcome::kMore};
    return {.outcome = Outcome::kCut, .is_clean = end == Walk::End::kMore};
  }

 private:
  static constexpr size_t kMostAttempts = 64;

  // Returns true if the bytes after the element can separate two elements.
  bool IsSeparated(size_t at) const {
    at = bytes_.SkipBlanks(at);
    if (bytes_.ends_at(at) || bytes_.text[at] == ']') return true;
    if (bytes_.text[at] != ',') return false;
    at = bytes_.SkipBlanks(at + 1);
    return bytes_.ends_at(at) || bytes_.text[at] == '{';
  }

  // Returns the rest of a way; nullopt if the element does not end properly on it.
  std::optional<MendedElement> Finish(Walk walk, bool lenient) {
    ++attempts_;
    if (walk.Run(lenient) != Walk::End::kClosed || walk.at() > latest_) return std::nullopt;
    if (!walk.HasKey(rules_.required)) return std::nullopt;
    if (ListGoesOn(bytes_, walk.at(), rules_) != Answer::kYes) return std::nullopt;
    return walk.Mended();
  }

  // Tries possible ends of the name. Until the end of the element is known to be in the bytes, only
  // the usual format counts: a better reading may need more bytes.
  std::optional<MendedElement> TryNames() {
    Walk at_name = start_;
    const bool has_name = at_name.Run(/*lenient=*/false, /*to_name=*/true) == Walk::End::kAtName;
    const bool is_there = bytes_.last || latest_ != kNoPlace;
    for (const bool lenient : {false, true}) {
      if (lenient && !is_there) break;
      if (has_name) {
        for (const bool usual : {true, false}) {
          if (!usual && !is_there) break;
          if (auto mended = TryEnds(at_name, usual, lenient)) return mended;
        }
      }
      if (!lenient) continue;
      if (auto mended = Finish(start_, lenient)) return mended;
    }
    return std::nullopt;
  }

  // Tries the possible ends of the name. `usual`: only before the keys that usually follow it.
  std::optional<MendedElement> TryEnds(const Walk& at_name, bool usual, bool lenient) {
    const size_t begin = at_name.at() + 1;
    for (size_t end = bytes_.text.find('"', begin); end < latest_;
         end = bytes_.text.find('"', end + 1)) {
      if (attempts_ >= kMostAttempts) break;
      if (!MayEndAt(at_name, end, usual)) continue;
      Walk walk = at_name;
      walk.TakeText(end);
      if (auto mended = Finish(std::move(walk), lenient)) return mended;
    }
    return std::nullopt;
  }

  bool MayEndAt(const Walk& at_name, size_t end, bool usual) const {
    size_t at = bytes_.SkipBlanks(end + 1);
    if (bytes_.ends_at(at)) return false;
    if (bytes_.text[at] == '}') return !usual;
    if (bytes_.text[at] != ',') return false;
    const KeyAt key = FindKey(bytes_, at + 1);
    if (key.answer != Answer::kYes || at_name.HasKey(key.key)) return false;
    return Contains(usual ? rules_.after_name : rules_.keys, key.key);
  }

  JsonBytes bytes_;
  const ElementRules& rules_;
  Walk start_;
  size_t latest_ = kNoPlace;
  size_t attempts_ = 0;
};

}  // namespace

bool HoldsNextElement(std::string_view bytes, const ElementRules& rules) {
  const JsonBytes text{bytes};
  return LatestEnd(text, FindKey(text, 1).key, rules, /*may_be_last=*/false) != kNoPlace;
}

MendedElement MendElement(std::string_view bytes, bool last, const ElementRules& rules,
                          size_t max_depth) {
  return Mender({bytes, last}, rules, max_depth).Mend();
}

}  // namespace etude
