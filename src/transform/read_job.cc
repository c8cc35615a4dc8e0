#include "src/transform/read_job.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "src/formats/io/byte_source.h"
#include "src/formats/job/capture_folder.h"
#include "src/formats/job/rank_name.h"
#include "src/formats/read_trace.h"
#include "src/trace/other_process.h"
#include "src/transform/link/native_profile.h"

namespace etude {

RankInput RichestInput(const CaptureRank& rank) {
  RankInput input{.rank = rank.rank, .path = {}, .device = {}};
  if (!rank.linked.empty()) {
    input.path = rank.linked;
  } else if (!rank.native.empty()) {
    input.path = rank.native;
    input.device = rank.device;
  } else if (!rank.host.empty()) {
    input.path = rank.host;
    input.device = rank.device;
  } else {
    input.path = rank.chakra.empty() ? rank.device : rank.chakra;
  }
  return input;
}

RankInput TimedInput(const CaptureRank& rank) {
  if (rank.device.empty()) return RichestInput(rank);
  if (!rank.native.empty()) {
    return {.rank = rank.rank, .path = rank.native, .device = rank.device, .as_profile = true};
  }
  return {.rank = rank.rank, .path = rank.device, .device = {}};
}

std::vector<RankInput> AllInputs(const CaptureRank& rank) {
  std::vector<RankInput> inputs;
  for (const std::string& file : rank.files()) {
    inputs.push_back({.rank = rank.rank, .path = file, .device = {}});
  }
  const std::string& host = rank.native.empty() ? rank.host : rank.native;
  if (!host.empty() && !rank.device.empty()) {
    inputs.push_back({.rank = rank.rank, .path = host, .device = rank.device});
  }
  return inputs;
}

Result<std::vector<RankInput>> FindRanks(std::span<const std::string> paths,
                                         const RunContext& context,
                                         RankInput (*choose)(const CaptureRank&)) {
  std::vector<RankInput> inputs;
  std::vector<RankName> names;  // of files
  for (const std::string& path : paths) {
    if (path == "-" || !IsFolder(path)) {
      names.push_back(ReadRankName(std::filesystem::path(path).filename().string()));
    }
  }
  const std::vector<std::optional<int64_t>> ranks = RanksFromNames(names);
  size_t files = 0;
  for (const std::string& path : paths) {
    if (path == "-" || !IsFolder(path)) {
      inputs.push_back({.rank = ranks[files++], .path = path, .device = {}});
      continue;
    }
    ETUDE_ASSIGN_OR_RETURN(const CaptureFolder folder, ListCaptureFolder(path, context));
    for (const CaptureRank& rank : folder.ranks) {
      RankInput input = choose(rank);
      input.rank = folder.known_rank(rank);
      input.files = rank;
      inputs.push_back(std::move(input));
    }
  }
  return inputs;
}

namespace {

// Returns the rank stated in the trace, else that in its name.
std::optional<int64_t> StatedRank(const NamedTrace& trace) {
  const std::optional<int64_t> rank = trace.trace->info().rank;
  return rank ? rank : RankFromName(std::filesystem::path(trace.name).filename().string());
}

// Calls Link and prefixes errors with the files' names. Accepts different ranks in names alone, but
// not different ranks in names together with different processes.
Result<LinkResult> LinkFiles(const NamedTrace& host, const NamedTrace& device,
                             const LinkOptions& options) {
  Result<LinkResult> result = Link(*host.trace, *device.trace, options);
  if (!result) {
    return MakeError(result.error().code,
                     fmt::format("{} and {}: {}", host.name, device.name, result.error().message));
  }
  const std::optional<int64_t> of_host = StatedRank(host);
  const std::optional<int64_t> of_device = StatedRank(device);
  if (of_host && of_device && of_host != of_device && CountOfOtherProcess(result->trace) != 0) {
    return BadInput(fmt::format(
        "{} and {}: found traces of different processes, of rank {} and rank {}, expected "
        "traces of the same rank",
        host.name, device.name, *of_host, *of_device));
  }
  return result;
}

// A native capture and the related part of a Kineto trace.
struct NativeRun {
  Trace native;
  std::optional<Trace> profile;  // of both; nullopt if the Kineto trace has operators of its own
};

Result<NativeRun> ReadNativeRun(const std::string& native, const Trace& kineto, ReadOptions options,
                                const RunContext& context) {
  options.keep_recorder_time = IsOfDevicesOnly(kineto);
  NativeRun run;
  ETUDE_ASSIGN_OR_RETURN(run.native, ReadTrace(native, options, context));
  if (options.keep_recorder_time) {
    ETUDE_ASSIGN_OR_RETURN(run.profile, MakeNativeProfile(run.native, kineto, context.limits));
  }
  return run;
}

Result<Trace> ReadNativeRank(const RankInput& input, const Trace& kineto,
                             const ReadOptions& options, const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(NativeRun run, ReadNativeRun(input.path, kineto, options, context));
  if (!run.profile) return std::move(run.native);
  if (input.as_profile) return std::move(*run.profile);
  ETUDE_ASSIGN_OR_RETURN(LinkResult linked,
                         LinkFiles({&run.native, input.path}, {&*run.profile, input.device},
                                   {.limits = context.limits}));
  return std::move(linked.trace);
}

Result<Trace> LinkRank(const RankInput& input, const Trace& host, const Trace& device,
                       const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(LinkResult linked, LinkFiles({&host, input.path}, {&device, input.device},
                                                      {.limits = context.limits}));
  if (linked.host_matched() == 0) {
    context.Warn(input.device + ": found no event of " + input.path + "; the trace has no times");
  }
  return std::move(linked.trace);
}

using TakeTrace = std::function<Status(const RankInput&, const Result<Trace>&)>;

Status TakeNativePair(RankInput input, const Trace& kineto, const ReadOptions& options,
                      const RunContext& context, const TakeTrace& take) {
  Result<NativeRun> run = ReadNativeRun(input.path, kineto, options, context);
  if (!run) return take(input, tl::unexpected<Error>(run.error()));
  if (!run->profile) return take(input, std::move(run->native));
  Result<LinkResult> linked = LinkFiles({&run->native, input.path}, {&*run->profile, input.device},
                                        {.limits = context.limits});
  if (!linked) return take(input, tl::unexpected<Error>(linked.error()));
  ETUDE_RETURN_IF_ERROR(take(input, std::move(linked->trace)));
  input.as_profile = true;
  return take(input, *std::move(run->profile));
}

}  // namespace

Result<bool> IsNative(const std::string& path, const RunContext& context) {
  if (path == "-") return false;  // a pipe can be read only once
  ETUDE_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path, context.limits));
  ETUDE_ASSIGN_OR_RETURN(const std::string_view beginning, source.Peek(kDetectBytes));
  return DetectFileKind(beginning) == FileKind::kNative;
}

