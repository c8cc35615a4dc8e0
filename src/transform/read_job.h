#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/formats/job/capture_folder.h"
#include "src/formats/trace_reader.h"
#include "src/trace/trace.h"
#include "src/transform/link/link.h"

namespace etude {

// Source of the trace of one rank: a file in any format, or a host trace to be linked with the
// device trace of the same run.
struct RankInput {
  std::optional<int64_t> rank;  // nullopt: not stated, the only one of its input
  std::string path;
  std::string device;                // "": not linked
  std::optional<CaptureRank> files;  // all files of the rank in the folder, if a folder was given
  // For a native capture with the profile of its devices: read as the profile of both, not linked.
  bool as_profile = false;
  // Whether this is only one file of such a pair. Only both together have the waits.
  bool is_half = false;

  friend bool operator==(const RankInput& a, const RankInput& b) {
    return a.path == b.path && a.device == b.device && a.as_profile == b.as_profile;
  }
};

// Returns the most complete input for `rank` in a capture folder: its linked trace, else its native
// capture with the profile of its devices, else host and device trace, else its Chakra trace, else
// the device trace alone.
RankInput RichestInput(const CaptureRank& rank);

// Returns the input with the most times for `rank` in a capture folder: its device trace, with its
// native capture if there is one, which includes parts that linking drops (runtime calls, whole
// threads); else the richest.
RankInput TimedInput(const CaptureRank& rank);

// Returns all inputs of `rank` in a capture folder: each file, then its host trace, or native
// capture, linked with its device trace, even if there is a linked trace.
std::vector<RankInput> AllInputs(const CaptureRank& rank);

// Returns the ranks in `paths`, each a trace, a capture folder (all its ranks, each selected by
// `choose`) or "-". Ranks not in a name stay unstated. kBadInput for an empty folder.
Result<std::vector<RankInput>> FindRanks(std::span<const std::string> paths,
                                         const RunContext& context,
                                         RankInput (*choose)(const CaptureRank&) = RichestInput);

// Reads the input, linked if it has a device trace. Warns if host and device have nothing in
// common. Beside a native capture, only a profile of its devices alone is used (native_profile.h);
// any other one adds nothing to the capture.
Result<Trace> ReadRank(const RankInput& input, const ReadOptions& options,
                       const RunContext& context);

// Reads AllInputs of a rank and passes each to `take`, until that fails. An unreadable input is
// passed as its error, and then no pair. A native capture with the profile of its devices is passed
// linked, then as the profile of both. Each file is read once, except a native capture, whose pair
// requires one with the recorder's time included. Gives no warnings about pairs.
Status ReadAllOf(const CaptureRank& rank, const ReadOptions& options, const RunContext& context,
                 const std::function<Status(const RankInput&, const Result<Trace>&)>& take);

// Returns true if the file at `path` is a native capture.
Result<bool> IsNative(const std::string& path, const RunContext& context);

// A trace with its name in messages.
struct NamedTrace {
  const Trace* trace = nullptr;
  std::string name;
};

// Links the traces of one run. In addition to the errors of Link: kBadInput for other kinds of
// traces, and if no node of one has an event in the other.
Result<LinkResult> LinkRun(const NamedTrace& host, const NamedTrace& device,
                           const LinkOptions& options);

// Reads and links a native capture and the profile of its devices. kBadInput for a profile with
// operators of its own.
Result<LinkResult> LinkNative(const std::string& native, const std::string& devices,
                              const ReadOptions& read, const LinkOptions& options,
                              const RunContext& context);

}  // namespace etude
