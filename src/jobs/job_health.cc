#include "src/jobs/job_health.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/analysis/time/graph_time.h"
#include "src/report/tables/graph_time_tables.h"
#include "src/report/text/format.h"
#include "src/report/text/health_output.h"

namespace etude {

TraceUse UseOf(const RankInput& input, const CaptureRank& rank) {
  return {.is_richest = input == RichestInput(rank), .is_timed = input == TimedInput(rank)};
}

void JobHealth::Add(const Health& health, RankRun run, TraceUse use) {
  const int64_t rank = run.log.rank;
  parts_.Add(health, fmt::format("rank {}", rank));
  const auto [found, is_new] = logs_.emplace(rank, run.log);
  if (!is_new && use.is_richest) found->second = run.log;
  if (use.is_timed && health.waits) {
    if (!waits_) waits_.emplace();
    waits_->count += health.waits->count;
    waits_->guessed += health.waits->guessed;
  }
  if (use.is_timed && health.graph_time) {
    runs_.push_back(std::move(run));
    last_graph_time_ = health.graph_time;
  }
}

bool JobHealth::is_job() const {
  return logs_.size() > 1 ||
         (logs_.size() == 1 && logs_.begin()->second.world_size.value_or(1) > 1);
}

Health JobHealth::Judge() {
  std::vector<CommLog> logs;
  for (const auto& [rank, log] : logs_) logs.push_back(log);
  match_ = MatchComms(logs);
  // A subset of the ranks has no time for the job.
  std::optional<GraphTime> graph_time;
  if (runs_.size() == logs_.size()) {
    const bool meets_nobody = runs_.size() == 1 && match_.messages.empty();
    graph_time = meets_nobody ? last_graph_time_ : FindGraphTime(runs_);
  }
  health_ = JudgeJob(match_, std::move(graph_time));
  health_.waits = waits_;
  // The job's figure represents those of its ranks.
  constexpr std::string_view kGraphTime = "graph_time";
  if (std::ranges::count(health_.reasons, kGraphTime, &Health::Reason::name) != 0) {
    std::erase_if(parts_.reasons, [&](const auto& reason) { return reason.name == kGraphTime; });
  }
  health_.Add(parts_, "");
  return health_;
}

nlohmann::ordered_json JobHealth::Json() const {
  nlohmann::ordered_json json = {{"health", ToJson(health_)},
                                 {"collectives", match_.collectives},
                                 {"point_to_point", match_.point_to_point},
                                 {"unknown_partners", match_.unknown_partners},
                                 {"unknown_groups", match_.unknown_groups},
                                 {"unmatched", match_.unmatched},
                                 {"first_mismatch", match_.first_mismatch},
                                 {"missing_ranks", match_.missing_ranks}};
  json["one_clock"] = match_.one_clock;
  json["one_machine"] = match_.one_machine;
  nlohmann::ordered_json clocks = nlohmann::ordered_json::array();
  for (const ClockOffset& clock : match_.clocks) {
    nlohmann::ordered_json row = {{"rank", clock.rank}, {"offset_ns", nullptr}};
    if (const auto ahead = clock.ahead()) row["offset_ns"] = ahead->count;
    row["spread_ns"] = clock.spread.count;
    row["meetings"] = clock.meetings;
    if (!clock.reason.empty()) row["reason"] = clock.reason;
    clocks.push_back(std::move(row));
  }
  json["clocks"] = std::move(clocks);
  return json;
}

std::string JobHealth::Text() const {
  std::string text = fmt::format(
      "job of {} with traces: {} and {} matched, {} unmatched\n",
      FormatCount(match_.clocks.size(), "rank"), FormatCount(match_.collectives, "collective"),
      FormatCount(match_.point_to_point, "send"), FormatCount(match_.unmatched, "call"));
  if (match_.one_clock) text += "  one clock: the job was simulated\n";
  if (match_.one_machine) text += "  one clock: the ranks ran on one machine\n";
  const bool is_one = match_.one_clock || match_.one_machine;
  for (const ClockOffset& clock : match_.clocks) {
    const std::optional<Nanos> ahead = clock.ahead();
    if (is_one || !ahead || clock.rank == match_.clocks.front().rank) continue;
    const bool is_ahead = *ahead >= Nanos{};
    text += fmt::format("  clock of rank {}: {} {} rank {}'s, ± {} by {}\n", clock.rank,
                        FormatTime(is_ahead ? *ahead : Nanos{} - *ahead),
                        is_ahead ? "ahead of" : "behind", match_.clocks.front().rank,
                        FormatTime(clock.spread), FormatCount(clock.meetings, "collective"));
  }
  if (const auto& time = health_.graph_time) {
    text += "  graph time: " + GraphTimeText(*time) + "\n";
  }
  if (const auto& waits = health_.waits) text += "  waits: " + WaitsText(*waits) + "\n";
  return text + "job " + ToText(health_);
}

}  // namespace etude
