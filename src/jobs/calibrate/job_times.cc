#include "src/jobs/calibrate/job_times.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "src/analysis/comm/comm_match.h"
#include "src/analysis/comm/transfers.h"
#include "src/analysis/time/time_summary.h"
#include "src/formats/io/byte_source.h"
#include "src/jobs/job_classes.h"
#include "src/run/calls/comm_log.h"
#include "src/sim/machine/nccl_tests.h"
#include "src/trace/words/comm_backend.h"
#include "src/transform/read_job.h"

namespace etude {
namespace {

class JobReader {
 public:
  explicit JobReader(const RankTraces& job) {
    for (size_t i = 0; i < job.traces.size(); ++i) {
      logs_.push_back(ReadCommLog(job.traces[i], job.ranks[i]));
    }
    match_ = MatchComms(logs_);
    transfers_ = FindTransfers(job.traces, logs_, match_);
    for (size_t i = 0; i < logs_.size(); ++i) NoteBackend(job.traces[i], logs_[i]);
  }

  JobTimes Run() {
    for (const std::vector<CallPlace>& meeting : match_.meetings) AddCollective(meeting);
    for (const auto& [send, recv] : match_.messages) AddMessage(send, recv);
    received_.merge(awaited_);
    for (auto& [bytes, times] : received_) times_[{kMessageKind, 2, bytes}] = std::move(times);
    for (const auto& [key, times] : times_) AddPoint(key, times);
    made_.file.machine.backend = backend_;
    made_.file.machine.device = on_device_ ? "device" : "cpu";
    return std::move(made_);
  }

 private:
  // A collective's type, or none for a message; ranks and bytes.
  using Key = std::tuple<MeasuredKind, int64_t, int64_t>;

  const CommCall& CallAt(const CallPlace& at) const { return logs_[at.log].calls[at.call]; }

  void NoteBackend(const Trace& trace, const CommLog& log) {
    for (const CommCall& call : log.calls) {
      if (const CommBackend* backend = BackendOfLabel(trace.name(call.row))) {
        backend_ = backend->label.substr(0, backend->label.size() - 1);
      }
      on_device_ = on_device_ || trace.place(call.row) == Place::kDevice;
    }
  }

  std::optional<CommSpan> SpanOf(const CallPlace& at) const {
    return transfers_.spans[at.log][at.call];
  }

  void Add(const Key& key, std::span<const CallPlace> calls) {
    std::optional<CommSpan> all;  // the last begin, and the last end
    for (const CallPlace& at : calls) {
      const std::optional<CommSpan> span = SpanOf(at);
      if (!span) {
        ++made_.left_out;
        return;
      }
      if (!all) all = span;
      all->begin = std::max(all->begin, span->begin);
      all->end = std::max(all->end, span->end);
    }
    // It ended before an earlier one of its rank: how long it would have taken is unknown.
    if (all->end <= all->begin) {
      ++made_.left_out;
      return;
    }
    times_[key].push_back(all->end - all->begin);
  }

  void AddCollective(const std::vector<CallPlace>& calls) {
    const CommCall& first = CallAt(calls.front());
    const int64_t members = MembersOf(logs_, calls.front());
    const bool known = first.type != CollectiveType::kUnknown && !first.uneven &&
                       members == std::ssize(calls) && members >= 2;
    int64_t bytes = 0;
    for (const CallPlace& at : calls) {
      if (CallAt(at).bytes) bytes = std::max(bytes, CallAt(at).bytes->count);
    }
    const bool is_barrier = first.type == CollectiveType::kBarrier;
    if (!known || (bytes == 0 && !is_barrier)) {
      ++made_.left_out;
      return;
    }
    Add({first.type, members, is_barrier ? 0 : bytes}, calls);
  }

  // Gloo's labels end when the program has waited for them, which may be much later than the
  // message arrives: hence the lower quartile of messages. A message takes the time of its receive
  // if the send began before, and else the time from the send's begin to the receive's end. These
  // are on two clocks, and count only if there are none of the first kind.
  void AddMessage(const CallPlace& send, const CallPlace& recv) {
    const auto& bytes = CallAt(send).bytes;
    const std::optional<CommSpan> from = SpanOf(send);
    const std::optional<CommSpan> to = SpanOf(recv);
    Nanos time;
    if (from && to) time = to->end - std::max(from->begin, to->begin);
    if (!bytes || time <= Nanos{}) {
      ++made_.left_out;
      return;
    }
    const bool is_sent = from->begin <= to->begin;
    (is_sent ? received_ : awaited_)[bytes->count].push_back(time);
  }

  void AddPoint(const Key& key, const std::vector<Nanos>& times) {
    const auto& [kind, ranks, bytes] = key;
    const bool is_same = !made_.file.series.empty() && made_.file.series.back().kind == kind &&
                         made_.file.series.back().ranks == ranks;
    if (!is_same) made_.file.series.push_back({.kind = kind, .ranks = ranks});
    made_.file.series.back().points.push_back(
        {.bytes = bytes,
         .time_ns = kind == kMessageKind ? Summarise(times).p25.count : Mean(times).count,
         .spread = ErrorOfMean(times),
         .cores = 0});
  }

  std::vector<CommLog> logs_;
  CommMatch match_;
  Transfers transfers_;
  std::map<Key, std::vector<Nanos>> times_;
  // By size: the times of messages that were sent before the receive began, and of others.
  std::map<int64_t, std::vector<Nanos>> received_;
  std::map<int64_t, std::vector<Nanos>> awaited_;
  std::string backend_ = "unknown";
  bool on_device_ = false;
  JobTimes made_;
};

// Returns whether a file begins as the output of nccl-tests.
bool BeginsAsNcclTests(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  std::ifstream file(path, std::ios::binary);
  std::string begin(size_t{1} << 16, '\0');
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<size_t>(file.gcount()));
  return IsNcclTestsOutput(begin);
}

}  // namespace

Result<std::optional<JobTimes>> TimesOfNcclTests(const std::vector<std::string>& paths,
                                                 const RunContext& context) {
  if (!BeginsAsNcclTests(paths.front())) return std::nullopt;
  JobTimes made;
  for (const std::string& path : paths) {
    ETUDE_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path, context.limits));
    ETUDE_ASSIGN_OR_RETURN(MachineFile file, ParseNcclTests(text, path));
    made.file.machine = file.machine;
    for (MeasuredSeries& series : file.series) {
      if (made.file.Find(series.kind, series.ranks) != nullptr) {
        return BadInput(fmt::format("{}: found {} of {} ranks, which another file has, too", path,
                                    NameOfKind(series.kind), series.ranks));
      }
      made.file.series.push_back(std::move(series));
    }
  }
  return std::optional(std::move(made));
}

Result<JobTimes> TimesOfJob(const std::vector<std::string>& paths, bool strict,
                            const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const std::vector<RankInput> inputs, FindRanks(paths, context));
  ETUDE_ASSIGN_OR_RETURN(const RankTraces job, ReadRankTraces(inputs, /*groups=*/"", /*jobs=*/0,
                                                              {.strict = strict}, context));
  JobTimes times = JobReader(job).Run();
  if (times.file.series.empty()) {
    return BadInput(fmt::format(
        "{}: found no communication with times on all of its ranks ({} left out), expected a "
        "recorded job of several ranks",
        paths.front(), times.left_out));
  }
  return times;
}

}  // namespace etude
