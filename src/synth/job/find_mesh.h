#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/trace/job/job.h"
#include "src/trace/job/mesh.h"

namespace etude {

// Returns a mesh of `world` ranks with axes "axis0" …, along which the given groups of ranks
// differ, as far as these fit together; else a mesh of one axis.
Mesh FindMesh(int64_t world, std::span<const std::vector<int64_t>> groups);

// A group of a job; its ranks must ascend.
struct NamedGroup {
  std::string name;
  std::vector<int64_t> ranks;
};

// Returns the index of the job's kind with these disjoint groups. Adds them to a kind along the
// same axes, or a new kind. `callers_only`: see GroupKind.
size_t AddGroupKind(Job& job, std::vector<NamedGroup> groups, bool callers_only = false);

// Returns the route of these ascending senders and receivers: a common shift along the axes if
// there is one, else the pairs.
Route MakeRoute(const Mesh& mesh, std::vector<std::pair<int64_t, int64_t>> pairs);

}  // namespace etude
