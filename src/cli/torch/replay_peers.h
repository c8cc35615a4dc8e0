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

// What --peers says stands for ranks that are not replayed.
class PeersOption {
 public:
  // "fake", "trace" or "20us,10GB/s"; "" if it is not given. kUsage for another text.
  static Result<PeersOption> Parse(std::string_view text);

  bool is_given() const { return !text_.empty(); }
  // Communications take as long as those of the trace did.
  bool follows_trace() const { return text_ == "trace"; }

  // Lets them stand for the ranks of `group` that are not there. `fit`: what the trace at `path`
  // says of communications. kBadInput if it would have to say something.
  Result<EmulatedPeers> StandIn(RankGroup& group, const std::optional<CommFit>& fit,
                                const std::optional<TimeScale>& scale,
                                const std::string& path) const;

 private:
  std::string text_;
  CommModel model_;  // that it says; no time for all but LATENCY,BANDWIDTH
};

}  // namespace etude
