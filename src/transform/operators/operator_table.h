#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/transform/operators/operator_key.h"

namespace etude {

// Machine on which operators were measured, and how; "": unknown.
struct OperatorMachine {
  std::string device;     // "cpu"
  std::string processor;  // "AMD EPYC 7R13"
  int64_t threads = 1;    // of PyTorch's pool
  std::string torch;      // "2.13.0"
  bool in_step = true;    // as part of the step; false: repeated alone
  int64_t at_once = 1;    // processes that ran the step at the same time

  friend bool operator==(const OperatorMachine&, const OperatorMachine&) = default;
};

// Returns the first difference between machines, as "torch: found '2.7.0', expected '2.8.0'"; ""
// for equal ones.
std::string DifferenceOf(const OperatorMachine& found, const OperatorMachine& expected);

struct MeasuredCall {
  double time_ns = 0;  // of one call: median
  double spread = 0;   // (75th − 25th percentile) / median, over rounds
  int64_t calls = 0;   // measured ones
  bool noisy = false;  // the spread is too large for a reliable median

  friend bool operator==(const MeasuredCall&, const MeasuredCall&) = default;
};

// Measured times of operators on one machine, by key. A file of this form is described in
// docs/formats/operators.md.
struct OperatorTable {
  OperatorMachine machine;
  std::map<OperatorKey, MeasuredCall> times;

  // Returns nullptr if not measured.
  const MeasuredCall* Find(const OperatorKey& key) const;

  friend bool operator==(const OperatorTable&, const OperatorTable&) = default;
};

// First line of such a file.
std::string_view OperatorTableHeading();

// Writes a table as CSV, sorted by key.
std::string OperatorTableText(const OperatorTable& table);

// Parses such a file; `path` is its name in messages. kBadInput with file and line for another
// heading, values of another form, rows of another machine and two rows for one key. A table
// without rows has no machine: `table.machine` is then that of `OperatorMachine{}`.
Result<OperatorTable> ParseOperatorTable(std::string_view text, const std::string& path);

}  // namespace etude
