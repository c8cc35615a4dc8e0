#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/base/text/string_pool.h"
#include "src/formats/perfetto/perfetto_schema.h"

namespace etude::perfetto {

// An event of a track, or a slice once its end was found. Times are nanoseconds of the trace's
// clock.
struct TrackEvent {
  int64_t time = 0;
  uint64_t track = 0;
  uint64_t order = 0;  // position in the file
  EventType type = EventType::kBegin;
  StringId name;
  StringId category;
  StringId args;  // members of a JSON object
  int64_t end = 0;
  bool has_end = false;
  bool ends_at_once = false;  // whether it ends a slice that began right before it in the file
};

// The events of all tracks, which become slices. Not thread-safe.
class Slices {
 public:
  explicit Slices(StringPool& strings) : strings_(strings) {}

  // Adds an event. Events are added in the order of the file.
  void Add(TrackEvent event);
  size_t size() const { return events_.size(); }
  // Removes all events after the first `count`.
  void Truncate(size_t count) { events_.resize(count); }

  // Assigns each end to the innermost open slice of its track. Slices and instants remain, in the
  // order of time. Returns the number of ends without a beginning.
  uint64_t Pair();

  const std::vector<TrackEvent>& events() const { return events_; }

 private:
  void Sort();
  StringId Joined(StringId a, StringId b);

  StringPool& strings_;
  std::vector<TrackEvent> events_;
};

}  // namespace etude::perfetto
