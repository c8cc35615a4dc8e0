#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/trace/stats.h"
#include "src/trace/trace.h"

namespace etude {

// One way in which a trace breaks its own rules, with all its occurrences.
struct Finding {
  std::string_view name;  // stable: appears in --json
  Severity severity = Severity::kNote;
  uint64_t count = 0;
  std::string message;             // what it means, with the first occurrence spelled out
  std::vector<uint64_t> examples;  // source ids of the first nodes concerned, at most kMaxExamples
};

inline constexpr size_t kMaxExamples = 5;

// Checks what the reader could not refuse: references, cycles, times, shapes, groups, processes.
// Findings are ordered by severity, errors first. O(nodes + edges).
std::vector<Finding> Validate(const Trace& trace);

// Checks whether the host and the device trace that `linked` was made of are of one run; nothing
// else.
std::vector<Finding> ValidatePair(const Trace& linked);

// The trace's cycle as text: "12 'aten::add' waits for 15 'aten::mul' waits for 12"; "" if none.
std::string CycleText(const Trace& trace);

// True if no finding is an error.
bool IsValid(const std::vector<Finding>& findings);

}  // namespace etude
