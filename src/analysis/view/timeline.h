#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/container/intervals.h"
#include "src/trace/trace.h"

namespace etude {

// What ran when, made for drawing: each thread and stream is a lane, and a lane has rows of events
// that do not overlap, callers above what they call.
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
    std::vector<uint64_t> nodes;  // ids in the file; of several events as one, the first
  };
  struct Lane {
    Place place = Place::kUnknown;
    std::string title;  // "thread 42", "device 0 stream 7"
    std::vector<Row> rows;
  };

  std::vector<Name> names;
  std::vector<Lane> lanes;       // threads before streams
  std::optional<Interval> span;  // nullopt: no event has times
  uint64_t events = 0;           // of the trace that are in it, alone or with others
  uint64_t drawn = 0;            // in the rows
  Nanos merged_below;            // shorter ones may stand as one with their neighbours; 0: none do
  uint64_t untimed = 0;          // nodes that are not in it: they have no start or no duration,
  uint64_t too_deep = 0;         // or are nested more than kMostRows deep
};

inline constexpr size_t kMostRows = 64;  // of a lane

// Where there are more than `most` events, those that are shorter than some power of two of
// nanoseconds and follow each other within as much time stand as one event, "17 events"; the least
// power that does. O(n log n).
Timeline MakeTimeline(const Trace& trace, size_t most);

}  // namespace etude
