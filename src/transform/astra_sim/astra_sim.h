#pragma once

#include <cstdint>
#include <string_view>

#include "src/formats/chakra/chakra_schema.h"
#include "src/trace/trace_builder.h"

// What ASTRA-sim (518bd51) takes: docs/models/astra_sim.md.
namespace etude {

// What PyTorch's barrier on NCCL reduces, a float: ASTRA-sim knows no barriers.
inline constexpr int64_t kAstraBarrierBytes = 4;
// An all-gather of fewer bytes than chunks never ends.
inline constexpr int64_t kAstraLeastGather = 1024;
// That a first computation moves: it takes at least 1 ns below 65 TB/s, and aborts with less.
inline constexpr int64_t kAstraLeastFirst = 64 * 1024;

// An attribute that ASTRA-sim reads and a trace has no place for.
void AddAstraAttr(TraceBuilder& builder, NodeId node, std::string_view name, chakra::ValueType type,
                  uint64_t value);

}  // namespace etude
