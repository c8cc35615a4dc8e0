#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/units.h"
#include "src/trace/trace.h"

namespace etude {

// What is different in trace `b` compared to trace `a`: which operators, and how much time. Views
// point into the traces.
struct TraceDiff {
  // Of one kind of difference; counts of nodes in `a` and `b`.
  enum class Change : uint8_t {
    kSame,     // stands in both at the same place
    kShapes,   // stands in both, and takes tensors of other shapes or types
    kRemoved,  // stands in `a` only
    kAdded,    // stands in `b` only
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
    std::optional<Nanos> self_a;  // time without what runs inside; nullopt: none is known
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
  // The traces have so little in common that nodes could not be paired: all are removed or added.
  bool unpaired = false;

  bool is_same() const { return reshaped == 0 && removed == 0 && added == 0; }
};
std::string_view Name(TraceDiff::Change change);  // stable: appears in --json

// Compares operators and communication of the host, in the order in which each thread came to them,
// and the work of devices in the order in which it was asked for: each sequence by names. What
// pools of threads run, of which the order is chance, is compared by names and shapes. Times do not
// make traces different. O(n log n), plus the differences (Align).
TraceDiff DiffTraces(const Trace& a, const Trace& b);

}  // namespace etude
