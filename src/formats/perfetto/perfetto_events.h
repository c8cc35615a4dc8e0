#pragma once

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/base/text/string_pool.h"
#include "src/formats/json/bracket_scanner.h"
#include "src/formats/kineto/json_arguments.h"
#include "src/formats/perfetto/perfetto_slices.h"
#include "src/formats/perfetto/perfetto_tracks.h"
#include "src/formats/profile/profile_builder.h"
#include "src/formats/profile/profiler_event.h"
#include "src/trace/trace_builder.h"

namespace etude::perfetto {

// Returns whether an event that is not a slice is one of Etude's that represent more than a mark:
// work without a known end, or an action of an allocator. `args`: members of a JSON object.
bool IsWork(EventType type, std::string_view name, std::string_view args);

// Passes slices to a ProfileBuilder as events of a profile. Not thread-safe.
class SliceEvents {
 public:
  // `name` is the name of the file, for messages.
  SliceEvents(std::string name, const Limits& limits, const StringPool& strings,
              const Tracks& tracks, TraceBuilder& builder);

  // Adds a slice, or an instant that IsWork. `index` is its number. Returns kBadInput if it exceeds
  // a limit. An unreadable slice is counted as malformed.
  Status Add(const TrackEvent& slice, uint64_t index);
  // Returns kBadInput if the trace has reached the maximum number of nodes.
  Status CheckNodes() const;
  void Finish();

 private:
  // Fills args_ with members of a JSON object.
  Status TakeArgs(std::string_view args, uint64_t index);
  // Returns false if the event is malformed.
  bool ReadEvent(const TrackEvent& slice, std::string_view args);
  bool ReadArgs();
  bool AddEvent(const TrackEvent& slice, uint64_t index);
  const Tracks::Lane& LaneOf(uint64_t track);

  std::string name_;
  const Limits& limits_;
  const StringPool& strings_;
  const Tracks& tracks_;
  TraceBuilder& builder_;
  ProfileBuilder profile_;
  std::unordered_map<uint64_t, Tracks::Lane> lanes_;
  simdjson::ondemand::parser parser_;
  JsonArguments arguments_;
  BracketScanner brackets_;
  // The event, and the texts that its views refer to.
  ProfilerEvent event_;
  std::string args_;  // a JSON object
  std::string duration_;
};

}  // namespace etude::perfetto
