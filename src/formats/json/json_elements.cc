#include "src/formats/json/json_elements.h"

#include <simdjson.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "src/base/text/ascii.h"
#include "src/formats/json/bracket_scanner.h"
#include "src/formats/json/json_text.h"
#include "src/formats/json/mend_element.h"

namespace etude {
namespace {

std::string Describe(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (byte > 0x20 && byte < 0x7F) return std::string("'") + c + "'";
  constexpr std::string_view kHex = "0123456789abcdef";
  return std::string("byte 0x") + kHex[byte >> 4] + kHex[byte & 0xF];
}

}  // namespace

class JsonElements::Impl {
 public:
  explicit Impl(Options options)
      : options_(std::move(options)),
        mends_(options_.rules != nullptr),
        repairs_(mends_ && !options_.strict),
        scanner_(options_.limits.depth) {}

  void Push(std::string_view chunk) {
    chunk_ = chunk;
    text_begin_ = nullptr;
  }

  void End() {
    Push({});
    is_last_ = true;
  }

  Result<JsonItem> Next() {
    if (error_) return tl::unexpected<Error>(*error_);
    auto item = Advance();
    if (!item) error_ = item.error();
    return item;
  }

  Result<bool> Reread() {
    if (!mends_ || !given_ || error_) return false;
    given_ = false;
    const std::string_view chunk = chunk_;
    const State state = state_;
    const uint64_t offset = offset_;
    const uint64_t index = std::exchange(index_, given_index_);
    GoBack();
    const MendedElement mended = MendElement(chunk_, is_last_, *options_.rules, MaxDepth());
    using Outcome = MendedElement::Outcome;
    const bool is_other = mended.outcome == Outcome::kMended || mended.outcome == Outcome::kMore ||
                          (mended.outcome == Outcome::kWhole && mended.length != given_length_);
    if (is_other) {
      is_invalid_ = true;
      begin_again_ = true;
      return true;
    }
    if (mended.outcome == Outcome::kLost) {
      Skip(mended.length);
      state_ = State::kAfterElement;
      return false;
    }
    // Restores the position; the bytes may have moved.
    chunk_.remove_prefix(chunk_.size() - chunk.size());
    state_ = state;
    offset_ = offset;
    index_ = index;
    return false;
  }

  bool complete() const { return state_ == State::kEnd; }
  const std::string& first_name() const { return first_name_; }
  const std::string& first_comma() const { return first_comma_; }
  uint64_t trailing_bytes() const { return trailing_; }
  uint64_t offset() const { return offset_; }
  const Stats& stats() const { return stats_; }

  std::string Where() const {
    std::string where = "byte " + std::to_string(offset_);
    if (state_ == State::kElement || state_ == State::kElementOrEnd ||
        state_ == State::kAfterElement || (state_ == State::kText && text_is_element_)) {
      where += ", in element " + std::to_string(index_);
      if (!array_key_.empty()) where += " of '" + array_key_ + "'";
    }
    return where;
  }

  std::string Message(uint64_t offset, std::string_view what) const {
    return options_.name + ":byte " + std::to_string(offset) + ": " + std::string(what);
  }

 private:
  // Expected next byte of the document.
  enum class State : uint8_t {
    kBegin,         // byte order mark or the document's first bracket
    kKeyOrEnd,      // '"' or '}'
    kKey,           // '"'
    kColon,         // ':'
    kMember,        // beginning of a member's value
    kAfterMember,   // ',' or '}'
    kElementOrEnd,  // beginning of an element, or ']'
    kElement,       // beginning of an element
    kAfterElement,  // ',' or ']'
    kText,          // inside a key, a member's value or an element
    kEnd,           // the document is complete
  };
  enum class TextForm : uint8_t { kContainer, kString, kScalar };

