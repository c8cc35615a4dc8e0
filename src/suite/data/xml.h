#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/limits.h"
#include "src/base/result.h"

namespace etude::suite {

// An element of an XML document: what annotations of pictures need. Attributes are checked and left
// out.
struct XmlElement {
  std::string name;
  std::string text;  // of its own, not of its children, without the white space around it
  std::vector<XmlElement> children;

  // The first child of a name; nullptr if there is none.
  const XmlElement* Child(std::string_view wanted) const;
};

// Reads a document by expat; `path` is for messages. kBadInput, with the line, for what is not
// well-formed, is nested more deeply than the limits have it or has a document type, whose entities
// nobody needs. kUnavailable in a build without expat.
Result<XmlElement> ParseXml(const std::string& path, std::string_view text, const Limits& limits);

}  // namespace etude::suite
