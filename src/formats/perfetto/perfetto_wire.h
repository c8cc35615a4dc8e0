#pragma once

#include <string_view>

#include "src/base/text/string_pool.h"
#include "src/base/text/utf8.h"
#include "src/formats/io/protobuf.h"

namespace etude::perfetto {

using protobuf::Delimited;
using protobuf::Tag;
using protobuf::Varint;
using protobuf::View;

// Interns a text field, and repairs invalid UTF-8.
inline StringId InternText(StringPool& strings, protozero::data_view view) {
  const std::string_view bytes = View(view);
  return strings.Intern(utf8::IsValid(bytes) ? bytes : std::string_view(utf8::Repair(bytes)));
}

}  // namespace etude::perfetto