  Result<JsonItem> Advance() {
    if (clear_text_) {
      text_.clear();
      clear_text_ = false;
    }
    given_ = false;
    while (!chunk_.empty() || IsLastOpen()) {
      if (state_ == State::kText) {
        ETUDE_ASSIGN_OR_RETURN(const bool ended, MayMend() ? ReadElement() : ReadText());
        if (!ended) continue;
        ETUDE_ASSIGN_OR_RETURN(const std::optional<JsonItem> item, FinishText());
        if (item) return *item;
        continue;
      }
      // All bytes after the first foreign one are foreign.
      if (IsBlank(chunk_.front()) && trailing_ == 0) {
        Skip(1);
        continue;
      }
      ETUDE_ASSIGN_OR_RETURN(const std::optional<JsonItem> item, Step(chunk_.front()));
      if (item) return *item;
    }
    return JsonItem{};
  }

  void Skip(size_t count) {
    chunk_.remove_prefix(count);
    offset_ += count;
  }

  tl::unexpected<Error> Unexpected(std::string_view expected) const {
    return BadInput(Message(
        offset_, "found " + Describe(chunk_.front()) + ", expected " + std::string(expected)));
  }

  // Handles one non-blank byte outside of texts.
  Result<std::optional<JsonItem>> Step(char c) {
    switch (state_) {
      case State::kBegin: return Begin(c);
      case State::kKeyOrEnd:
        if (c == '}') return To(State::kEnd);
        [[fallthrough]];
      case State::kKey:
        if (repairs_ && (c == ',' || c == '}')) {
          CountComma(offset_);
          return To(c == ',' ? state_ : State::kEnd);
        }
        if (c != '"') return Unexpected("a key in quotes");
        BeginText(TextForm::kString);
        text_is_key_ = true;
        text_is_element_ = false;
        return std::nullopt;
      case State::kColon:
        if (c != ':') return Unexpected("':'");
        return To(State::kMember);
      case State::kMember: return BeginMember(c);
      case State::kAfterMember:
        if (c == ',') return To(State::kKey);
        if (c == '}') return To(State::kEnd);
        if (repairs_ && c == '"') return InsertComma(State::kKey);
        return Unexpected("',' or '}'");
      case State::kElementOrEnd:
        if (c == ']') return EndArray();
        [[fallthrough]];
      case State::kElement: {
        if (repairs_ && (c == ',' || c == ']')) {
          CountComma(offset_);
          return c == ',' ? To(state_) : EndArray();
        }
        ETUDE_RETURN_IF_ERROR(BeginValue(c));
        text_is_element_ = true;
        return std::nullopt;
      }
      case State::kAfterElement:
        if (c == ']') return EndArray();
        if (repairs_ && c == '{') {
          ++index_;
          return InsertComma(State::kElement);
        }
        if (c != ',') return Unexpected("',' or ']'");
        ++index_;
        return To(State::kElement);
      case State::kText: break;
      case State::kEnd: {
        trailing_ += chunk_.size();
        Skip(chunk_.size());
        return std::nullopt;
      }
    }
    return MakeError(ErrorCode::kInternal, options_.name + ": JSON splitter out of step");
  }

  std::optional<JsonItem> To(State state) {
    state_ = state;
    Skip(1);
    return std::nullopt;
  }

  // Continues as if there were a comma.
  std::optional<JsonItem> InsertComma(State state) {
    CountComma(offset_);
    state_ = state;
    return std::nullopt;
  }

  std::string Place(uint64_t offset) const {
    std::string place = "byte " + std::to_string(offset);
    if (!has_array_) return place;
    place += ", in element " + std::to_string(index_);
    return array_key_.empty() ? place : place + " of '" + array_key_ + "'";
  }

  void CountComma(uint64_t offset) {
    if (first_comma_.empty()) first_comma_ = Place(offset);
    stats_.Count(Stat::kRepairedComma);
  }

  Result<std::optional<JsonItem>> Begin(char c) {
    constexpr std::string_view kMark = "\xEF\xBB\xBF";
    if (bom_bytes_ < kMark.size() && c == kMark[bom_bytes_] && offset_ == bom_bytes_) {
      ++bom_bytes_;
      return To(State::kBegin);
    }
    if (offset_ == 0 && (c == '\xFE' || c == '\xFF')) {
      return BadInput(Message(0, "found a UTF-16 byte order mark, expected UTF-8"));
    }
    if (c == '{') return To(State::kKeyOrEnd);
    if (c == '[' && options_.bare_array) {
      in_bare_array_ = true;
      has_array_ = true;
      To(State::kElementOrEnd);
      return JsonItem{.kind = JsonItem::Kind::kArray, .offset = offset_ - 1};
    }
    return Unexpected(options_.bare_array ? "a JSON object or array" : "a JSON object");
  }

