#include "src/suite/data/xml.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace etude::suite {
namespace {

struct XmlEntity {
  std::string_view name;
  char character;
};
constexpr std::array kXmlEntities = {XmlEntity{"amp", '&'}, XmlEntity{"lt", '<'},
                                     XmlEntity{"gt", '>'}, XmlEntity{"quot", '"'},
                                     XmlEntity{"apos", '\''}};

constexpr uint32_t kLargestCodePoint = 0x10FFFF;

bool IsXmlSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
// Bytes above 127 are those of letters.
bool IsXmlNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == ':' || c == '-' || c == '.' || static_cast<unsigned char>(c) > 127;
}
bool IsXmlNameStart(char c) {
  return IsXmlNameByte(c) && c != '-' && c != '.' && !(c >= '0' && c <= '9');
}

void AppendUtf8(std::string& out, uint32_t point) {
  const auto put = [&](uint32_t byte) { out += static_cast<char>(byte); };
  const auto rest = [&](int shift) { put(0x80 | (point >> shift & 0x3F)); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xC0 | point >> 6);
    rest(0);
  } else if (point < 0x10000) {
    put(0xE0 | point >> 12);
    rest(6);
    rest(0);
  } else {
    put(0xF0 | point >> 18);
    rest(12);
    rest(6);
    rest(0);
  }
}

class XmlParser {
 public:
  XmlParser(const std::string& path, std::string_view text, const Limits& limits)
      : path_(path), text_(text), limits_(limits) {}

  Result<XmlElement> Parse() {
    if (Rest().starts_with("\xEF\xBB\xBF")) at_ += 3;
    if (Rest().starts_with("<?xml")) ETUDE_RETURN_IF_ERROR(SkipPast("?>", "the declaration's end"));
    ETUDE_RETURN_IF_ERROR(SkipBetween());
    if (Next() != '<') return Wrong("an element");
    ETUDE_ASSIGN_OR_RETURN(XmlElement root, ParseElement(0));
    ETUDE_RETURN_IF_ERROR(SkipBetween());
    if (at_ != text_.size()) return Wrong("the end of the file");
    return root;
  }

 private:
  std::string_view Rest() const { return text_.substr(at_); }
  char Next() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  tl::unexpected<Error> Wrong(std::string_view expected) const {
    const auto line = 1 + std::ranges::count(text_.substr(0, at_), '\n');
    std::string found = "the end of the file";
    if (at_ < text_.size()) {
      const std::string_view rest = Rest().substr(0, 20);
      found = fmt::format("'{}'", rest.substr(0, rest.find('\n')));
    }
    return BadInput(fmt::format("{}:{}: found {}, expected {}", path_, line, found, expected));
  }

  Status SkipPast(std::string_view end, std::string_view expected) {
    const size_t found = text_.find(end, at_);
    if (found == std::string_view::npos) {
      at_ = text_.size();
      return Wrong(expected);
    }
    at_ = found + end.size();
    return {};
  }
  void SkipSpace() {
    while (at_ < text_.size() && IsXmlSpace(text_[at_])) ++at_;
  }
  // Comments and processing instructions.
  Result<bool> SkipRemark() {
    if (Rest().starts_with("<!--")) {
      at_ += 4;
      ETUDE_RETURN_IF_ERROR(SkipPast("-->", "the comment's end"));
      return true;
    }
    if (Rest().starts_with("<?")) {
      ETUDE_RETURN_IF_ERROR(SkipPast("?>", "the instruction's end"));
      return true;
    }
    return false;
  }
  Status SkipBetween() {
    while (true) {
      SkipSpace();
      ETUDE_ASSIGN_OR_RETURN(const bool skipped, SkipRemark());
      if (!skipped) return {};
    }
  }

