#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/container/intern_table.h"
#include "src/trace/trace_builder.h"

namespace etude {

// The processes of a profile. One file may have several, each with correlation numbers, External
// ids and devices of its own: profiles of ranks that were merged. Not thread-safe.
class MergedProcesses {
 public:
  // Notes what the event of the node that is added next says of its process: its pid, "" if it has
  // none, and the rank that TraceFusion writes among its arguments.
  void Add(TraceBuilder& builder, std::string_view pid, std::optional<int64_t> rank);

  // Where several processes launched work: names the process of device work in its lane, and moves
  // the correlations and External ids that two of them have, so that each is that of one process.
  // Device work belongs to the process that its pid names; else, stream by stream, to the one
  // whose launches begin before it, and the latest of these.
  void Separate(TraceBuilder& builder);

 private:
  // A pid's text, or the rank where it is stated, in the form of a lane.
  InternTable<Lane, struct ProcessTag> names_;
  std::vector<uint32_t> name_of_;  // by node: row of names_
};

}  // namespace etude
