#include "src/formats/json_elements.h"

#include <simdjson.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "src/base/ascii.h"
#include "src/formats/bracket_scanner.h"
#include "src/formats/json_text.h"

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
  explicit Impl(Options options) : options_(std::move(options)), scanner_(options_.limits.depth) {}

  void Push(std::string_view chunk) { chunk_ = chunk; }

  Result<JsonItem> Next() {
    if (error_) return tl::unexpected<Error>(*error_);
    auto item = Advance();
    if (!item) error_ = item.error();
    return item;
  }

  bool complete() const { return state_ == State::kEnd; }
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
  // What the next byte of the document may be.
  enum class State : uint8_t {
    kBegin,         // the byte order mark or the document's first bracket
    kKeyOrEnd,      // '"' or '}'
    kKey,           // '"'
    kColon,         // ':'
    kMember,        // a member's value begins
    kAfterMember,   // ',' or '}'
    kElementOrEnd,  // an element begins, or ']'
    kElement,       // an element begins
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
    while (!chunk_.empty()) {
      if (state_ == State::kText) {
        ETUDE_ASSIGN_OR_RETURN(const bool ended, ReadText());
        if (!ended) continue;
        ETUDE_ASSIGN_OR_RETURN(const std::optional<JsonItem> item, FinishText());
        if (item) return *item;
        continue;
      }
      // Behind the first foreign byte all are foreign.
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

  // Takes one byte that is not a blank, outside of texts.
  Result<std::optional<JsonItem>> Step(char c) {
    switch (state_) {
      case State::kBegin: return Begin(c);
      case State::kKeyOrEnd:
        if (c == '}') return To(State::kEnd);
        [[fallthrough]];
      case State::kKey:
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
        return Unexpected("',' or '}'");
      case State::kElementOrEnd:
        if (c == ']') return EndArray();
        [[fallthrough]];
      case State::kElement: {
        ETUDE_RETURN_IF_ERROR(BeginValue(c));
        text_is_element_ = true;
        return std::nullopt;
      }
      case State::kAfterElement:
        if (c == ']') return EndArray();
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
    escaped_ = false;
    odd_bytes_ = false;
    text_.clear();
    scanner_.Reset();
  }

  // Takes the bytes of the chunk that belong to the text; true once the text has ended.
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
    if (form_ == TextForm::kString) return odd_bytes_;
    if (form_ == TextForm::kScalar) return false;
    if (scanner_.saw_backslash() || scanner_.saw_control()) return true;
    return scanner_.saw_non_ascii() && !simdjson::validate_utf8(text_.data(), text_.size());
  }

  Result<std::optional<JsonItem>> FinishText() {
    if (NeedsRepair()) RepairJsonStrings(text_, stats_);
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
  std::string_view chunk_;  // what is left of it
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

  // The text being read.
  std::string text_;
  uint64_t text_offset_ = 0;
  TextForm form_ = TextForm::kScalar;
  bool text_is_key_ = false;
  bool text_is_element_ = false;
  bool clear_text_ = false;  // the caller was given text_ and has called again since
  bool escaped_ = false;     // kString: the next byte is escaped
  bool odd_bytes_ = false;   // kString: has bytes that may need repair
  BracketScanner scanner_;
  simdjson::ondemand::parser key_parser_;
};

JsonElements::JsonElements(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
JsonElements::JsonElements(JsonElements&&) noexcept = default;
JsonElements& JsonElements::operator=(JsonElements&&) noexcept = default;
JsonElements::~JsonElements() = default;

void JsonElements::Push(std::string_view chunk) { impl_->Push(chunk); }
Result<JsonItem> JsonElements::Next() { return impl_->Next(); }
bool JsonElements::complete() const { return impl_->complete(); }
uint64_t JsonElements::trailing_bytes() const { return impl_->trailing_bytes(); }
uint64_t JsonElements::offset() const { return impl_->offset(); }
std::string JsonElements::Where() const { return impl_->Where(); }
std::string JsonElements::Message(uint64_t offset, std::string_view what) const {
  return impl_->Message(offset, what);
}
const Stats& JsonElements::stats() const { return impl_->stats(); }

}  // namespace etude
