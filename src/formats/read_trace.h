#pragma once

#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/formats/trace_reader.h"
#include "src/trace/trace.h"

namespace etude {

class ByteSource;

// The way out for messages about a profile where an execution trace or a capture is needed.
inline constexpr std::string_view kRecordHint =
    "`etude record -o DIR -- COMMAND` records what is needed";

// What a file is, by its first uncompressed bytes.
enum class FileKind : uint8_t {
  kUnknown,
  kPyTorchEt,     // execution trace, JSON
  kKineto,        // Kineto or other Chrome trace, JSON
  kLinked,        // linked trace, JSON
  kChakra,        // Chakra protobuf (.et)
  kPerfetto,      // Perfetto trace (.pftrace)
  kNative,        // capture of the native recorder (.etude)
  kChakraFeeder,  // the feeder's JSON ("workload_graph"): recognised, not read
  kOtherJson,     // JSON of another kind
};
std::string_view Name(FileKind kind);

// Decides by `beginning`, the first uncompressed bytes of a file (kDetectBytes are plenty, fewer
// if the file has no more).
inline constexpr size_t kDetectBytes = size_t{1} << 16;
FileKind DetectFileKind(std::string_view beginning);

// Reads a trace in any of the known formats; `path` "-" is standard input. A rank of a job's folder
// is made of its class (job_folder.h).
Result<Trace> ReadTrace(const std::string& path, const ReadOptions& options,
                        const RunContext& context);
// The same from an open source.
Result<Trace> ReadTrace(ByteSource& source, const ReadOptions& options, const RunContext& context);

}  // namespace etude
