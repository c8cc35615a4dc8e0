#pragma once

#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/formats/trace_reader.h"
#include "src/trace/trace.h"

namespace etude {

class ByteSource;

// Advice in errors about a profile where an execution trace or a capture is required.
inline constexpr std::string_view kRecordHint = "`etude record -o DIR -- COMMAND` records one";

// Kind of a file, by its first uncompressed bytes.
enum class FileKind : uint8_t {
  kUnknown,
  kPyTorchEt,     // execution trace, JSON
  kKineto,        // Kineto or other Chrome trace, JSON
  kLinked,        // linked trace, JSON
  kChakra,        // Chakra protobuf (.et)
  kPerfetto,      // Perfetto trace (.pftrace)
  kNative,        // capture of the native recorder (.etude)
  kChakraFeeder,  // the feeder's JSON ("workload_graph"): recognised, not supported
  kOtherJson,     // JSON of another kind
};
std::string_view Name(FileKind kind);

// Detects the kind from `beginning`, the first uncompressed bytes of a file; kDetectBytes, or the
// whole file, are enough.
inline constexpr size_t kDetectBytes = size_t{1} << 16;
FileKind DetectFileKind(std::string_view beginning);

// Reads a trace in any known format; `path` "-" is standard input. A rank of a job folder is
// generated from its class (job_folder.h).
Result<Trace> ReadTrace(const std::string& path, const ReadOptions& options,
                        const RunContext& context);
// Reads a trace from an open source.
Result<Trace> ReadTrace(ByteSource& source, const ReadOptions& options, const RunContext& context);

}  // namespace etude