Result<Trace> ReadRank(const RankInput& input, const ReadOptions& options,
                       const RunContext& context) {
  if (!input.device.empty()) {
    ETUDE_ASSIGN_OR_RETURN(const bool native, IsNative(input.path, context));
    if (native) {
      ETUDE_ASSIGN_OR_RETURN(const Trace kineto, ReadTrace(input.device, options, context));
      return ReadNativeRank(input, kineto, options, context);
    }
  }
  ETUDE_ASSIGN_OR_RETURN(Trace trace, ReadTrace(input.path, options, context));
  if (input.device.empty()) return trace;
  ETUDE_ASSIGN_OR_RETURN(const Trace device, ReadTrace(input.device, options, context));
  return LinkRank(input, trace, device, context);
}

Status ReadAllOf(const CaptureRank& rank, const ReadOptions& options, const RunContext& context,
                 const std::function<Status(const RankInput&, const Result<Trace>&)>& take) {
  const std::vector<RankInput> inputs = AllInputs(rank);
  const auto is_in_pair = [&](const std::string& path) {
    return std::ranges::any_of(inputs, [&](const RankInput& input) {
      return !input.device.empty() && (input.path == path || input.device == path);
    });
  };
  std::map<std::string, Trace> kept;  // of the pair
  bool has_halves = false;
  for (RankInput input : inputs) {
    if (input.device.empty()) {
      Result<Trace> trace = ReadTrace(input.path, options, context);
      if (trace && input.path == rank.device && !rank.native.empty()) {
        has_halves = IsOfDevicesOnly(*trace);
      }
      input.is_half = has_halves && (input.path == rank.device || input.path == rank.native);
      ETUDE_RETURN_IF_ERROR(take(input, trace));
      if (trace && is_in_pair(input.path)) kept.emplace(input.path, *std::move(trace));
      continue;
    }
    const auto host = kept.find(input.path);
    const auto device = kept.find(input.device);
    if (host == kept.end() || device == kept.end()) continue;
    const RunContext unwarned = context.Unwarned();
    ETUDE_RETURN_IF_ERROR(
        input.path == rank.native
            ? TakeNativePair(input, device->second, options, unwarned, take)
            : take(input, LinkRank(input, host->second, device->second, unwarned)));
  }
  return {};
}

Result<LinkResult> LinkRun(const NamedTrace& host, const NamedTrace& device,
                           const LinkOptions& options) {
  if (!host.trace->traits().is_observed) {
    return BadInput(fmt::format("{}: found a {} trace, expected a PyTorch execution trace; {}",
                                host.name, Name(host.trace->info().format), kRecordHint));
  }
  if (!device.trace->traits().is_profile) {
    return BadInput(fmt::format("{}: found a {} trace, expected a Kineto trace; {}", device.name,
                                Name(device.trace->info().format), kRecordHint));
  }
  ETUDE_ASSIGN_OR_RETURN(LinkResult result, LinkFiles(host, device, options));
  if (result.host_matched() == 0 && result.host_linkable() != 0) {
    return BadInput(fmt::format(
        "{} and {}: found no node with an event in the other, expected traces of the same run",
        host.name, device.name));
  }
  return result;
}

Result<LinkResult> LinkNative(const std::string& native, const std::string& devices,
                              const ReadOptions& read, const LinkOptions& options,
                              const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const Trace kineto, ReadTrace(devices, read, context));
  ETUDE_ASSIGN_OR_RETURN(const NativeRun run, ReadNativeRun(native, kineto, read, context));
  if (!run.profile) {
    return BadInput(
        fmt::format("{}: found a profile with operators, expected a profile of devices only, "
                    "recorded together with {}",
                    devices, native));
  }
  return LinkFiles({&run.native, native}, {&*run.profile, devices}, options);
}

}  // namespace etude
