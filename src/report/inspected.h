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

// What an inspection found out about one trace.
struct Inspected {
  std::optional<int64_t> rank;
  std::string path;
  std::vector<Table> tables;       // the same keys and columns for every trace
  std::vector<std::string> notes;  // what the figures leave out, a line each
  Health health;
};

// The tables number `index` of all traces as one, with a first column that says of which rank a row
// is: its number, or the trace's path if it has none or shares it with another. At most `most_rows`
// rows of each (0: all).
Table JoinTables(const std::vector<Inspected>& found, size_t index, size_t most_rows = 0);

// The tables, or that with key `only`, for people: of one trace as they are, of several joined;
// then notes, and the health where it is not good.
std::string ToText(const std::vector<Inspected>& found, std::string_view only, size_t most_rows);
// The same as one document of `format` ("etude-stats").
nlohmann::ordered_json ToJson(const std::vector<Inspected>& found, std::string_view format,
                              std::string_view only);

}  // namespace etude
