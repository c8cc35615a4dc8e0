#pragma once

#include <cstdint>

#include "src/base/result.h"
#include "src/formats/io/byte_sink.h"
#include "src/trace/trace.h"

namespace etude {

// Information lost in the file.
struct LinkedWriteReport {
  uint64_t nodes = 0;
  uint64_t bytes = 0;
  bool renumbered = false;   // ids were not unique: nodes are numbered from 0 in file order
  uint64_t lost_edges = 0;   // dependencies that the format cannot hold
  uint64_t lost_extras = 0;  // protobuf fields that JSON cannot hold
};

// Writes `trace` as a linked trace in JSON (docs/formats/linked.md), which chakra_converter reads
// too; a trace without times becomes an execution trace. Deterministic. Returns errors of `sink`.
Result<LinkedWriteReport> WriteLinkedJson(const Trace& trace, const ByteSink& sink);

// Writes the host nodes of `trace` as PyTorch's observer would (docs/formats/pytorch-et.md):
// without times, dependencies, allocator events and Etude's own facts.
Result<LinkedWriteReport> WriteExecutionTrace(const Trace& trace, const ByteSink& sink);

}  // namespace etude