  Result<std::string> ParseName() {
    const size_t begin = at_;
    if (!IsXmlNameStart(Next())) return Wrong("a name");
    while (IsXmlNameByte(Next())) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  Status ParseEntity(std::string& out) {
    const size_t end = text_.find(';', at_);
    const std::string_view name =
        end == std::string_view::npos ? "" : text_.substr(at_ + 1, end - at_ - 1);
    if (name.starts_with('#')) {
      const bool hexadecimal = name.starts_with("#x");
      const std::string_view digits = name.substr(hexadecimal ? 2 : 1);
      uint32_t point = 0;
      const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), point,
                                        hexadecimal ? 16 : 10);
      const bool is_half = point >= 0xD800 && point < 0xE000;
      if (read.ec != std::errc() || read.ptr != digits.data() + digits.size() || point == 0 ||
          point > kLargestCodePoint || is_half) {
        return Wrong("the number of a character");
      }
      AppendUtf8(out, point);
    } else {
      const auto* known = std::ranges::find(kXmlEntities, name, &XmlEntity::name);
      if (known == kXmlEntities.end()) return Wrong("&amp;, &lt;, &gt;, &quot; or &apos;");
      out += known->character;
    }
    at_ = end + 1;
    return {};
  }

  // After an element's name, up to '>' or "/>".
  Status SkipAttributes() {
    std::set<std::string> names;
    while (true) {
      const size_t before = at_;
      SkipSpace();
      if (Next() == '>' || Rest().starts_with("/>")) return {};
      if (at_ == before) return Wrong("'>'");
      ETUDE_ASSIGN_OR_RETURN(const std::string name, ParseName());
      if (!names.insert(name).second) return Wrong(fmt::format("one attribute '{}'", name));
      SkipSpace();
      if (Next() != '=') return Wrong("'='");
      ++at_;
      SkipSpace();
      const char quote = Next();
      if (quote != '"' && quote != '\'') return Wrong("a value in quotes");
      ++at_;
      std::string value;
      while (Next() != quote) {
        if (at_ == text_.size() || Next() == '<') return Wrong("the value's end");
        if (Next() == '&') {
          ETUDE_RETURN_IF_ERROR(ParseEntity(value));
        } else {
          ++at_;
        }
      }
      ++at_;
    }
  }

  // From '<' to past the element's end.
  Result<XmlElement> ParseElement(size_t depth) {
    if (depth >= limits_.depth) {
      return Wrong(fmt::format("elements at most {} deep (--limit depth=N)", limits_.depth));
    }
    ++at_;
    XmlElement element;
    ETUDE_ASSIGN_OR_RETURN(element.name, ParseName());
    ETUDE_RETURN_IF_ERROR(SkipAttributes());
    if (Next() == '/') {
      at_ += 2;
      return element;
    }
    ++at_;
    while (!Rest().starts_with("</")) {
      if (at_ == text_.size()) return Wrong(fmt::format("'</{}>'", element.name));
      if (Next() == '&') {
        ETUDE_RETURN_IF_ERROR(ParseEntity(element.text));
      } else if (Next() != '<') {
        element.text += text_[at_++];
      } else {
        ETUDE_ASSIGN_OR_RETURN(const bool skipped, SkipRemark());
        if (skipped) continue;
        ETUDE_ASSIGN_OR_RETURN(XmlElement child, ParseElement(depth + 1));
        element.children.push_back(std::move(child));
      }
    }
    const std::string end = "</" + element.name;
    if (!Rest().starts_with(end) || IsXmlNameByte(At(at_ + end.size()))) {
      return Wrong(fmt::format("'{}>'", end));
    }
    at_ += end.size();
    SkipSpace();
    if (Next() != '>') return Wrong("'>'");
    ++at_;
    Trim(element.text);
    return element;
  }
  char At(size_t place) const { return place < text_.size() ? text_[place] : '\0'; }

  static void Trim(std::string& text) {
    while (!text.empty() && IsXmlSpace(text.back())) text.pop_back();
    text.erase(0, static_cast<size_t>(std::ranges::find_if_not(text, IsXmlSpace) - text.begin()));
  }

  const std::string& path_;
  std::string_view text_;
  const Limits& limits_;
  size_t at_ = 0;
};

}  // namespace

const XmlElement* XmlElement::Child(std::string_view wanted) const {
  const auto found = std::ranges::find(children, wanted, &XmlElement::name);
  return found == children.end() ? nullptr : &*found;
}

Result<XmlElement> ParseXml(const std::string& path, std::string_view text, const Limits& limits) {
  return XmlParser(path, text, limits).Parse();
}

}  // namespace etude::suite
