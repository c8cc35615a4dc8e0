#include "src/transform/operators/operator_table.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/text/printable.h"
#include "src/base/text/quantity.h"

namespace etude {
namespace {

constexpr std::string_view kHeading =
    "operator,arguments,device,processor,threads,torch,measured,calls,time_ns,spread,state";
constexpr size_t kColumns = 11;

constexpr std::string_view kInStep = "in step";
constexpr std::string_view kInIsolation = "in isolation";
constexpr std::string_view kAtOnce = " at once";

std::string NameOfMode(const OperatorMachine& machine) {
  std::string name(machine.in_step ? kInStep : kInIsolation);
  if (machine.at_once > 1) name += fmt::format(", {}{}", machine.at_once, kAtOnce);
  return name;
}

// Reads such a name into `machine`. Returns false for another text.
bool ReadMode(std::string_view name, OperatorMachine& machine) {
  if (name.ends_with(kAtOnce)) {
    name.remove_suffix(kAtOnce.size());
    const size_t comma = name.rfind(", ");
    if (comma == std::string_view::npos) return false;
    const auto count = ParseWhole(name.substr(comma + 2));
    if (!count || *count < 2) return false;
    machine.at_once = *count;
    name = name.substr(0, comma);
  }
  machine.in_step = name == kInStep;
  return name == kInStep || name == kInIsolation;
}

// Reads the rows of a text in CSV, whose values may have quotation marks and line breaks inside of
// them (RFC 4180).
class CsvRows {
 public:
  explicit CsvRows(std::string_view text) : text_(text) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
  }

  // Line of the last row, counted from 1.
  size_t line() const { return line_; }
  bool at_end() const { return text_.empty(); }

  // Returns the values of the next row; nullopt if a quotation mark is never closed.
  std::optional<std::vector<std::string>> Next() {
    line_ = next_line_;
    std::vector<std::string> values;
    while (true) {
      std::string& value = values.emplace_back();
      if (text_.starts_with('"')) {
        if (!ReadQuoted(value)) return std::nullopt;
      }
      const size_t end = std::min(text_.find_first_of(",\n"), text_.size());
      value += text_.substr(0, end);
      const bool is_last = end == text_.size() || text_[end] == '\n';
      text_.remove_prefix(std::min(end + 1, text_.size()));
      if (!is_last) continue;
      if (value.ends_with('\r')) value.pop_back();
      ++next_line_;
      return values;
    }
  }

 private:
  bool ReadQuoted(std::string& value) {
    text_.remove_prefix(1);
    while (true) {
      const size_t end = text_.find('"');
      if (end == std::string_view::npos) return false;
      for (const char c : text_.substr(0, end)) next_line_ += c == '\n' ? 1 : 0;
      value += text_.substr(0, end);
      text_.remove_prefix(end + 1);
      if (!text_.starts_with('"')) return true;
      value += '"';
      text_.remove_prefix(1);
    }
  }

  std::string_view text_;
  size_t line_ = 0;
  size_t next_line_ = 1;
};

struct OperatorRow {
  OperatorKey key;
  OperatorMachine machine;
  MeasuredCall time;
};

// Returns the row of these values. Errors lack file and line.
Result<OperatorRow> ParseRow(std::vector<std::string>& values) {
  const auto wrong = [](std::string_view found, std::string_view expected) {
    return BadInput(fmt::format("found '{}', expected {}", found, expected));
  };
  OperatorRow row{.key = {.name = std::move(values[0]), .arguments = std::move(values[1])},
                  .machine = {.device = std::move(values[2]),
                              .processor = std::move(values[3]),
                              .torch = std::move(values[5])},
                  .time = {}};
  if (row.key.name.empty()) return wrong("", "the name of an operator, such as aten::mm");
  const auto threads = ParseWhole(values[4]);
  if (!threads || *threads < 1) return wrong(values[4], "a number of threads from 1");
  row.machine.threads = *threads;
  if (!ReadMode(values[6], row.machine)) {
    return wrong(values[6], "'in step', 'in isolation' or one of them with ', N at once'");
  }
  const auto calls = ParseWhole(values[7]);
  if (!calls || *calls < 1) return wrong(values[7], "a number of calls from 1");
  row.time.calls = *calls;
  const auto time = ParseDecimal(values[8]);
  if (!time || *time <= 0) return wrong(values[8], "a time above 0 in nanoseconds");
  row.time.time_ns = *time;
  const auto spread = ParseDecimal(values[9]);
  if (!spread || *spread < 0) return wrong(values[9], "a spread of at least 0");
  row.time.spread = *spread;
  if (values[10] != "measured" && values[10] != "noisy") {
    return wrong(values[10], "'measured' or 'noisy'");
  }
  row.time.noisy = values[10] == "noisy";
  return row;
}

}  // namespace

