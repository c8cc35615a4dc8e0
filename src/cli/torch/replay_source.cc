#include "src/cli/torch/replay_source.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "src/analysis/time/time_summary.h"
#include "src/compose/composition.h"
#include "src/formats/job/capture_folder.h"
#include "src/formats/read_trace.h"
#include "src/jobs/rank_list.h"
#include "src/report/certificate/replay_comparison.h"
#include "src/trace/job/rank_set.h"
#include "src/transform/link/link.h"
#include "src/transform/read_job.h"

namespace etude {
namespace {

Result<const CaptureRank*> ChooseRank(const CaptureFolder& folder, std::optional<int64_t> wanted) {
  if (!wanted && folder.ranks.size() == 1) return &folder.ranks.front();
  std::string known;
  for (const CaptureRank& rank : folder.ranks) {
    if (rank.number() == wanted) return &rank;
    known += (known.empty() ? "" : ", ") + std::to_string(rank.number());
  }
  return MakeError(ErrorCode::kUsage,
                   wanted ? fmt::format("{}: no rank {}; found {}", folder.path, *wanted, known)
                          : fmt::format("{}: has ranks {}; choose one with --rank, or --ranks all",
                                        folder.path, known));
}

// Returns the median of `get` over the steps; nullopt without values.
template <typename Get>
std::optional<int64_t> MedianOf(const std::vector<StepTime>& steps, Get get) {
  std::vector<int64_t> values;
  for (const StepTime& step : steps) {
    if (const std::optional<int64_t> value = get(step)) values.push_back(*value);
  }
  return Median(std::move(values));
}

// Returns the time of a step taken by other work: as measured, or for older captures, if the
// program never waited, the time in which none of its threads ran.
Nanos StolenOf(const StepTime& step) {
  const Nanos idle = std::max(Nanos{}, step.host.value_or(step.wall) - step.cpu);
  if (step.stolen) return std::min(*step.stolen, step.host.value_or(step.wall));
  return step.voluntary_switches.value_or(0) > 0 ? Nanos{} : idle;
}

// Returns the time of a step in which the program waited voluntarily. Only for programs that wait;
// idle time of others is due to other work.
Waiting WaitingOf(const std::vector<StepTime>& steps) {
  const auto times = MedianOf(steps, [](const StepTime& step) { return step.voluntary_switches; });
  const auto idle = MedianOf(steps, [](const StepTime& step) {
    return std::optional((step.host.value_or(step.wall) - step.cpu - StolenOf(step)).count);
  });
  if (times.value_or(0) <= 0 || idle.value_or(0) <= 0) return {};
  return {.time = Nanos{*idle}, .times = *times};
}

// Returns a note on steps that other work slowed down; "" if there are none.
std::string BusyNote(const std::vector<StepTime>& steps) {
  constexpr double kWorthSaying = 0.05;
  Nanos stolen;
  Nanos wall;
  for (const StepTime& step : steps) {
    stolen = stolen + StolenOf(step);
    wall = wall + step.host.value_or(step.wall);
  }
  const double share =
      wall.count > 0 ? static_cast<double>(stolen.count) / static_cast<double>(wall.count) : 0.0;
  if (share < kWorthSaying) return "";
  return fmt::format(
      "the machine was busy: other processes used the processor for {:.0f} % of the timed steps; "
      "wall times are too long, and CPU times may be too",
      100 * share);
}

// Returns the host's time for a step without waits and interruptions, the reference for the gaps of
// the recorded step, which recording has stretched. A host that runs ahead of a device waits in
// most steps for room in the queue, but not in the shortest one.
std::optional<Nanos> HostTimeOf(const std::vector<StepTime>& steps, const StepTimes& summary) {
  std::optional<Nanos> shortest;
  for (const StepTime& step : steps) {
    if (step.host) shortest = std::min(shortest.value_or(*step.host), *step.host);
  }
  if (shortest || !summary.wall) return shortest;
  const auto own = MedianOf(steps, [](const StepTime& step) {
    return std::optional((step.wall - StolenOf(step)).count);
  });
  return own ? Nanos{*own} : summary.wall->median;
}

// Reads the trace of a rank, with the operators' recorded times if available.
Result<Trace> ReadFromFolder(const CaptureFolder& folder, const CaptureRank& rank,
                             const ReadOptions& options, const RunContext& context) {
  if (!rank.native.empty()) return ReadTrace(rank.native, options, context);
  if (rank.host.empty()) {
    const std::string& joined = rank.linked.empty() ? rank.chakra : rank.linked;
    if (!joined.empty()) return ReadTrace(joined, options, context);
    return BadInput(folder.path +
                    ": found no PyTorch execution trace of the rank, which a replay requires; " +
                    std::string(kRecordHint));
  }
  ETUDE_ASSIGN_OR_RETURN(Trace host, ReadTrace(rank.host, options, context));
  if (rank.device.empty()) return host;
  Result<Trace> device = ReadTrace(rank.device, options, context);
  if (!device) {
    context.Warn("no recorded times: " + device.error().message);
    return host;
  }
  Result<LinkResult> linked =
      Link(host, *device, {.keep_orphans = false, .limits = context.limits});
  if (!linked) {
    context.Warn("no recorded times: " + linked.error().message);
    return host;
  }
  return std::move(linked->trace);
}

// Returns device work by host node of the rank's trace. A native capture has a separate device
// profile; it is read separately, because joining would keep the recorder's time in host times.
// Errors in the file are reported by its other readers.
std::vector<LaunchedWork> LaunchedOf(const Trace& trace, const CaptureRank& rank,
                                     const ReadOptions& options, const RunContext& context) {
  if (rank.native.empty() || rank.device.empty()) return FindLaunchedWork(trace);
  const Result<Trace> both =
      ReadRank({.rank = {}, .path = rank.native, .device = rank.device, .files = {}}, options,
               context.Unwarned());
  return both ? FindLaunchedWork(*both) : std::vector<LaunchedWork>();
}

// Returns kBadInput for a merged trace with operators of several processes: a replay is one
// process, and it is unknown which one is meant.
Status CheckOneProcess(const Trace& trace, const std::string& path) {
  std::set<std::string_view> processes;
  ForEachNode(trace, [&](NodeId node) {
    if (trace.op_schema(node) && trace.lane_id(node)) {
      processes.insert(trace.text(trace.lane(trace.lane_id(node)).process));
    }
  });
  if (processes.size() < 2) return {};
  return BadInput(
      fmt::format("{}: found operators of {} processes ('{}', '{}'{}), expected one process; to "
                  "replay several ranks use a folder with one trace per rank, and --ranks",
                  path, processes.size(), *processes.begin(), *std::next(processes.begin()),
                  processes.size() > 2 ? ", …" : ""));
}

}  // namespace

std::vector<StepKind> ReplaySource::Kinds() const {
  std::vector<StepKind> kinds = FindStepKinds(trace);
  WeighKinds(step_weights, kinds);
  return kinds;
}

const StepKind& ReplaySource::MainKind(const std::vector<StepKind>& kinds) const {
  const auto main = [&](const StepKind& kind) {
    return std::ranges::count_if(
        kind.steps, [&](size_t step) { return step < main_steps.size() && main_steps[step]; });
  };
  const auto found = std::ranges::max_element(kinds, {}, main);
  return main(*found) > 0 ? *found : MiddleKind(kinds);
}

Result<ReplaySource> OpenSource(const std::string& path, std::optional<int64_t> wanted_rank,
                                bool strict, const RunContext& context) {
  const ReadOptions options{.strict = strict};
  if (!IsFolder(path)) {
    if (wanted_rank) {
      return MakeError(ErrorCode::kUsage,
                       "--rank requires a folder, but " + path + " is one trace");
    }
    ETUDE_ASSIGN_OR_RETURN(Trace trace, ReadTrace(path, options, context));
    if (trace.traits().is_profile) {
      return BadInput(fmt::format(
          "{}: found only a profile (Kineto), expected a trace with operator arguments: a PyTorch "
          "execution trace, a linked trace or a native capture; {}",
          path, kRecordHint));
    }
    ReplaySource source{.trace = std::move(trace), .files = {path}, .notes = {}, .result_path = {}};
    source.launched = FindLaunchedWork(source.trace);
    if (const auto composed = CompositionOf(source.trace)) {
      source.threads = composed->threads;
    } else {
      ETUDE_RETURN_IF_ERROR(CheckOneProcess(source.trace, path));
    }
    return source;
  }
  ETUDE_ASSIGN_OR_RETURN(const CaptureFolder folder, ListCaptureFolder(path, context));
  ETUDE_ASSIGN_OR_RETURN(const CaptureRank* rank, ChooseRank(folder, wanted_rank));
  ETUDE_ASSIGN_OR_RETURN(Trace trace, ReadFromFolder(folder, *rank, options, context));
  ReplaySource source{.trace = std::move(trace),
                      .rank = folder.known_rank(*rank),
                      .files = rank->files(),
                      .notes = {},
                      .result_path = {}};
  source.launched = LaunchedOf(source.trace, *rank, options, context);
  if (const JobRank* job = folder.job_rank(*rank); job != nullptr) {
    // Folders not made by `etude record` are not changed.
    source.result_path = ReplayFile(folder, *rank);
    source.job = folder.job->id;
    const std::vector<StepTime> steps = job->ComparableSteps();
    source.original = SummariseSteps(steps);
    source.original_mix = MeanOfSteps(job->StepsOfRecordedKinds());
    source.step_weights = job->StepWeights();
    for (const std::string& signature : job->recorded_signatures) {
      source.main_steps.push_back(signature == job->recorded_signature);
    }
    source.host_time = HostTimeOf(steps, source.original);
    source.threads = job->threads;
    source.mmap_threshold = job->mmap_threshold;
    source.memory_growth = job->memory_growth;
    source.compiled_kernels = job->compiled_kernels;
    source.minor_faults = MedianOf(steps, [](const StepTime& step) { return step.minor_faults; });
    source.waiting = WaitingOf(steps);
    source.notes = job->notes;
    if (std::string busy = BusyNote(steps); !busy.empty()) source.notes.push_back(std::move(busy));
  }
  return source;
}

void FollowProgram(const ReplaySource& source, std::optional<int64_t> threads,
                   ReplayOptions& options) {
  options.threads =
      threads.value_or(std::clamp<int64_t>(source.threads.value_or(1), 1, kThreadsMax));
  options.original_step = source.host_time;
  options.mmap_threshold = source.mmap_threshold;
  options.compiled_kernels = source.compiled_kernels;
  options.minor_faults = source.minor_faults;
  options.memory_growth = source.memory_growth;
  options.original_waiting = source.waiting;
  options.launched = &source.launched;
}

namespace {

// Returns the minimum size of a job with this rank.
int64_t SizeWith(int64_t rank) { return rank < kMostListedRanks ? rank + 1 : rank; }

// Returns the size of the rank's job, as far as its trace records it.
int64_t JobSize(const Trace& trace, int64_t rank) {
  int64_t size = std::max(trace.info().world_size.value_or(1), SizeWith(rank));
  for (const ProcessGroup& group : trace.process_groups()) {
    size = std::max(size, group.size.value_or(1));
    for (const int64_t member : trace.ints(group.ranks)) size = std::max(size, SizeWith(member));
  }
  return size;
}

// Returns the size of the folder's job: from job.json, otherwise from the trace of one rank.
Result<int64_t> JobSize(const CaptureFolder& folder, const RunContext& context) {
  int64_t size = 0;
  for (const CaptureRank& rank : folder.ranks) size = std::max(size, SizeWith(rank.number()));
  if (folder.job && folder.job->world_size) return std::max(size, *folder.job->world_size);
  if (folder.ranks.empty()) return size;
  const CaptureRank& first = folder.ranks.front();
  // The rank's own process warns.
  ETUDE_ASSIGN_OR_RETURN(const Trace trace, ReadFromFolder(folder, first, {}, context.Unwarned()));
  return std::max(size, JobSize(trace, first.number()));
}

Status CheckJobSize(int64_t size, const std::string& path) {
  if (size <= kMostListedRanks) return {};
  return BadInput(fmt::format("{}: found a job of {} ranks, expected at most {}", path, size,
                              kMostListedRanks));
}

}  // namespace

Result<RanksOfJob> ChooseRanks(const std::string& path, const std::string& wanted,
                               const RunContext& context) {
  if (!IsFolder(path)) {
    return MakeError(ErrorCode::kUsage, path + ": --ranks requires a capture folder");
  }
  ETUDE_ASSIGN_OR_RETURN(const CaptureFolder folder, ListCaptureFolder(path, context));
  ETUDE_ASSIGN_OR_RETURN(const int64_t size, JobSize(folder, context));
  ETUDE_RETURN_IF_ERROR(CheckJobSize(size, path));
  std::vector<int64_t> all(static_cast<size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  ETUDE_ASSIGN_OR_RETURN(std::vector<int64_t> ranks, ChooseFromRanks(wanted, all, path));
  for (const int64_t rank : ranks) {
    if (std::ranges::find(folder.ranks, rank, &CaptureRank::number) == folder.ranks.end()) {
      return BadInput(fmt::format("{}: missing trace of rank {}, which --ranks {} includes", path,
                                  rank, wanted));
    }
  }
  return RanksOfJob{.size = size, .present = std::move(ranks)};
}

Result<RanksOfJob> AloneIn(const ReplaySource& source) {
  const int64_t rank = source.rank.value_or(source.trace.info().rank.value_or(0));
  const int64_t size = JobSize(source.trace, rank);
  ETUDE_RETURN_IF_ERROR(CheckJobSize(size, source.files.front()));
  return RanksOfJob{.size = size, .present = {rank}};
}

}  // namespace etude
