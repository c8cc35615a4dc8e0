#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/report/page/page.h"
#include "src/suite/subset/subset.h"
#include "src/suite/subset/subset_ranking.h"

// Results of `etude suite subset` as text, JSON and a page.
namespace etude::suite {

// Returns all tables and notes for readers. `ranking`: nullopt without systems.
std::string ToText(const Subset& subset, const std::optional<SubsetRanking>& ranking);

// Returns {"format": "etude-suite-subset", "version": 1, …} (docs/models/suite_subset.md).
nlohmann::ordered_json ToJson(const Subset& subset, const std::optional<SubsetRanking>& ranking);

// Makes a page with the same tables, and maps of the tasks.
Page MakeSubsetPage(const Subset& subset, const std::optional<SubsetRanking>& ranking,
                    const std::vector<std::string>& inputs);

}  // namespace etude::suite
