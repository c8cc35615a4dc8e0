#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include "src/report/page/page.h"

namespace etude {

// Returns the tracks in the format of assets/timeline.js: shared names, lanes by track, and the
// events of each row in base64. An event is four LEB128 numbers: ns since the end of the previous
// event (for the first: since the begin of all tracks), length, name, and the difference of the
// node id to the previous event's (zigzag). See docs/formats/report.md.
nlohmann::ordered_json TimelineJson(const std::vector<Page::Track>& tracks);

}  // namespace etude
