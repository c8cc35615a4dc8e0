#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/analysis/comm/comm_model.h"
#include "src/base/result.h"
#include "src/replay/replay_report.h"
#include "src/torch/group/rank_group.h"
#include "src/transform/edit/time_scale.h"

namespace etude {

// Option --peers: model of ranks that are not replayed.
class PeersOption {
 public:
  // Parses "fake", "trace" or "20us,10GB/s"; "" if the option is not given. kUsage for other texts.
  static Result<PeersOption> Parse(std::string_view text);

  bool is_given() const { return !text_.empty(); }
  // Returns whether communications take as long as in the trace.
  bool follows_trace() const { return text_ == "trace"; }

  // Emulates the missing ranks of `group`. `fit`: communication times in the trace at `path`.
  // kBadInput if they are needed and missing.
  Result<EmulatedPeers> StandIn(RankGroup& group, const std::optional<CommFit>& fit,
                                const std::optional<TimeScale>& scale,
                                const std::string& path) const;

 private:
  std::string text_;
  CommModel model_;  // no time except for LATENCY,BANDWIDTH
};

}  // namespace etude
