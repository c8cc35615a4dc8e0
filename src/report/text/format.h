#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/text/format_count.h"
#include "src/base/units.h"

// Formatting of numbers and tables for readers.
namespace etude {

// Returns "512 B", "1.50 KiB", "3.20 GiB".
std::string FormatBytes(Bytes bytes);
// Returns "850 B/s", "12.34 GB/s".
std::string FormatRate(double bytes_per_second);
// Returns four significant digits, or all digits before the point up to 10^15: "0.1235", "12.35",
// "1,234,568".
std::string FormatNumber(double number);
// Removes floating-point noise from integers: 20479999.999999996 becomes 20480000. Other numbers
// are returned unchanged.
double WithoutNoise(double number);
// Formats an error given as a share: "+1.2 %".
std::string FormatError(double error);

// Returns the first `most` code points, followed by "…" if there are more.
std::string ShortText(std::string_view text, size_t most);
// Shortens a name to `most` code points and a "…": in the middle for paths such as
// "model.layers.0", which differ at their ends, otherwise at the end. Mangled names are decoded,
// and C++ functions lose their result, arguments and namespaces first.
std::string ShortName(std::string_view name, size_t most);

// A table in plain text. Columns are padded to their widest cell, two blanks apart. Unprintable
// characters in cells are escaped.
class TextTable {
 public:
  enum class Align { kLeft, kRight };

  // `aligns`: one per column; rows may be shorter.
  explicit TextTable(std::vector<Align> aligns) : aligns_(std::move(aligns)) {}
  void Row(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  // Each line begins with `indent` and ends with a newline.
  std::string Text(std::string_view indent = "  ") const;

 private:
  std::vector<Align> aligns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace etude
