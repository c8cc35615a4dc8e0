#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/analysis/health.h"
#include "src/report/text/table.h"

namespace etude {

// Result of inspecting one trace.
struct Inspected {
  std::optional<int64_t> rank;
  std::string path;
  std::vector<Table> tables;       // the same keys and columns for every trace
  std::vector<std::string> notes;  // limitations of the figures, one line each
  Health health;
};

// Joins the tables with number `index` of all traces, with a first column for the rank, or the
// trace's path if the rank is missing or not unique. At most `most_rows` rows per trace (0: all).
Table JoinTables(const std::vector<Inspected>& found, size_t index, size_t most_rows = 0);

// Returns all tables, or the one with key `only`, as text: plain for one trace, joined for several;
// then notes, and the health unless it is good.
std::string ToText(const std::vector<Inspected>& found, std::string_view only, size_t most_rows);
// Returns the tables as a document of `format` ("etude-stats").
nlohmann::ordered_json ToJson(const std::vector<Inspected>& found, std::string_view format,
                              std::string_view only);

}  // namespace etude