  std::optional<JsonItem> EndArray() {
    return To(in_bare_array_ ? State::kEnd : State::kAfterMember);
  }

  Result<std::optional<JsonItem>> BeginMember(char c) {
    if (std::ranges::find(options_.array_keys, key_) != options_.array_keys.end()) {
      if (has_array_) {
        return BadInput(Message(offset_, "found '" + key_ + "' again, expected it once"));
      }
      if (c != '[') return Unexpected("'[': the value of '" + key_ + "' must be an array");
      has_array_ = true;
      array_key_ = key_;
      To(State::kElementOrEnd);
      return JsonItem{.kind = JsonItem::Kind::kArray, .key = array_key_, .offset = offset_ - 1};
    }
    ETUDE_RETURN_IF_ERROR(BeginValue(c));
    text_is_element_ = false;
    return std::nullopt;
  }

  Status BeginValue(char c) {
    if (c == '{' || c == '[') {
      BeginText(TextForm::kContainer);
    } else if (c == '"') {
      BeginText(TextForm::kString);
    } else if (c == '-' || IsDigit(c) || IsLetter(c)) {
      BeginText(TextForm::kScalar);
    } else {
      return Unexpected("a JSON value");
    }
    return {};
  }

  void BeginText(TextForm form) {
    state_ = State::kText;
    form_ = form;
    text_is_key_ = false;
    text_offset_ = offset_;
    text_begin_ = chunk_.data();
    escaped_ = false;
    odd_bytes_ = false;
    is_odd_ = false;
    is_closed_ = false;
    is_mended_ = false;
    begin_again_ = false;
    is_invalid_ = false;
    has_given_up_ = false;
    doubts_control_ = true;
    doubted_bytes_ = kDoubtedBytes;
    after_.clear();
    after_comma_ = false;
    raw_.clear();
    text_.clear();
    scanner_.Reset();
    scanner_.set_stops_at_control(false);
  }

  // Returns the max number of open brackets, which recursive readers can still follow.
  size_t MaxDepth() const { return std::min(options_.limits.depth, BracketScanner::kMaxDepth); }
  // Returns true if the text is an element that can be repaired.
  bool MayMend() const { return mends_ && text_is_element_ && form_ == TextForm::kContainer; }
  // Returns true if an element has begun and its input has ended.
  bool IsLastOpen() const {
    return is_last_ && state_ == State::kText && MayMend() && !has_given_up_;
  }

  // Consumes the bytes of the chunk that belong to the element, and checks the bytes behind it: an
  // element with a missing part often continues there. Returns true once it has ended.
  Result<bool> ReadElement() {
    if (begin_again_) return Mend();
    if (is_closed_) return LookBehind();
    if (is_odd_) {
      if (!is_last_ && text_.size() + chunk_.size() < doubted_bytes_) {
        text_ += chunk_;
        Skip(chunk_.size());
        return false;
      }
      GoBack();
      return Mend();
    }
    if (chunk_.empty()) {
      GoBack();
      return Mend();
    }
    scanner_.set_stops_at_control(doubts_control_);
    auto closed = ReadText();
    if (!closed) {
      if (scanner_.state() != BracketScanner::State::kMismatch &&
          scanner_.state() != BracketScanner::State::kTooDeep) {
        return closed;
      }
      trouble_ = closed.error();
      GoBack();
      return Mend();
    }
    if (*closed) {
      is_closed_ = true;
      return LookBehind();
    }
    bool is_doubtful = doubts_control_ && scanner_.saw_control();
    if (!is_doubtful && text_.size() >= doubted_bytes_) {
      doubted_bytes_ = 2 * text_.size();
      is_doubtful = HoldsNextElement(text_, *options_.rules);
    }
    if (!is_doubtful) return false;
    GoBack();
    return Mend();
  }