std::string DifferenceOf(const OperatorMachine& found, const OperatorMachine& expected) {
  using Fact = std::tuple<std::string_view, std::string, std::string>;
  const std::array<Fact, 5> facts = {
      Fact{"device", found.device, expected.device},
      Fact{"processor", found.processor, expected.processor},
      Fact{"threads", fmt::format("{}", found.threads), fmt::format("{}", expected.threads)},
      Fact{"torch", found.torch, expected.torch},
      Fact{"measured", NameOfMode(found), NameOfMode(expected)}};
  for (const auto& [name, one, other] : facts) {
    if (one != other) return fmt::format("{}: found '{}', expected '{}'", name, one, other);
  }
  return "";
}

const MeasuredCall* OperatorTable::Find(const OperatorKey& key) const {
  const auto found = times.find(key);
  return found == times.end() ? nullptr : &found->second;
}

std::string_view OperatorTableHeading() { return kHeading; }

std::string OperatorTableText(const OperatorTable& table) {
  std::string text(kHeading);
  text += '\n';
  const OperatorMachine& machine = table.machine;
  const std::string where =
      fmt::format("{},{},{},{},{}", CsvQuoted(machine.device), CsvQuoted(machine.processor),
                  machine.threads, CsvQuoted(machine.torch), CsvQuoted(NameOfMode(machine)));
  for (const auto& [key, time] : table.times) {
    fmt::format_to(std::back_inserter(text), "{},{},{},{},{},{},{}\n", CsvQuoted(key.name),
                   CsvQuoted(key.arguments), where, time.calls, time.time_ns, time.spread,
                   time.noisy ? "noisy" : "measured");
  }
  return text;
}

Result<OperatorTable> ParseOperatorTable(std::string_view text, const std::string& path) {
  OperatorTable table;
  CsvRows rows(text);
  size_t first_line = 0;
  const auto wrong = [&](std::string_view what) {
    return BadInput(fmt::format("{}:{}: {}", path, rows.line(), what));
  };
  bool has_heading = false;
  while (!rows.at_end()) {
    std::optional<std::vector<std::string>> values = rows.Next();
    if (!values) return wrong("found a quotation mark that is not closed");
    if (values->size() == 1 && values->front().empty()) continue;
    if (!has_heading) {
      const std::string heading = fmt::format("{}", fmt::join(*values, ","));
      if (heading != kHeading) {
        return wrong(fmt::format("found '{}', expected the heading '{}'", heading, kHeading));
      }
      has_heading = true;
      continue;
    }
    if (values->size() != kColumns) {
      return wrong(fmt::format("found {} values, expected {}", values->size(), kColumns));
    }
    Result<OperatorRow> row = ParseRow(*values);
    if (!row) return wrong(row.error().message);
    if (first_line == 0) {
      first_line = rows.line();
      table.machine = row->machine;
    }
    if (const std::string other = DifferenceOf(row->machine, table.machine); !other.empty()) {
      return wrong(
          fmt::format("{} as in line {}: a table describes one machine", other, first_line));
    }
    if (!table.times.emplace(std::move(row->key), row->time).second) {
      return wrong("found a second time of this operator, expected one");
    }
  }
  if (has_heading) return table;
  return BadInput(fmt::format("{}: found an empty file, expected a table with the heading '{}'",
                              path, kHeading));
}

}  // namespace etude
