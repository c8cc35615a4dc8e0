#include "src/suite/data/xml.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>
#ifdef ETUDE_EXPAT
#include <expat.h>
#endif

namespace etude::suite {
#ifdef ETUDE_EXPAT
namespace {

constexpr size_t kXmlPiece = size_t{1} << 20;  // passed to expat at once

bool IsXmlSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

void TrimXml(std::string& text) {
  while (!text.empty() && IsXmlSpace(text.back())) text.pop_back();
  text.erase(0, static_cast<size_t>(std::ranges::find_if_not(text, IsXmlSpace) - text.begin()));
}

// Builds elements from expat's events.
class XmlParser {
 public:
  XmlParser(const std::string& path, const Limits& limits)
      : path_(path), limits_(limits), expat_(XML_ParserCreate(nullptr), XML_ParserFree) {
    if (expat_ == nullptr) return;
    XML_SetUserData(expat_.get(), this);
    XML_SetElementHandler(
        expat_.get(), [](void* self, const char* name, const char**) { Self(self).Begin(name); },
        [](void* self, const char*) { Self(self).End(); });
    XML_SetCharacterDataHandler(expat_.get(), [](void* self, const char* text, int size) {
      Self(self).Add({text, static_cast<size_t>(size)});
    });
    XML_SetStartDoctypeDeclHandler(expat_.get(),
                                   [](void* self, const char*, const char*, const char*, int) {
                                     Self(self).Stop("a document type, expected none");
                                   });
  }

  Result<XmlElement> Parse(std::string_view text) {
    if (expat_ == nullptr) return Unavailable("out of memory");
    bool last = false;
    while (!last) {
      const std::string_view piece = text.substr(0, kXmlPiece);
      text.remove_prefix(piece.size());
      last = text.empty();
      if (XML_Parse(expat_.get(), piece.data(), static_cast<int>(piece.size()), last) ==
          XML_STATUS_OK) {
        continue;
      }
      return BadInput(
          fmt::format("{}:{}: {}", path_, XML_GetCurrentLineNumber(expat_.get()), Wrong()));
    }
    return std::move(root_);
  }

 private:
  static XmlParser& Self(void* self) { return *static_cast<XmlParser*>(self); }

  std::string Wrong() const {
    if (!wrong_.empty()) return wrong_;
    const XML_Error code = XML_GetErrorCode(expat_.get());
    const bool not_closed =
        (code == XML_ERROR_TAG_MISMATCH || code == XML_ERROR_NO_ELEMENTS) && !open_.empty();
    return fmt::format("{}, expected {}", XML_ErrorString(code),
                       not_closed ? fmt::format("'</{}>'", open_.back().name) : "well-formed XML");
  }
  void Stop(std::string wrong) {
    wrong_ = std::move(wrong);
    XML_StopParser(expat_.get(), XML_FALSE);
  }
  void Begin(const char* name) {
    if (open_.size() >= limits_.depth) {
      Stop(fmt::format("nested too deeply, expected at most {} levels (--limit depth=N)",
                       limits_.depth));
      return;
    }
    open_.push_back({.name = name});
  }
  // May be called after Stop for an element without content.
  void End() {
    if (!wrong_.empty()) return;
    XmlElement element = std::move(open_.back());
    open_.pop_back();
    TrimXml(element.text);
    if (open_.empty()) {
      root_ = std::move(element);
    } else {
      open_.back().children.push_back(std::move(element));
    }
  }
  void Add(std::string_view text) {
    if (wrong_.empty()) open_.back().text += text;
  }

  const std::string& path_;
  const Limits& limits_;
  std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)> expat_;
  std::vector<XmlElement> open_;  // innermost last
  XmlElement root_;
  std::string wrong_;  // reason, if stopped by this class
};

}  // namespace

Result<XmlElement> ParseXml(const std::string& path, std::string_view text, const Limits& limits) {
  return XmlParser(path, limits).Parse(text);
}
#else
Result<XmlElement> ParseXml(const std::string& path, std::string_view, const Limits&) {
  return Unavailable(path + ": reading XML requires a build with libexpat");
}
#endif

const XmlElement* XmlElement::Child(std::string_view wanted) const {
  const auto found = std::ranges::find(children, wanted, &XmlElement::name);
  return found == children.end() ? nullptr : &*found;
}

}  // namespace etude::suite