  // The element is closed: ',' and the next one, or ']' must follow.
  Result<bool> LookBehind() {
    bool after_comma = after_comma_;
    for (size_t i = 0; i < chunk_.size(); ++i) {
      const char c = chunk_[i];
      if (IsBlank(c)) continue;
      if (!after_comma && c == ',') {
        after_comma = true;
        continue;
      }
      if (after_comma ? c == '{' || c == ',' || c == ']' : c == ']') return true;
      if (!trouble_) {
        Skip(i);
        trouble_ = Unexpected(after_comma ? "'{'" : "',' or ']'").value();
        chunk_ = std::string_view(chunk_.data() - i, chunk_.size() + i);
        offset_ -= i;
      }
      GoBack();
      return Mend();
    }
    constexpr size_t kMostBlanks = size_t{64} << 10;
    if (is_last_ || after_.size() > kMostBlanks) return true;
    after_ += chunk_;
    after_comma_ = after_comma;
    Skip(chunk_.size());
    return false;
  }

  // Moves the beginning of the chunk to that of the element.
  void GoBack() {
    if (text_begin_ != nullptr) {
      const char* end = chunk_.data() + chunk_.size();
      chunk_ = std::string_view(text_begin_, static_cast<size_t>(end - text_begin_));
    } else {
      std::string whole = raw_.empty() ? std::move(text_) : std::move(raw_);
      whole += after_;
      whole += chunk_;
      again_ = std::move(whole);
      chunk_ = again_;
      text_begin_ = chunk_.data();
    }
    state_ = State::kText;
    form_ = TextForm::kContainer;
    text_is_element_ = true;
    text_is_key_ = false;
    offset_ = text_offset_;
    is_closed_ = false;
    is_mended_ = false;
    after_.clear();
    after_comma_ = false;
    clear_text_ = false;
    text_.clear();
    raw_.clear();
    scanner_.Reset();
  }

  // Tries to repair the element at the beginning of the chunk. Returns true if it has ended.
  Result<bool> Mend() {
    begin_again_ = false;
    const MendedElement mended = MendElement(chunk_, is_last_, *options_.rules, MaxDepth());
    switch (mended.outcome) {
      case MendedElement::Outcome::kTooDeep:
        if (trouble_) return tl::unexpected<Error>(*trouble_);
        return BadInput(Message(text_offset_, "more than " + std::to_string(options_.limits.depth) +
                                                  " nested brackets (limit 'depth')"));
      case MendedElement::Outcome::kMore:
        doubted_bytes_ = std::max(doubted_bytes_, 2 * chunk_.size());
        if (mended.is_clean && !trouble_ && !is_invalid_) {
          doubts_control_ = false;
          return false;  // it is scanned from its beginning
        }
        [[fallthrough]];
      case MendedElement::Outcome::kCut:
        if (is_last_ && trouble_) return tl::unexpected<Error>(*trouble_);
        if (chunk_.size() > options_.limits.element_bytes) {
          return BadInput(Message(text_offset_, "a value of more than " +
                                                    std::to_string(options_.limits.element_bytes) +
                                                    " bytes (limit 'element_bytes')"));
        }
        is_odd_ = true;
        has_given_up_ = is_last_;
        text_ = chunk_;
        Skip(chunk_.size());
        return false;
      case MendedElement::Outcome::kWhole:
      case MendedElement::Outcome::kLost: text_ = chunk_.substr(0, mended.length); break;
      case MendedElement::Outcome::kMended: ETUDE_RETURN_IF_ERROR(TakeMended(mended)); break;
    }
    is_mended_ = mended.outcome != MendedElement::Outcome::kLost;
    is_lost_ = !is_mended_;
    trouble_.reset();
    Skip(mended.length);
    return true;
  }

  Status TakeMended(const MendedElement& mended) {
    const uint64_t offset = text_offset_ + mended.first_repair;
    if (options_.strict) {
      return BadInput(
          Message(offset, mended.quotes != 0
                              ? "found an unescaped quotation mark in this string, expected '\\\"'"
                              : "found a missing or surplus comma, expected one between values"));
    }
    if (mended.quotes != 0 && first_name_.empty()) first_name_ = Place(offset);
    if (mended.commas != 0 && first_comma_.empty()) first_comma_ = Place(offset);
    stats_.Count(Stat::kRepairedName, mended.quotes);
    stats_.Count(Stat::kRepairedComma, mended.commas);
    text_ = mended.text;
    return {};
  }

