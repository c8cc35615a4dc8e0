#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/formats/io/atomic_file.h"
#include "src/trace/trace.h"
#include "src/transform/to_chakra.h"

namespace etude {

// Output formats of traces.
enum class OutputFormat : uint8_t { kChakra, kLinked };

// Returns the format for `word`: "et", "linked", or "" to decide by the ending of `path`: .json is
// linked, anything else a Chakra trace.
OutputFormat ChooseFormat(std::string_view word, std::string_view path);

// Counts of written items, and of those that the format cannot hold.
struct WrittenTrace {
  std::string path;
  uint64_t nodes = 0;
  uint64_t bytes = 0;  // before compression
  bool renumbered = false;
  uint64_t lost_references = 0;  // to missing nodes, or unsupported by the format
  uint64_t lost_extras = 0;
  uint64_t clipped_times = 0;
  bool is_chakra = false;
  ToChakraResult chakra;  // only its figures; the trace is gone
};

// Writes `trace` to `path` atomically, for Chakra after conversion to a graph for simulators. A
// trace linked from a profile alone (kKineto) is written as a profile.
Result<WrittenTrace> WriteTrace(const Trace& trace, const std::string& path, OutputFormat format,
                                const ToChakraOptions& options,
                                Existing existing = Existing::kFollow);

// Converts the trace of `source` to a graph for simulators. Errors name `source`; broken cycles
// give a warning.
Result<ToChakraResult> ToChakraOf(std::string_view source, const Trace& trace,
                                  const ToChakraOptions& options, const RunContext& context);

// Destination of a trace.
struct TraceOutput {
  std::string path;
  OutputFormat format = OutputFormat::kLinked;
  bool break_cycles = false;  // see ToChakraOptions
  Existing existing = Existing::kFollow;
};

// Writes the trace of `source`. Errors name `source`; broken cycles give a warning.
Result<WrittenTrace> WriteTraceOf(std::string_view source, const Trace& trace,
                                  const TraceOutput& output, const RunContext& context);

// Returns the file name for one rank: "linked.3.json" with the compression ending of `like`.
std::string RankFileName(OutputFormat format, int64_t rank, std::string_view like);

}  // namespace etude
