#pragma once

#include <cstdint>
#include <string_view>

#include "src/formats/chakra/chakra_schema.h"
#include "src/trace/trace_builder.h"

// Limitations of ASTRA-sim (518bd51): docs/models/astra_sim.md.
namespace etude {

// Size of the float that PyTorch's barrier on NCCL reduces: ASTRA-sim has no barriers.
inline constexpr int64_t kAstraBarrierBytes = 4;
// An all-gather with fewer bytes than chunks never ends.
inline constexpr int64_t kAstraLeastGather = 1024;
// Min bytes of a first computation: it takes at least 1 ns below 65 TB/s; ASTRA-sim aborts with
// less.
inline constexpr int64_t kAstraLeastFirst = 64 * 1024;

// Adds an attribute that ASTRA-sim reads and a trace has no column for.
void AddAstraAttr(TraceBuilder& builder, NodeId node, std::string_view name, chakra::ValueType type,
                  uint64_t value);

}  // namespace etude
