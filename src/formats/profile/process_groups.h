#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "src/trace/trace_builder.h"

namespace etude {

// A process group and its number in old traces (`backend_id`).
struct NumberedGroup {
  ProcessGroup group;
  std::optional<int64_t> number;
};

// Parses the JSON list of process groups in PyTorch's traces: [{"pg_name", "pg_desc",
// "backend_config", "ranks", "group_size" or "pg_size", …}]. "ranks": [] means all ranks of the
// job. A missing or unreadable list leaves ProcessGroup::ranks kNone. Lists with Python's quotes
// are read too. Returns nullopt if `json` is not such a list.
std::optional<std::vector<NumberedGroup>> ParseProcessGroups(TraceBuilder& builder,
                                                             std::string_view json);

// Reads rank, world size and process groups from the profiler's `distributedInfo`, a JSON object.
// Missing facts stay unchanged.
void ReadDistributedInfo(TraceBuilder& builder, std::string_view json);

}  // namespace etude
