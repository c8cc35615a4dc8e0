#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "src/trace/trace_builder.h"

namespace etude {

// A process group and the number by which old traces call it (`backend_id`).
struct NumberedGroup {
  ProcessGroup group;
  std::optional<int64_t> number;
};

// The JSON list of process groups that PyTorch puts into its traces:
// [{"pg_name", "pg_desc", "backend_config", "ranks", "group_size" or "pg_size", …}]. "ranks": []
// means all ranks of the job; a missing or unreadable list leaves ProcessGroup::ranks kNone. Lists
// written with Python's quotes are read too. nullopt if `json` is nothing of that kind.
std::optional<std::vector<NumberedGroup>> ParseProcessGroups(TraceBuilder& builder,
                                                             std::string_view json);

// Takes rank, world size and process groups out of the profiler's `distributedInfo`, an object of
// JSON. What is not there stays as it is.
void ReadDistributedInfo(TraceBuilder& builder, std::string_view json);

}  // namespace etude
