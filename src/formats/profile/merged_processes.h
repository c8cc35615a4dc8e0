#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/container/intern_table.h"
#include "src/trace/trace_builder.h"

namespace etude {

// The processes of a profile. A file with the merged profiles of several ranks has several
// processes, each with its own correlation numbers, External ids and devices. Not thread-safe.
class MergedProcesses {
 public:
  // Records the process of the event whose node is added next: its pid ("" if it has none), and the
  // rank that TraceFusion writes among its arguments.
  void Add(TraceBuilder& builder, std::string_view pid, std::optional<int64_t> rank);

  // Separates processes if several launched work. Names the process of device work in its lane, and
  // changes correlations and External ids that two processes share, so that each belongs to one
  // process. Device work belongs to the process that its pid names. Otherwise it belongs, stream by
  // stream, to the process whose launches begin before it, and to the latest of these.
  void Separate(TraceBuilder& builder);

 private:
  // The text of a pid, or the stated rank, in the form of a lane.
  InternTable<Lane, struct ProcessTag> names_;
  std::vector<uint32_t> name_of_;  // by node: row of names_
};

}  // namespace etude
