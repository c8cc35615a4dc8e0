#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/container/intervals.h"
#include "src/trace/trace.h"

namespace etude {

// Drawable timeline: each thread and stream is a lane, and a lane has rows of events that do not
// overlap, callers above callees.
struct Timeline {
  struct Name {
    std::string text;
    NodeKind kind = NodeKind::kUnknown;
  };
  // Events by start; columns of one length.
  struct Row {
    std::vector<Nanos> begins;
    std::vector<Nanos> lengths;   // ≥ 0
    std::vector<uint32_t> names;  // indices into `names`
    std::vector<uint64_t> nodes;  // source ids; for merged events, that of the first
  };
  struct Lane {
    Place place = Place::kUnknown;
    std::string title;  // "thread 42", "device 0 stream 7"
    std::vector<Row> rows;
  };

  std::vector<Name> names;
  std::vector<Lane> lanes;       // threads before streams
  std::optional<Interval> span;  // nullopt: no event has times
  uint64_t events = 0;           // number of the trace's events in it, alone or merged
  uint64_t drawn = 0;            // number of events in the rows
  Nanos merged_below;            // shorter ones may be merged with their neighbours; 0: none are
  uint64_t untimed = 0;          // nodes left out without a start or a duration,
  uint64_t too_deep = 0;         // or nested more than kMostRows deep
};

inline constexpr size_t kMostRows = 64;  // max rows of a lane

// If there are more than `most` events, merges successive events shorter, and closer together, than
// a power of two of nanoseconds into one event ("17 events"). Uses the smallest sufficient power.
// O(n log n).
Timeline MakeTimeline(const Trace& trace, size_t most);

}  // namespace etude
