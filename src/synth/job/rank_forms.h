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

// Actual process group with its members.
struct ActualGroup {
  std::string name;
  std::vector<int64_t> ranks;  // ascending
  bool known = false;          // else the ranks are those that name the group
};

// Actual communication: all calls that belong together.
struct ActualEvent {
  bool is_message = false;
  bool routed = false;  // for messages: sender and receiver are known
  int64_t sender = 0;
  int64_t receiver = 0;
  std::vector<CallPlace> calls;
};

// Normalized program of a rank, such that ranks that do the same have equal ones.
struct RankForm {
  int64_t rank = 0;
  const Trace* trace = nullptr;
  Trace program;
  std::vector<size_t> groups;  // by number in the program: ActualGroup
  std::vector<bool> known;     // by number in the program: ActualGroup::known
  std::vector<bool> listed;    // by number in the program
  bool states_rank = false;
  bool peers_in_names = false;
  std::vector<bool> states_self;  // by call
  std::vector<bool> routed;       // by call
  uint64_t hash = 0;

  bool SameAs(const RankForm& other) const;
};

// Forms of a job's ranks, by rank, and shared data.
struct RankForms {
  std::vector<RankForm> forms;
  std::vector<CommLog> logs;  // by form
  std::vector<ActualEvent> events;
  std::vector<ActualGroup> groups;
  std::map<int64_t, RankFacts> facts;  // of ranks that have any
};

// Makes the forms. kBadInput for a duplicate rank, a trace with a cycle, and communications that do
// not fit together. The traces must outlive the forms.
Result<RankForms> MakeRankForms(std::span<const RankOfJob> ranks, const EncodeJobOptions& options);

// Returns sets of indices of equal forms, by first rank.
std::vector<std::vector<size_t>> EqualForms(const std::vector<RankForm>& forms);

}  // namespace etude