  // Consumes the bytes of the chunk that belong to the text; returns true once the text has ended.
  Result<bool> ReadText() {
    size_t taken = 0;
    bool ended = false;
    switch (form_) {
      case TextForm::kContainer: {
        taken = scanner_.Scan(chunk_);
        ended = scanner_.state() == BracketScanner::State::kClosed;
        break;
      }
      case TextForm::kString: taken = ReadString(&ended); break;
      case TextForm::kScalar: taken = ReadScalar(&ended); break;
    }
    if (text_.size() + taken > options_.limits.element_bytes) {
      return BadInput(Message(text_offset_, "a value of more than " +
                                                std::to_string(options_.limits.element_bytes) +
                                                " bytes (limit 'element_bytes')"));
    }
    text_.append(chunk_.substr(0, taken));
    Skip(taken);
    if (form_ == TextForm::kContainer) ETUDE_RETURN_IF_ERROR(CheckScanner());
    return ended;
  }

  Status CheckScanner() const {
    switch (scanner_.state()) {
      case BracketScanner::State::kOpen:
      case BracketScanner::State::kClosed: return {};
      case BracketScanner::State::kMismatch:
        return Unexpected(std::string("'") + scanner_.expected_closer() + "'");
      case BracketScanner::State::kTooDeep:
        return BadInput(Message(offset_, "more than " + std::to_string(scanner_.depth()) +
                                             " nested brackets (limit 'depth')"));
    }
    return {};
  }

  size_t ReadString(bool* ended) {
    for (size_t i = 0; i < chunk_.size(); ++i) {
      const char c = chunk_[i];
      const auto byte = static_cast<unsigned char>(c);
      if (text_.empty() && i == 0) continue;  // the opening quote
      if (byte < 0x20 || byte >= 0x80) odd_bytes_ = true;
      if (escaped_) {
        escaped_ = false;
      } else if (c == '\\') {
        escaped_ = true;
        odd_bytes_ = true;
      } else if (c == '"') {
        *ended = true;
        return i + 1;
      }
    }
    return chunk_.size();
  }

  size_t ReadScalar(bool* ended) const {
    const size_t end = chunk_.find_first_of(" \n\r\t,]}[{:\"");
    *ended = end != std::string_view::npos;
    return std::min(end, chunk_.size());
  }

  bool NeedsRepair() const {
    if (is_lost_) return false;
    if (is_mended_) return true;
    if (form_ == TextForm::kString) return odd_bytes_;
    if (form_ == TextForm::kScalar) return false;
    if (scanner_.saw_backslash() || scanner_.saw_control()) return true;
    return scanner_.saw_non_ascii() && !simdjson::validate_utf8(text_.data(), text_.size());
  }

  Result<std::optional<JsonItem>> FinishText() {
    raw_.clear();
    if (NeedsRepair()) {
      if (mends_ && text_is_element_ && text_begin_ == nullptr) raw_ = text_;
      RepairJsonStrings(text_, stats_);
    }
    if (text_is_key_) {
      state_ = State::kColon;
      return SetKey();
    }
    clear_text_ = true;
    text_.reserve(text_.size() + kPadding);
    JsonItem item{.text = text_, .offset = text_offset_};
    if (text_is_element_) {
      state_ = State::kAfterElement;
      item.kind = JsonItem::Kind::kElement;
      item.key = array_key_;
      item.index = index_;
      given_ = MayMend() && !is_mended_ && !is_lost_;
      given_index_ = index_;
      given_length_ = given_ ? static_cast<size_t>(offset_ - text_offset_ - after_.size()) : 0;
      is_lost_ = false;
      if (after_comma_) {
        ++index_;
        state_ = State::kElement;
      }
      return item;
    }
    if (!CheckJson(text_).valid) {
      return BadInput(Message(text_offset_, "the value of '" + key_ + "' is not valid JSON"));
    }
    state_ = State::kAfterMember;
    item.kind = JsonItem::Kind::kMember;
    item.key = key_;
    return item;
  }

