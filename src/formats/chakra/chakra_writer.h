#pragma once

#include <cstdint>

#include "src/base/result.h"
#include "src/formats/io/byte_sink.h"
#include "src/trace/trace.h"

namespace etude {

struct ChakraWriteOptions {
  // Nodes in the trace's order, with their ids whatever they are and with references to nodes that
  // are not there: a file that was read is written back as it was. Otherwise nodes stand in
  // ascending order of ids, ids are unique, and every reference names a node of the file.
  bool verbatim = false;
};

// What a file cannot say as the trace does.
struct ChakraWriteReport {
  uint64_t nodes = 0;
  uint64_t bytes = 0;
  bool renumbered = false;          // ids were not unique: nodes are numbered from 0 in file order
  uint64_t dropped_references = 0;  // to nodes that are not in the trace
  uint64_t clipped_times = 0;       // starts before 0: only our own attribute has them
};

// Writes `trace` as a Chakra trace (docs/formats/chakra.md). The same trace gives the same bytes.
// Errors are those of `sink`.
Result<ChakraWriteReport> WriteChakra(const Trace& trace, const ChakraWriteOptions& options,
                                      const ByteSink& sink);

}  // namespace etude
