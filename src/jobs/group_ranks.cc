#include "src/jobs/group_ranks.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/text/ascii.h"
#include "src/formats/job/capture_folder.h"
#include "src/formats/json/json_document.h"
#include "src/jobs/output_files.h"
#include "src/report/text/format.h"

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
          fmt::format("{}: '{}': expected a list of ranks for each group name", path, name));
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
        fmt::format("{}: found {}, read as no groups; expected a list of ranks for each group name",
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
      return fault(fmt::format("rank {} among them because it calls this group", log.rank));
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

namespace {

// Returns "3" for "3.0", a whole number in another spelling, and "" for any other name.
std::string_view WholeOf(std::string_view name) {
  const size_t point = name.find('.');
  if (point == std::string_view::npos || point == 0) return {};
  const auto digits = [](std::string_view text) { return std::ranges::all_of(text, IsDigit); };
  const std::string_view fraction = name.substr(point + 1);
  if (!digits(name.substr(0, point)) || fraction.find_first_not_of('0') != std::string_view::npos) {
    return {};
  }
  return name.substr(0, point);
}

// Returns a text such as "2 groups ('a' and 'b')".
std::string GroupsText(std::vector<std::string> names) {
  constexpr size_t kMost = 4;
  std::ranges::sort(names, ComesBefore);
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i) {
    text += fmt::format("{}'{}'", i == 0 ? "" : ", ", names[i]);
  }
  return fmt::format("{} ({}{})", FormatCount(names.size(), "group"), text,
                     names.size() > kMost ? " …" : "");
}

}  // namespace

void GroupNames::Add(const CommLog& log) {
  ranks_.insert(log.rank);
  for (const CommLog::Group& group : log.groups) {
    if (group.name.empty()) continue;
    Calls& calls = calls_[group.name];
    ++calls.ranks;
    calls.is_listed = calls.is_listed || !group.ranks.empty() || group.is_all;
  }
}

void GroupNames::Apply(const std::string& path, GroupRanks& groups,
                       const RunContext& context) const {
  std::set<std::string> unused;
  for (const auto& [name, ranks] : groups) {
    // The group of all ranks may be listed only for ASTRA-sim, as `convert` does.
    const auto with_trace =
        std::ranges::count_if(ranks, [&](int64_t rank) { return ranks_.contains(rank); });
    if (with_trace > 0 && std::cmp_less(with_trace, ranks_.size())) unused.insert(name);
  }
  std::vector<std::string> unlisted;
  for (const auto& [name, calls] : calls_) {
    auto found = groups.find(name);
    if (found == groups.end()) found = groups.find(std::string(WholeOf(name)));
    if (found != groups.end()) {
      unused.erase(found->first);
      groups.emplace(name, found->second);
    } else if (!calls.is_listed && (!path.empty() || calls.ranks < ranks_.size())) {
      unlisted.push_back(name);
    }
  }
  if (!unlisted.empty()) {
    const std::string found = path.empty() ? "found no ranks of " : path + ": missing ranks of ";
    context.Warn(fmt::format("{}{} in the traces; using the ranks that call a group", found,
                             GroupsText(unlisted)));
  }
  if (!unused.empty() && !path.empty()) {
    context.Warn(fmt::format("{}: found no trace that calls {}", path,
                             GroupsText({unused.begin(), unused.end()})));
  }
}

GroupRanks UnlistedGroups(const Job& job) {
  std::set<size_t> kinds;
  for (const RankClass& one : job.classes) {
    for (const RankClass::Group& group : one.groups) {
      if (!group.listed && !job.group_kinds[group.kind].callers_only) kinds.insert(group.kind);
    }
  }
  GroupRanks groups;
  std::set<std::string> ambiguous;  // names that a file cannot distinguish
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
