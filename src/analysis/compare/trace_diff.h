#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/units.h"
#include "src/trace/trace.h"

namespace etude {

// Differences of trace `b` relative to trace `a`, in operators and in time. Views point into the
// traces.
struct TraceDiff {
  // Kind of a difference.
  enum class Change : uint8_t {
    kSame,     // in both at the same place
    kShapes,   // in both, with tensors of other shapes or types
    kRemoved,  // in `a` only
    kAdded,    // in `b` only
  };
  struct Entry {
    Change change = Change::kSame;
    NodeId a;  // kNone if added
    NodeId b;  // kNone if removed
  };
  // Nodes of one name, or of one module, on the host or on devices: their times do not add up.
  struct Sum {
    std::string_view name;
    Place place = Place::kHost;
    uint64_t count_a = 0;
    uint64_t count_b = 0;
    uint64_t removed = 0;
    uint64_t added = 0;
    uint64_t reshaped = 0;
    std::optional<Nanos> self_a;  // time without the nodes inside; nullopt: all unknown
    std::optional<Nanos> self_b;
  };

  uint64_t same = 0;
  uint64_t reshaped = 0;
  uint64_t removed = 0;
  uint64_t added = 0;
  std::vector<Entry> entries;  // all that are not kSame, in order
  std::vector<Sum> ops;        // by difference in time, then in count, then by name
  std::vector<Sum> modules;
  std::optional<Nanos> span_a;
  std::optional<Nanos> span_b;
  // True if the traces have too little in common to pair nodes: all are removed or added.
  bool unpaired = false;

  bool is_same() const { return reshaped == 0 && removed == 0 && added == 0; }
};
std::string_view Name(TraceDiff::Change change);  // stable: used in --json

// Compares host operators and communication in the order of each thread, and device work in launch
// order: each sequence by names. Work of thread pools, whose order is random, is compared by names
// and shapes. Times alone are not a difference. O(n log n), plus the differences (Align).
TraceDiff DiffTraces(const Trace& a, const Trace& b);

}  // namespace etude
