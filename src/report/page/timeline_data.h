#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include "src/report/page/page.h"

namespace etude {

// The tracks as assets/timeline.js reads them: names once for all, lanes by track, and of each row
// its events in base64. An event is four LEB128 numbers: nanoseconds since the end of the event
// before (the first: since the begin of all tracks), length, name, and the node's id minus that of
// the event before (zigzag). docs/formats/report.md.
nlohmann::ordered_json TimelineJson(const std::vector<Page::Track>& tracks);

}  // namespace etude
