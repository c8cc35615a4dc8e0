#include "src/cli/torch/replay_peers.h"

#include <cstddef>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "src/base/text/quantity.h"
#include "src/base/units.h"

namespace etude {
namespace {

// Parses "20us,10GB/s": latency, and bytes per second.
Result<CommModel> ParsePeers(std::string_view text) {
  const size_t comma = text.find(',');
  const std::string_view bandwidth =
      comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  const auto latency = ParseTime(text.substr(0, comma));
  const auto bytes = bandwidth.ends_with("/s")
                         ? ParseBytes(bandwidth.substr(0, bandwidth.size() - 2))
                         : std::nullopt;
  if (latency && *latency >= Nanos{} && bytes && *bytes > Bytes{}) {
    return CommModel{.latency = *latency, .bytes_per_second = static_cast<double>(bytes->count)};
  }
  return MakeError(
      ErrorCode::kUsage,
      fmt::format(
          "--peers: found '{}', expected fake, trace, or LATENCY,BANDWIDTH such as 20us,10GB/s",
          text));
}

}  // namespace

Result<PeersOption> PeersOption::Parse(std::string_view text) {
  PeersOption peers;
  peers.text_ = text;
  if (peers.is_given() && !peers.follows_trace() && text != "fake") {
    ETUDE_ASSIGN_OR_RETURN(peers.model_, ParsePeers(text));
  }
  return peers;
}

Result<EmulatedPeers> PeersOption::StandIn(RankGroup& group, const std::optional<CommFit>& fit,
                                           const std::optional<TimeScale>& scale,
                                           const std::string& path) const {
  EmulatedPeers peers{.model = model_,
                      .size = group.size(),
                      .present = static_cast<int64_t>(group.present().size())};
  if (follows_trace()) {
    peers.fit = fit;
    if (!fit) {
      return BadInput(path +
                      ": no communication in the trace has a duration; use --peers "
                      "LATENCY,BANDWIDTH or --peers fake");
    }
    peers.model = fit->model;
  }
  group.SetPeers(peers.model.Slower(scale ? scale->slowdown() * scale->OfCommunication() : 1));
  return peers;
}

}  // namespace etude
