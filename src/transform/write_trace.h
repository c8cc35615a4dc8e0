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

// The formats in which traces are written.
enum class OutputFormat : uint8_t { kChakra, kLinked };

// `word` is "et", "linked", or "" for what the end of `path` says: .json is linked, anything else a
// Chakra trace.
OutputFormat ChooseFormat(std::string_view word, std::string_view path);

// What was written, and what the format could not hold.
struct WrittenTrace {
  std::string path;
  uint64_t nodes = 0;
  uint64_t bytes = 0;  // before compression
  bool renumbered = false;
  uint64_t lost_references = 0;  // to nodes that are not there, or that the format has no place for
  uint64_t lost_extras = 0;
  uint64_t clipped_times = 0;
  bool is_chakra = false;
  ToChakraResult chakra;  // its figures only; the trace is gone
};

// Writes `trace` to `path`, complete or not at all; first makes a graph for simulators of it if the
// format is Chakra's. What is linked of a profile alone (kKineto) is a profile.
Result<WrittenTrace> WriteTrace(const Trace& trace, const std::string& path, OutputFormat format,
                                const ToChakraOptions& options,
                                Existing existing = Existing::kFollow);

// The graph for simulators that is made of `source`, in whose name it says what is wrong with the
// trace, and warns of cycles that it broke.
Result<ToChakraResult> ToChakraOf(std::string_view source, const Trace& trace,
                                  const ToChakraOptions& options, const RunContext& context);

// Where a trace goes.
struct TraceOutput {
  std::string path;
  OutputFormat format = OutputFormat::kLinked;
  bool break_cycles = false;  // as of ToChakraOptions
  Existing existing = Existing::kFollow;
};

// Does this with what was made of `source`, in whose name it says what is wrong with the trace, and
// warns of cycles that it broke.
Result<WrittenTrace> WriteTraceOf(std::string_view source, const Trace& trace,
                                  const TraceOutput& output, const RunContext& context);

// Name of the file for one rank: "linked.3.json" and the compression of `like`.
std::string RankFileName(OutputFormat format, int64_t rank, std::string_view like);

}  // namespace etude
