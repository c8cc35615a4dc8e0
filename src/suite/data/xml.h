#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/limits.h"
#include "src/base/result.h"

namespace etude::suite {

// An element of an XML document, as needed for picture annotations. Attributes are checked but not
// kept.
struct XmlElement {
  std::string name;
  std::string text;  // own text without that of children, trimmed
  std::vector<XmlElement> children;

  // Returns the first child with a name; nullptr if there is none.
  const XmlElement* Child(std::string_view wanted) const;
};

// Parses a document with expat; `path` is for messages. kBadInput with the line if it is not
// well-formed, nested beyond the limits, or has a document type, whose entities are not supported.
// kUnavailable in a build without expat.
Result<XmlElement> ParseXml(const std::string& path, std::string_view text, const Limits& limits);

}  // namespace etude::suite
