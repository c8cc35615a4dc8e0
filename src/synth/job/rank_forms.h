#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/analysis/comm/comm_match.h"
#include "src/base/result.h"
#include "src/run/calls/comm_log.h"
#include "src/synth/job/encode_job.h"
#include "src/trace/job/job.h"
#include "src/trace/trace.h"

namespace etude {

// A process group as it is, with its members.
struct ActualGroup {
  std::string name;
  std::vector<int64_t> ranks;  // ascending
  bool known = false;          // else the ranks are those that name the group
};

// A communication as it is: all calls that belong together.
struct ActualEvent {
  bool is_message = false;
  bool routed = false;  // of a message: sender and receiver are known
  int64_t sender = 0;
  int64_t receiver = 0;
  std::vector<CallPlace> calls;
};

// What a rank does, put so that ranks which do the same say the same.
struct RankForm {
  int64_t rank = 0;
  const Trace* trace = nullptr;
  Trace program;
  std::vector<size_t> groups;  // by number in the program: ActualGroup
  std::vector<bool> known;     // likewise: ActualGroup::known
  std::vector<bool> listed;    // likewise
  bool states_rank = false;
  bool peers_in_names = false;
  std::vector<bool> states_self;  // by call
  std::vector<bool> routed;       // likewise
  uint64_t hash = 0;

  bool SameAs(const RankForm& other) const;
};

// What the ranks of a job do, by rank, and what they share.
struct RankForms {
  std::vector<RankForm> forms;
  std::vector<CommLog> logs;  // by form
  std::vector<ActualEvent> events;
  std::vector<ActualGroup> groups;
  std::map<int64_t, RankFacts> facts;  // of ranks that have any
};

// kBadInput for a rank that occurs twice, a trace with a cycle, and communications that do not fit
// together. The traces outlive the forms.
Result<RankForms> MakeRankForms(std::span<const RankOfJob> ranks, const EncodeJobOptions& options);

// Indices of forms that are equal, by first rank.
std::vector<std::vector<size_t>> EqualForms(const std::vector<RankForm>& forms);

}  // namespace etude
