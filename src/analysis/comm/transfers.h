#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/analysis/comm/comm_match.h"
#include "src/base/units.h"
#include "src/run/calls/comm_log.h"
#include "src/trace/trace.h"

namespace etude {

// A communication of one rank, by the clock of the first rank.
struct CommSpan {
  // The later of the end of the issuing call on the program's thread, after which it is in
  // progress, and the end of the rank's previous collective or send: a simulated rank runs one at a
  // time.
  Nanos begin;
  Nanos end;
};

// Recorded communications of a job without the time in which members wait for others. By log and
// call.
struct Transfers {
  // nullopt: unknown times, or the rank's clock cannot be compared.
  std::vector<std::vector<std::optional<CommSpan>>> spans;
  // From the last member's begin to this member's end, at least 1 ns; nullopt: unknown. Of a send,
  // at most that of the receive. Of ranks whose clocks cannot be compared, the shortest duration of
  // a member.
  std::vector<std::vector<std::optional<Nanos>>> times;
  uint64_t unaligned = 0;  // collectives and messages of such ranks
};

// `logs` and `match` belong to `traces`, which are in the same order. The method is that of SMon
// (Lin et al., OSDI 2025): transfer is the end less the latest begin.
Transfers FindTransfers(std::span<const Trace> traces, std::span<const CommLog> logs,
                        const CommMatch& match);

// Times of the communications of a job's traces.
struct TransferTimes {
  // By trace and id of a communication's nodes: that with its times, that with its facts, and the
  // operator that issued it.
  std::vector<std::map<uint64_t, Nanos>> of_nodes;
  // By trace: its clock relative to the first one, to be subtracted; nullopt: unknown.
  std::vector<std::optional<Nanos>> offsets;
  uint64_t unaligned = 0;  // as in Transfers
};
// `ranks`: of the traces. `groups`: members of groups that the traces do not list, by name; an
// unlisted group consists of the ranks that call it if all ranks have traces.
TransferTimes FindTransferTimes(std::span<const Trace> traces, std::span<const int64_t> ranks,
                                const std::map<std::string, std::vector<int64_t>>& groups);

// Returns the number of members of a call's group. A job of unknown size has the ranks with traces.
int64_t MembersOf(std::span<const CommLog> logs, const CallPlace& at);

}  // namespace etude
