#include "src/formats/io/toml_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/formats/io/byte_source.h"
#include "src/formats/read_trace.h"

namespace etude {
namespace {

// Returns true if a TOML text may begin so: a leading bracket may open a table's name or a JSON
// list.
bool MayBeToml(std::string_view beginning) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t first = beginning.find_first_not_of(kBlanks);
  if (first != std::string_view::npos && beginning[first] == '{') return false;
  return std::ranges::none_of(beginning, [&](unsigned char c) {
    return c < ' ' && kBlanks.find(static_cast<char>(c)) == std::string_view::npos;
  });
}

}  // namespace

Result<std::string> ReadTomlText(const std::string& path, std::string_view what, uint64_t most,
                                 const Limits& limits) {
  ETUDE_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path, limits));
  ETUDE_ASSIGN_OR_RETURN(const std::string_view beginning, source.Peek(kDetectBytes));
  const FileKind kind = DetectFileKind(beginning);
  if (kind == FileKind::kUnknown || MayBeToml(beginning)) {
    return ReadWholeFile(source, most, fmt::format(", expected {} in TOML", what));
  }
  return BadInput(fmt::format("{}: found {}, expected {} in TOML", path,
                              kind == FileKind::kOtherJson || kind == FileKind::kChakraFeeder
                                  ? "JSON"
                                  : fmt::format("a trace ({})", Name(kind)),
                              what));
}

}  // namespace etude
