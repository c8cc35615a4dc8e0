#pragma once

#include <simdjson.h>

#include <string_view>

#include "src/formats/profile/event_arguments.h"
#include "src/formats/profile/profiler_event.h"
#include "src/trace/stats.h"

namespace etude {

// Reads arguments of events that are members of a JSON object. Not thread-safe.
class JsonArguments {
 public:
  // Reads one argument. Arguments without a field in the event are added to its extras, uncut.
  simdjson::error_code Read(std::string_view key, simdjson::ondemand::value& value,
                            ProfilerEvent& event);

 private:
  EventArguments names_;
};

// Cuts the texts of an event's extras out of a JSON text that ends at `end`, and counts numbers
// that are not finite. Returns false if an extra is not valid JSON.
bool CutExtras(ProfilerEvent& event, const char* end, Stats& stats);

// Returns the characters between the quotes of a JSON string, with their escapes, and "" for any
// other token.
std::string_view BetweenQuotes(std::string_view token);

}  // namespace etude
