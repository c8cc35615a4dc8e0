#include "src/synth/job/find_mesh.h"

#include <algorithm>
#include <optional>
#include <set>

#include "src/base/text/quantity.h"

namespace etude {
namespace {

// Returns the axes along which `ranks` differ.
AxisSet AxesOf(const Mesh& mesh, const std::vector<int64_t>& ranks) {
  AxisSet axes = 0;
  for (size_t axis = 0; axis < mesh.axes().size(); ++axis) {
    const bool varies = std::ranges::any_of(ranks, [&](int64_t rank) {
      return mesh.Coordinate(rank, axis) != mesh.Coordinate(ranks.front(), axis);
    });
    if (varies) axes |= AxisSet{1} << axis;
  }
  return axes;
}

// Returns the axes with exactly these groups; nullopt if there are none.
std::optional<AxisSet> CommonAxes(const Mesh& mesh, const std::vector<NamedGroup>& groups) {
  const AxisSet axes = AxesOf(mesh, groups.front().ranks);
  const bool all = std::ranges::all_of(groups, [&](const NamedGroup& group) {
    return static_cast<int64_t>(group.ranks.size()) == mesh.GroupSize(axes) &&
           mesh.GroupRanks(mesh.GroupOf(group.ranks.front(), axes), axes) == group.ranks;
  });
  return all ? std::optional(axes) : std::nullopt;
}

// Returns the name as a number, if it prints as the same text.
std::optional<int64_t> NumberOf(const std::string& name) {
  const auto number = ParseWhole(name);
  return number && std::to_string(*number) == name ? number : std::nullopt;
}

// Returns the known names, by group; "" for unknown ones.
std::vector<std::string> NamesOf(const GroupKind& kind, size_t count) {
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) names.push_back(kind.NameOf(static_cast<int64_t>(i)));
  return names;
}

// Stores evenly spaced numbers compactly.
void SetNames(GroupKind& kind, std::vector<std::string> names) {
  std::optional<std::pair<int64_t, int64_t>> first, second;
  bool even = true;
  for (size_t i = 0; i < names.size() && even; ++i) {
    if (names[i].empty()) {
      even = false;
      break;
    }
    const auto number = NumberOf(names[i]);
    const auto at = static_cast<int64_t>(i);
    constexpr int64_t kMost = int64_t{1} << 30;
    if (!number || *number > kMost || *number < -kMost) {
      even = false;
    } else if (!first) {
      first = {at, *number};
    } else if (!second) {
      second = {at, *number};
    } else {
      even = *number - second->second == (at - second->first) * (second->second - first->second);
    }
  }
  kind.names.clear();
  if (even && first) {
    kind.first_name = first->second;
    kind.name_step = second ? second->second - first->second : 1;
  } else {
    kind.names = std::move(names);
  }
}

}  // namespace

Mesh FindMesh(int64_t world, std::span<const std::vector<int64_t>> groups) {
  // Positions where ranks begin to differ along another axis.
  std::set<int64_t> cuts = {world};
  for (const std::vector<int64_t>& ranks : groups) {
    const RankSet set = RankSet::Of(ranks);
    if (set.blocks().size() != 1) continue;
    for (const RankSet::Dim& dim : set.blocks().front().dims) {
      cuts.insert(dim.stride);
      cuts.insert(dim.stride * dim.count);
    }
  }
  std::vector<MeshAxis> axes;
  int64_t stride = 1;
  for (const int64_t cut : cuts) {
    if (cut <= stride || cut % stride != 0 || world % cut != 0) continue;
    axes.push_back({.name = "axis" + std::to_string(axes.size()), .size = cut / stride});
    stride = cut;
  }
  if (axes.size() > Mesh::kMostAxes) axes = {{.name = "axis0", .size = world}};
  return Mesh::Make(std::move(axes)).value_or(Mesh());
}

size_t AddGroupKind(Job& job, std::vector<NamedGroup> groups, bool callers_only) {
  std::ranges::sort(groups, {}, [](const NamedGroup& group) { return group.ranks.front(); });
  const std::optional<AxisSet> axes = CommonAxes(job.mesh, groups);
  if (!axes) {
    GroupKind kind;
    kind.callers_only = callers_only;
    std::vector<std::string> names;
    for (const NamedGroup& group : groups) {
      kind.listed.push_back(RankSet::Of(group.ranks));
      names.push_back(group.name);
    }
    SetNames(kind, std::move(names));
    job.group_kinds.push_back(std::move(kind));
    return job.group_kinds.size() - 1;
  }
  const auto count = static_cast<size_t>(job.mesh.GroupCount(*axes));
  const auto index = [&](const NamedGroup& group) {
    return static_cast<size_t>(job.mesh.GroupOf(group.ranks.front(), *axes));
  };
  for (size_t i = 0; i < job.group_kinds.size(); ++i) {
    if (job.group_kinds[i].axes != axes || job.group_kinds[i].callers_only != callers_only)
      continue;
    std::vector<std::string> names = NamesOf(job.group_kinds[i], count);
    const bool fits = std::ranges::all_of(groups, [&](const NamedGroup& group) {
      return names[index(group)].empty() || names[index(group)] == group.name;
    });
    if (!fits) continue;
    for (const NamedGroup& group : groups) names[index(group)] = group.name;
    SetNames(job.group_kinds[i], std::move(names));
    return i;
  }
  GroupKind kind;
  kind.axes = axes;
  kind.callers_only = callers_only;
  std::vector<std::string> names(count);
  for (const NamedGroup& group : groups) names[index(group)] = group.name;
  SetNames(kind, std::move(names));
  job.group_kinds.push_back(std::move(kind));
  return job.group_kinds.size() - 1;
}

Route MakeRoute(const Mesh& mesh, std::vector<std::pair<int64_t, int64_t>> pairs) {
  Route route;
  for (size_t axis = 0; axis < mesh.axes().size(); ++axis) {
    const int64_t size = mesh.axes()[axis].size;
    const auto [sender, receiver] = pairs.front();
    int64_t offset = mesh.Coordinate(receiver, axis) - mesh.Coordinate(sender, axis);
    offset = (offset + size) % size;
    route.shift.push_back(2 * offset > size ? offset - size : offset);
  }
  const bool same = std::ranges::all_of(
      pairs, [&](const auto& pair) { return mesh.Shift(pair.first, route.shift) == pair.second; });
  const bool moves = std::ranges::any_of(route.shift, [](int64_t offset) { return offset != 0; });
  if (!same || !moves) {
    route.shift.clear();
    route.pairs = std::move(pairs);
  }
  return route;
}

}  // namespace etude
