#include "src/cli/group_ranks.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/cli/output_files.h"
#include "src/formats/capture_folder.h"
#include "src/formats/json_document.h"

namespace etude {

Result<GroupRanks> ReadGroupRanks(const std::string& path, const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const nlohmann::json json,
                         ReadForeignDocument(path, "ranks of groups", context));
  const auto is_rank = [](const nlohmann::json& rank) {
    return rank.is_number_unsigned() && rank.get<uint64_t>() <= uint64_t{INT64_MAX};
  };
  GroupRanks groups;
  for (const auto& [name, ranks] : json.items()) {
    if (!json.is_object() || !ranks.is_array() || !std::ranges::all_of(ranks, is_rank)) {
      return BadInput(
          fmt::format("{}: '{}': expected lists of ranks by names of groups", path, name));
    }
    auto& members = groups.emplace(name, ranks.get<std::vector<int64_t>>()).first->second;
    std::vector<int64_t> sorted = members;
    std::ranges::sort(sorted);
    if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end()) {
      return BadInput(fmt::format("{}: '{}': found rank {} twice, expected each rank once", path,
                                  name, *twice));
    }
  }
  if (!json.is_object()) {
    context.Warn(
        fmt::format("{}: found {}, taken for no groups; expected lists of ranks by names "
                    "of groups",
                    path, json.dump()));
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

std::string GroupsBeside(const std::vector<std::string>& traces) {
  std::string found;
  for (const std::string& trace : traces) {
    const std::filesystem::path path(trace);
    if (path.extension() != ".et" || !RankFromName(path.filename().string())) return {};
    const std::string groups = GroupsFileName((path.parent_path() / path.stem().stem()).string());
    if (!found.empty() && groups != found) return {};
    found = groups;
  }
  std::error_code error;
  return std::filesystem::is_regular_file(found, error) ? found : std::string();
}

Status CheckGroupRanks(const std::string& path, const GroupRanks& groups, const CommLog& log) {
  for (const CommLog::Group& group : log.groups) {
    const auto known = groups.find(group.name);
    if (known == groups.end()) continue;
    std::vector<int64_t> ranks = known->second;
    std::ranges::sort(ranks);
    const auto fault = [&](const std::string& expected) {
      return BadInput(fmt::format("{}: '{}': found ranks {}, expected {}", path, group.name,
                                  RankListText(ranks), expected));
    };
    if (!std::ranges::binary_search(ranks, log.rank)) {
      return fault(fmt::format("rank {} among them, which calls this group", log.rank));
    }
    if (log.world_size && ranks.back() >= *log.world_size) {
      return fault(fmt::format("ranks of the job, which has {}", *log.world_size));
    }
    std::vector<int64_t> listed = group.ranks;
    std::ranges::sort(listed);
    if (!listed.empty() && listed != ranks) {
      return fault(
          fmt::format("{}, which the trace of rank {} has", RankListText(listed), log.rank));
    }
  }
  return {};
}

GroupRanks UnlistedGroups(const Job& job) {
  std::set<size_t> kinds;
  for (const RankClass& one : job.classes) {
    for (const RankClass::Group& group : one.groups) {
      if (!group.listed && !job.group_kinds[group.kind].callers_only) kinds.insert(group.kind);
    }
  }
  GroupRanks groups;
  std::set<std::string> ambiguous;  // names that a file cannot tell apart
  for (const size_t at : kinds) {
    const GroupKind& kind = job.group_kinds[at];
    const int64_t count =
        kind.axes ? job.mesh.GroupCount(*kind.axes) : static_cast<int64_t>(kind.listed.size());
    for (int64_t i = 0; i < count; ++i) {
      const std::string name = kind.NameOf(i);
      if (name.empty()) continue;
      std::vector<int64_t> ranks = kind.RanksOf(job.mesh, i);
      const auto [known, added] = groups.emplace(name, ranks);
      if (!added && known->second != ranks) ambiguous.insert(name);
    }
  }
  for (const std::string& name : ambiguous) groups.erase(name);
  return groups;
}

}  // namespace etude
