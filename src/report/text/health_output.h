#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "src/analysis/health.h"
#include "src/trace/stats.h"

namespace etude {

// What was counted while reading, by name; what did not happen is left out.
nlohmann::ordered_json ToJson(const Stats& stats);

// {"verdict": "usable", "reasons": [{"verdict", "name", "text"}], "graph_time": {"recorded_ns",
// "simulated_ns", "error"}, "waits": {"count", "guessed"}}, of which the last two are null where
// they are unknown.
nlohmann::ordered_json ToJson(const Health& health);
// "12 found, 3 (25.0 %) guessed from times".
std::string WaitsText(const WaitCounts& waits);
// "usable" and a line per reason, indented; one line "good" if there are none.
std::string ToText(const Health& health);
// The same for commands that do something else: one line with the worst reason, "" of what is good.
std::string ShortText(const Health& health);

}  // namespace etude
