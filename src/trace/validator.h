#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/trace/stats.h"
#include "src/trace/trace.h"

namespace etude {

// Violation of a trace's rules, with all its occurrences.
struct Finding {
  std::string_view name;  // stable: used in --json
  Severity severity = Severity::kNote;
  uint64_t count = 0;
  std::string message;             // explanation, with details of the first occurrence
  std::vector<uint64_t> examples;  // source ids of the first nodes concerned, at most kMaxExamples
};

inline constexpr size_t kMaxExamples = 5;

// Checks conditions that readers accept: references, cycles, times, shapes, groups, processes.
// Findings are ordered by severity, errors first. O(nodes + edges).
std::vector<Finding> Validate(const Trace& trace);

// Checks only whether the host and the device trace of `linked` come from one run.
std::vector<Finding> ValidatePair(const Trace& linked);

// Returns the trace's cycle as text: "12 'aten::add' waits for 15 'aten::mul' waits for 12"; "" if
// none.
std::string CycleText(const Trace& trace);

// Returns true if no finding is an error.
bool IsValid(const std::vector<Finding>& findings);

}  // namespace etude
