#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/base/units.h"
#include "src/trace/program_parts.h"
#include "src/trace/trace.h"
#include "src/trace/trace_builder.h"

namespace etude {

// Builds Chakra traces of work on a device, which ASTRA-sim takes.
class WorkBuilder {
 public:
  WorkBuilder();

  TraceBuilder& trace() { return builder_; }
  // Work with the next id that waits for `deps`.
  NodeId Add(NodeKind kind, std::string_view name, std::span<const NodeId> deps,
             std::optional<Nanos> duration = std::nullopt);
  // What is added from here on is of this part of the program; nullopt: of none.
  void BeginPart(std::optional<ProgramPart> part) { part_ = part; }
  // Without any work the trace gets a node that does nothing: ASTRA-sim aborts on a rank without
  // nodes.
  Result<Trace> Finish();

 private:
  TraceBuilder builder_;
  std::optional<ProgramPart> part_;
  std::vector<ProgramSpan> spans_;
};

}  // namespace etude
