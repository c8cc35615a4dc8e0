#include "src/analysis/comm/transfers.h"

#include <algorithm>
#include <cstddef>

#include "src/run/calls/callers.h"

namespace etude {
namespace {

class TransferFinder {
 public:
  TransferFinder(std::span<const Trace> traces, std::span<const CommLog> logs,
                 const CommMatch& match)
      : traces_(traces), logs_(logs), match_(match) {
    for (const CommLog& log : logs) {
      found_.spans.emplace_back(log.calls.size());
      found_.times.emplace_back(log.calls.size());
      own_.emplace_back(log.calls.size());
    }
  }

  Transfers Run() {
    // How long a send holds its rank follows from its receive, whose time follows from the send's
    // begin: the first round ignores that.
    for (int round = 0; round < 2; ++round) {
      found_.unaligned = 0;
      for (size_t log = 0; log < logs_.size(); ++log) AddSpans(log);
      for (const auto& [send, recv] : match_.messages) AddMessage(send, recv);
    }
    for (const std::vector<CallPlace>& meeting : match_.meetings) AddCollective(meeting);
    return std::move(found_);
  }

 private:
  const CommCall& CallAt(const CallPlace& at) const { return logs_[at.log].calls[at.call]; }
  std::optional<CommSpan> SpanOf(const CallPlace& at) const {
    return found_.spans[at.log][at.call];
  }
  std::optional<Nanos>& TimeOf(const CallPlace& at) { return found_.times[at.log][at.call]; }

  // Returns the time between call and end; nullopt if unknown.
  std::optional<CommSpan> OwnSpanOf(size_t log, const CommCall& call) const {
    if (!call.begin || !call.end) return std::nullopt;
    CommSpan span{.begin = *call.begin, .end = *call.end};
    // The backend's thread begins later.
    if (const NodeId issuer = IssuerOfLabel(traces_[log], call.row)) {
      if (const auto issued = EndOf(traces_[log], issuer)) {
        span.begin = std::min(span.begin, *issued);
      }
    }
    return span;
  }

  void AddSpans(size_t log) {
    const std::optional<Nanos> offset = match_.clocks[log].offset;
    std::optional<Nanos> free;  // end of the previous collective or send
    for (size_t i = 0; i < logs_[log].calls.size(); ++i) {
      const CommCall& call = logs_[log].calls[i];
      std::optional<CommSpan> span = OwnSpanOf(log, call);
      if (!span) continue;
      const bool is_recv = call.kind == NodeKind::kRecv;
      if (!is_recv && free) span->begin = std::max(span->begin, *free);
      if (call.kind == NodeKind::kCollective) {
        free = std::max(free, std::optional(span->end));
      } else if (const std::optional<Nanos> time = found_.times[log][i]; !is_recv && time) {
        free = std::max(free, std::optional(span->begin + *time));
      }
      own_[log][i] = span;
      if (!offset) continue;
      found_.spans[log][i] = CommSpan{.begin = span->begin - *offset, .end = span->end - *offset};
    }
  }

  // Returns the shortest duration of a member; nullopt if one is unknown.
  std::optional<Nanos> ShortestOf(std::span<const CallPlace> calls) const {
    std::optional<Nanos> shortest;
    for (const CallPlace& at : calls) {
      const std::optional<CommSpan>& span = own_[at.log][at.call];
      if (!span) return std::nullopt;
      const Nanos time = std::max(span->end - span->begin, Nanos{1});
      shortest = shortest ? std::min(*shortest, time) : time;
    }
    return shortest;
  }

  // Sets the times of all members.
  void Add(std::span<const CallPlace> calls) {
    std::optional<Nanos> begin;  // of the last member
    for (const CallPlace& at : calls) {
      const std::optional<CommSpan> span = SpanOf(at);
      if (!span) {
        const std::optional<Nanos> shortest = ShortestOf(calls);
        for (const CallPlace& one : calls) TimeOf(one) = shortest;
        if (shortest) ++found_.unaligned;
        return;
      }
      begin = std::max(begin, std::optional(span->begin));
    }
    for (const CallPlace& at : calls) TimeOf(at) = std::max(SpanOf(at)->end - *begin, Nanos{1});
  }

  void AddCollective(const std::vector<CallPlace>& calls) {
    const CommLog& log = logs_[calls.front().log];
    const CommLog::Group& group = log.groups[CallAt(calls.front()).group];
    // An unlisted group consists of the ranks that call it.
    const bool has_all = group.ranks.empty() && !group.is_all && log.world_size &&
                         *log.world_size <= std::ssize(logs_);
    if (has_all || MembersOf(logs_, calls.front()) == std::ssize(calls)) Add(calls);
  }

  void AddMessage(const CallPlace& send, const CallPlace& recv) {
    const CallPlace both[] = {send, recv};
    Add(both);
    // The program may wait for a send long after it is done.
    if (TimeOf(send) && TimeOf(recv)) TimeOf(send) = std::min(*TimeOf(send), *TimeOf(recv));
  }

  std::span<const Trace> traces_;
  std::span<const CommLog> logs_;
  const CommMatch& match_;
  std::vector<std::vector<std::optional<CommSpan>>> own_;  // as Transfers::spans, by own clocks
  Transfers found_;
};

}  // namespace

int64_t MembersOf(std::span<const CommLog> logs, const CallPlace& at) {
  const CommLog& log = logs[at.log];
  const CommLog::Group& group = log.groups[log.calls[at.call].group];
  if (!group.ranks.empty()) return std::ssize(group.ranks);
  return log.world_size.value_or(std::ssize(logs));
}

Transfers FindTransfers(std::span<const Trace> traces, std::span<const CommLog> logs,
                        const CommMatch& match) {
  return TransferFinder(traces, logs, match).Run();
}

TransferTimes FindTransferTimes(std::span<const Trace> traces, std::span<const int64_t> ranks,
                                const std::map<std::string, std::vector<int64_t>>& groups) {
  std::vector<CommLog> logs;
  for (size_t i = 0; i < traces.size(); ++i) {
    logs.push_back(ReadCommLog(traces[i], ranks[i]));
    for (CommLog::Group& group : logs.back().groups) {
      const auto listed = groups.find(group.name);
      if (group.ranks.empty() && listed != groups.end()) group.ranks = listed->second;
    }
  }
  const CommMatch match = MatchComms(logs);
  const Transfers found = FindTransfers(traces, logs, match);
  TransferTimes made{.unaligned = found.unaligned};
  for (const ClockOffset& clock : match.clocks) made.offsets.push_back(clock.offset);
  for (size_t i = 0; i < traces.size(); ++i) {
    std::map<uint64_t, Nanos>& of_nodes = made.of_nodes.emplace_back();
    for (size_t call = 0; call < logs[i].calls.size(); ++call) {
      const std::optional<Nanos>& time = found.times[i][call];
      if (!time) continue;
      const CommCall& one = logs[i].calls[call];
      of_nodes[one.node] = *time;
      of_nodes[traces[i].source_id(one.facts)] = *time;
      of_nodes[traces[i].source_id(one.row)] = *time;
    }
  }
  return made;
}

}  // namespace etude
