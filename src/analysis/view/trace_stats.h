#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "src/analysis/time/time_summary.h"
#include "src/base/units.h"
#include "src/run/recorded_run.h"
#include "src/trace/trace.h"

namespace etude {

// Statistics of a trace. Sums are over known values; nullopt if none is known. Views point into the
// trace.
struct TraceStats {
  struct Kind {
    NodeKind kind = NodeKind::kUnknown;
    uint64_t count = 0;
    uint64_t timed = 0;          // with a duration
    std::optional<Nanos> total;  // sum of durations
    std::optional<Nanos> self;   // sum of durations excluding nodes inside, on the same lane
  };
  // All nodes of one name, kind and place.
  struct Op {
    std::string_view name;
    NodeKind kind = NodeKind::kUnknown;
    Place place = Place::kUnknown;
    uint64_t count = 0;
    std::optional<Nanos> total;
    std::optional<Nanos> self;
    std::optional<TimeSummary> durations;
    std::optional<Nanos> longest;
    uint64_t shapes = 0;          // number of distinct lists of input shapes
    std::optional<Bytes> inputs;  // total of element sizes over all input tensors
    std::optional<Bytes> outputs;
  };
  struct Module {
    std::string_view name;
    uint64_t operators = 0;
    uint64_t device_ops = 0;
    std::optional<Nanos> host_self;    // sum over its operators
    std::optional<Nanos> device_time;  // sum over its device work
  };
  // A thread or a stream.
  struct LaneUse {
    Place place = Place::kUnknown;
    Lane lane;
    std::string_view process;
    std::string_view thread;
    uint64_t count = 0;           // number of working nodes
    std::optional<Nanos> busy;    // union of their times
    std::optional<double> share;  // of the span of the trace
  };
  // Sent or copied data.
  struct Transfers {
    uint64_t count = 0;
    uint64_t sized = 0;  // with a size
    std::optional<Bytes> bytes;
    std::optional<Bytes> smallest;
    std::optional<Bytes> largest;
    std::optional<Nanos> time;          // sum of durations
    std::optional<double> bytes_per_s;  // over those with size and duration
  };
  // Communications of one type, group and element type; each counts once.
  struct Communication : Transfers {
    std::string_view type;
    std::string_view group;  // "" if not recorded
    DType dtype = DType::kUnknown;
  };
  // Device copies and fills of one name, which includes source and destination.
  struct Copy : Transfers {
    std::string_view name;
    NodeKind kind = NodeKind::kMemcpy;  // or kMemset
  };

  uint64_t nodes = 0;
  std::optional<Nanos> span;    // last end minus first start
  std::vector<Kind> kinds;      // by kind
  std::vector<Op> ops;          // by self time, then count, then name
  std::vector<Module> modules;  // by device time, then host time, then name
  std::vector<LaneUse> lanes;   // threads before streams
  std::vector<Communication> communications;
  std::vector<Copy> copies;  // by time, then name
};

// Computes the statistics of a run. O(n log n).
TraceStats CountTrace(const RecordedRun& run);

}  // namespace etude
