#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/text/format_count.h"
#include "src/base/units.h"

// Numbers and tables as people read them.
namespace etude {

// "512 B", "1.50 KiB", "3.20 GiB".
std::string FormatBytes(Bytes bytes);
// "850 B/s", "12.34 GB/s".
std::string FormatRate(double bytes_per_second);
// "0.1235", "12.35", "1,234,568": four digits, and all of those before the point up to 10^15.
std::string FormatNumber(double number);
// The whole number that `number` is but for what computing with doubles leaves behind, else
// `number`: 20480000 of 20479999.999999996.
double WithoutNoise(double number);
// "+1.2 %"; `error` as a share.
std::string FormatError(double error);

// The first `most` code points, with "…" behind them if there are more.
std::string ShortText(std::string_view text, size_t most);
// A name of at most `most` code points and a "…": in the middle of a path such as "model.layers.0",
// because long paths differ at their ends, and at the end of others. Mangled names
// are decoded, and C++ functions first lose their result, arguments and namespaces.
std::string ShortName(std::string_view name, size_t most);

// A table in plain text: columns are padded to their widest cell, two blanks apart. Cells may hold
// anything; what is not printable is spelled out.
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
