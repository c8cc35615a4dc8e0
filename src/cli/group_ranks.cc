#include "src/cli/group_ranks.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/formats/json_document.h"

namespace etude {

Result<GroupRanks> ReadGroupRanks(const std::string& path, const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const nlohmann::json json,
                         ReadForeignDocument(path, "ranks of groups", context));
  const auto is_rank = [](const nlohmann::json& rank) { return rank.is_number_unsigned(); };
  GroupRanks groups;
  for (const auto& [name, ranks] : json.items()) {
    if (!json.is_object() || !ranks.is_array() || !std::ranges::all_of(ranks, is_rank)) {
      return BadInput(
          fmt::format("{}: '{}': expected lists of ranks by names of groups", path, name));
    }
    groups.emplace(name, ranks.get<std::vector<int64_t>>());
  }
  return groups;
}

std::string GroupRanksText(const GroupRanks& groups) {
  std::vector<std::pair<std::string, std::vector<int64_t>>> sorted(groups.begin(), groups.end());
  std::ranges::stable_sort(sorted, {}, [](const auto& group) { return group.first.size(); });
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [name, ranks] : sorted) json[name] = ranks;
  return json.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace etude
