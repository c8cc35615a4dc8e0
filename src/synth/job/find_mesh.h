#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/trace/job/job.h"
#include "src/trace/job/mesh.h"

namespace etude {

// A mesh of `world` ranks whose axes, named "axis0" …, are those along which the given groups of
// ranks differ, as far as these fit together; else of one axis.
Mesh FindMesh(int64_t world, std::span<const std::vector<int64_t>> groups);

// A group of a job, its ranks ascending.
struct NamedGroup {
  std::string name;
  std::vector<int64_t> ranks;
};

// The index of the job's kind with these groups, which are disjoint; adds them to a kind along the
// same axes, or a new kind. `callers_only` as of GroupKind.
size_t AddGroupKind(Job& job, std::vector<NamedGroup> groups, bool callers_only = false);

// The route of these senders and receivers, ascending: the same way along the axes for all of them,
// if there is one.
Route MakeRoute(const Mesh& mesh, std::vector<std::pair<int64_t, int64_t>> pairs);

}  // namespace etude
