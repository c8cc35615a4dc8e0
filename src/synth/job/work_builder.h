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

// Builds Chakra traces of device work for ASTRA-sim.
class WorkBuilder {
 public:
  WorkBuilder();

  TraceBuilder& trace() { return builder_; }
  // Adds work with the next id that depends on `deps`.
  NodeId Add(NodeKind kind, std::string_view name, std::span<const NodeId> deps,
             std::optional<Nanos> duration = std::nullopt);
  // Sets the part of the program for the work added from here on; nullopt: none.
  void BeginPart(std::optional<ProgramPart> part) { part_ = part; }
  // Returns the trace. If it has no work, adds a node without effect, because ASTRA-sim aborts on a
  // rank without nodes.
  Result<Trace> Finish();

 private:
  TraceBuilder builder_;
  std::optional<ProgramPart> part_;
  std::vector<ProgramSpan> spans_;
};

}  // namespace etude
