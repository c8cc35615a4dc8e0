#include "src/jobs/file_endings.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/text/ascii.h"
#include "src/formats/io/atomic_file.h"

namespace etude {
namespace {

struct FileEnding {
  std::string_view ending;
  std::string_view format;
  std::string_view writers;
};
constexpr FileEnding kEndings[] = {
    {".et", "a Chakra trace", "`etude convert` writes one"},
    {".json", "JSON", "`etude link` writes linked traces, `etude timeline` Chrome's format"},
    {".etude", "a capture", "`etude record` writes one"},
    {".pftrace", "a timeline of Perfetto", "`etude timeline` writes one"},
    {".perfetto-trace", "a timeline of Perfetto", "`etude timeline` writes one"},
    {".dot", "a graph", "`etude graph` writes one"},
    {".gv", "a graph", "`etude graph` writes one"},
    {".graphml", "a graph", "`etude graph` writes one"},
    {".svg", "a picture", "`etude graph` writes one"},
    {".html", "a page", "`etude report` writes one"},
    {".csv", "a table", "`--csv` of many commands prints one"},
};

}  // namespace

std::string FormatEnding(std::string_view path) {
  std::string name(path);
  std::ranges::transform(name, name.begin(), Lower);
  name.resize(name.size() - CompressionEndingOf(name).size());
  return std::filesystem::path(name).extension().string();
}

std::string WrongEnding(const std::string& path, std::span<const std::string_view> endings,
                        std::string_view other) {
  const std::string ending = FormatEnding(path);
  const auto found = std::ranges::find(kEndings, ending, &FileEnding::ending);
  if (found == std::end(kEndings) || std::ranges::count(endings, ending) != 0) return "";
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return "";
  std::string expected(other);
  if (!endings.empty()) {
    expected = fmt::format("a name that ends in {}{}{}", fmt::join(endings, " or "),
                           other.empty() ? "" : ", or ", other);
  }
  return fmt::format("found '{}', the file name of {} ({}), expected {}", path, found->format,
                     found->writers, expected);
}

}  // namespace etude