  Result<std::optional<JsonItem>> SetKey() {
    key_ = text_.substr(1, text_.size() - 2);
    if (key_.find('\\') == std::string::npos) return std::nullopt;
    text_.reserve(text_.size() + kPadding);
    simdjson::ondemand::document document;
    std::string_view unescaped;
    if (key_parser_.iterate(text_.data(), text_.size(), text_.capacity()).get(document) !=
            simdjson::SUCCESS ||
        document.get_string().get(unescaped) != simdjson::SUCCESS) {
      return BadInput(Message(text_offset_, "found an invalid key, expected a JSON string"));
    }
    key_ = unescaped;
    return std::nullopt;
  }

  Options options_;
  bool mends_ = false;      // there are rules for the elements
  bool repairs_ = false;    // repairs by the rules are not errors
  std::string_view chunk_;  // the rest of it
  uint64_t offset_ = 0;
  uint64_t trailing_ = 0;
  uint64_t index_ = 0;  // of the element
  Stats stats_;
  std::optional<Error> error_;

  State state_ = State::kBegin;
  size_t bom_bytes_ = 0;
  bool in_bare_array_ = false;
  bool has_array_ = false;
  std::string key_;
  std::string array_key_;

  // Text being read.
  std::string text_;
  uint64_t text_offset_ = 0;
  TextForm form_ = TextForm::kScalar;
  bool text_is_key_ = false;
  bool text_is_element_ = false;
  bool clear_text_ = false;           // the caller was given text_ and has called again since
  const char* text_begin_ = nullptr;  // in the chunk; null if it began in an earlier one
  bool escaped_ = false;              // kString: the next byte is escaped
  bool odd_bytes_ = false;            // kString: contains bytes that may need repair
  BracketScanner scanner_;
  simdjson::ondemand::parser key_parser_;

  // For possibly damaged elements.
  static constexpr size_t kDoubtedBytes = size_t{64} << 10;
  bool is_last_ = false;        // no more bytes come
  bool is_odd_ = false;         // text_ is kept until more bytes arrive
  bool is_closed_ = false;      // the element has ended; the bytes after it are to be checked
  bool is_mended_ = false;      // text_ was repaired
  bool is_lost_ = false;        // text_ is unreadable
  bool begin_again_ = false;    // the chunk begins with an element to be repaired
  bool is_invalid_ = false;     // rejected by the reader: brackets alone do not determine its end
  bool has_given_up_ = false;   // the last bytes are not an element
  bool doubts_control_ = true;  // a raw control byte in a string triggers a closer check
  size_t doubted_bytes_ = kDoubtedBytes;  // suspicious length, if another element follows within it
  std::string after_;  // blanks and the comma after the element, from earlier chunks
  bool after_comma_ = false;
  std::optional<Error> trouble_;  // error of the document if the element is taken unchanged
  std::string raw_;               // original element, if text_ differs
  std::string again_;             // bytes of earlier chunks to be read again, and the rest
  bool given_ = false;            // the element was returned unchanged
  uint64_t given_index_ = 0;
  size_t given_length_ = 0;
  std::string first_name_;
  std::string first_comma_;
};

JsonElements::JsonElements(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
JsonElements::JsonElements(JsonElements&&) noexcept = default;
JsonElements& JsonElements::operator=(JsonElements&&) noexcept = default;
JsonElements::~JsonElements() = default;

void JsonElements::Push(std::string_view chunk) { impl_->Push(chunk); }
void JsonElements::End() { impl_->End(); }
Result<JsonItem> JsonElements::Next() { return impl_->Next(); }
Result<bool> JsonElements::Reread() { return impl_->Reread(); }
bool JsonElements::complete() const { return impl_->complete(); }
uint64_t JsonElements::trailing_bytes() const { return impl_->trailing_bytes(); }
uint64_t JsonElements::offset() const { return impl_->offset(); }
std::string JsonElements::Where() const { return impl_->Where(); }
std::string JsonElements::Message(uint64_t offset, std::string_view what) const {
  return impl_->Message(offset, what);
}
const Stats& JsonElements::stats() const { return impl_->stats(); }
const std::string& JsonElements::first_name() const { return impl_->first_name(); }
const std::string& JsonElements::first_comma() const { return impl_->first_comma(); }

}  // namespace etude
