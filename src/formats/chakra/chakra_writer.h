#pragma once

#include <cstdint>

#include "src/base/result.h"
#include "src/formats/io/byte_sink.h"
#include "src/trace/trace.h"

namespace etude {

struct ChakraWriteOptions {
  // True to write nodes in the trace's order with their ids unchanged and with dangling references,
  // so that a file that was read is written back unchanged. Otherwise nodes have ascending unique
  // ids, and every reference names a node of the file.
  bool verbatim = false;
};

// Information lost in the file.
struct ChakraWriteReport {
  uint64_t nodes = 0;
  uint64_t bytes = 0;
  bool renumbered = false;          // ids were not unique: nodes are numbered from 0 in file order
  uint64_t dropped_references = 0;  // to nodes missing from the trace
  uint64_t clipped_times = 0;       // negative starts, which only Etude's attribute holds
};

// Writes `trace` as a Chakra trace (docs/formats/chakra.md). Deterministic. Returns errors of
// `sink`.
Result<ChakraWriteReport> WriteChakra(const Trace& trace, const ChakraWriteOptions& options,
                                      const ByteSink& sink);

}  // namespace etude
