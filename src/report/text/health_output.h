#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "src/analysis/health.h"
#include "src/trace/stats.h"

namespace etude {

// Returns the statistics of reading by name, without zeros.
nlohmann::ordered_json ToJson(const Stats& stats);

// Returns {"verdict": "usable", "reasons": [{"verdict", "name", "text"}], "graph_time":
// {"recorded_ns", "simulated_ns", "error"}, "waits": {"count", "guessed"}}. The last two are null
// if unknown.
nlohmann::ordered_json ToJson(const Health& health);
// Returns "12 found, 3 (25.0 %) guessed from times".
std::string WaitsText(const WaitCounts& waits);
// Returns "usable" and an indented line per reason; "good" if there are none.
std::string ToText(const Health& health);
// Returns one line with the worst reason, for other commands; "" if the health is good.
std::string ShortText(const Health& health);

}  // namespace etude
