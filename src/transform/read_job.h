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

// Where the trace of one rank comes from: a file in any format, or a host trace that is linked with
// the device trace of the same run on the way.
struct RankInput {
  std::optional<int64_t> rank;  // nullopt: not stated, the only one of its input
  std::string path;
  std::string device;                // "": nothing to link with
  std::optional<CaptureRank> files;  // all that the folder has of the rank, if a folder was given
  // Of a native capture with the profile of its devices: as the profile of both, not linked.
  bool as_profile = false;
  // One file of such a pair by itself: only both together say what had to wait for what.
  bool is_half = false;

  friend bool operator==(const RankInput& a, const RankInput& b) {
    return a.path == b.path && a.device == b.device && a.as_profile == b.as_profile;
  }
};

// The most complete input for `rank` in a capture folder: its linked trace, else its native capture
// with the profile of its devices, else host and device trace, else its Chakra trace, else the
// device trace alone.
RankInput RichestInput(const CaptureRank& rank);

// The input with the most times for `rank` in a capture folder: its device trace, with its native
// capture if there is one, which has what linking leaves out (calls of the runtime, whole threads);
// else the richest.
RankInput TimedInput(const CaptureRank& rank);

// All that a capture folder has of `rank`: each file, then its host trace, or native capture,
// linked with its device trace, whether or not a linked trace lies beside them.
std::vector<RankInput> AllInputs(const CaptureRank& rank);

// The ranks behind `paths`, each a trace, a capture folder (all its ranks, each as `choose` says)
// or "-". Ranks that no name tells stay unstated. kBadInput if a folder has none.
Result<std::vector<RankInput>> FindRanks(std::span<const std::string> paths,
                                         const RunContext& context,
                                         RankInput (*choose)(const CaptureRank&) = RichestInput);

// Reads it, linked if it has a device trace. Warns where host and device have nothing in common.
// Beside a native capture a profile counts that is of its devices only (native_profile.h); any
// other one says nothing that the capture does not.
Result<Trace> ReadRank(const RankInput& input, const ReadOptions& options,
                       const RunContext& context);

// Reads AllInputs of a rank and gives each to `take`, until that fails; what cannot be read as its
// error, and then no pair. A native capture with the profile of its devices comes linked and then
// as the profile of both. Each file is read once, but for a native capture, whose pair is made of
// one with the recorder's time in it. Of pairs it warns of nothing.
Status ReadAllOf(const CaptureRank& rank, const ReadOptions& options, const RunContext& context,
                 const std::function<Status(const RankInput&, const Result<Trace>&)>& take);

// Whether the file at `path` is a native capture.
Result<bool> IsNative(const std::string& path, const RunContext& context);

// A trace, and what messages call it.
struct NamedTrace {
  const Trace* trace = nullptr;
  std::string name;
};

// Links the traces of one run. Besides the errors of Link: kBadInput for traces of other kinds, and
// if no node of one has an event in the other.
Result<LinkResult> LinkRun(const NamedTrace& host, const NamedTrace& device,
                           const LinkOptions& options);

// Reads and links a native capture and the profile of its devices. kBadInput for a profile with
// operators of its own.
Result<LinkResult> LinkNative(const std::string& native, const std::string& devices,
                              const ReadOptions& read, const LinkOptions& options,
                              const RunContext& context);

}  // namespace etude
