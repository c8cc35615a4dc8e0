#include "src/analysis/health.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/container/intervals.h"
#include "src/base/text/bounded_json.h"
#include "src/base/text/format_count.h"
#include "src/base/text/function_name.h"
#include "src/formats/profile/comm_kernels.h"
#include "src/formats/profile/profile_categories.h"
#include "src/formats/profile/profile_processes.h"
#include "src/run/calls/callers.h"
#include "src/run/calls/launch.h"
#include "src/trace/carried_stats.h"
#include "src/trace/job/rank_set.h"
#include "src/trace/other_process.h"
#include "src/trace/simulated.h"
#include "src/trace/words/comm_backend.h"
#include "src/trace/words/operator_name.h"
#include "src/trace/words/stated_facts.h"

namespace etude {
namespace {

constexpr std::string_view kGraphTime = "graph_time";
constexpr size_t kMostParts = 8;  // max entries in a list of ranks

// Shares above which a condition is significant.
constexpr double kFew = 0.001;
constexpr double kMany = 0.01;
constexpr double kTooMany = 0.1;
constexpr double kLost = 0.25;
constexpr double kMostOfIt = 0.5;

double Share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

// Returns "3 of 12 events are lost": `all` is the noun for the total, `one` and `many` the singular
// and plural predicate.
std::string ShareText(uint64_t count, std::string_view all, std::string_view one,
                      std::string_view many) {
  return fmt::format("{} of {} {}", FormatCount(count), all, count == 1 ? one : many);
}

// Returns the description of a gap before its location: "gaps on host thread 7".
std::string_view GapText(GapKind kind) {
  switch (kind) {
    case GapKind::kHostGap: return "gaps on host";
    case GapKind::kLaunch: return "launches on";
    case GapKind::kQueue: return "work queued on";
    case GapKind::kHostWait: return "waits on host";
    case GapKind::kTransfer: return "transfers on";
    case GapKind::kUnexplained: return "unexplained time on";
  }
  return "unexplained time on";
}

// Returns "12.3 ms", with a readable number of digits; much longer times in larger units.
std::string TimeText(Nanos time) {
  constexpr Nanos kLong{int64_t{1000} * 1'000'000'000};
  if (time >= kLong) return FormatTime(time);
  return fmt::format("{:.{}f} ms", time.ms(), std::abs(time.count) < 10'000'000 ? 3 : 1);
}

// Returns the time without its unit if it has the same unit as `other`.
std::string BareTimeText(Nanos time, Nanos other) {
  std::string text = TimeText(time);
  const std::string with_unit = TimeText(other);
  const std::string_view unit = std::string_view(with_unit).substr(with_unit.rfind(' '));
  if (text.ends_with(unit)) text.resize(text.size() - unit.size());
  return text;
}

std::string PiecesText(uint64_t works) {
  return FormatCount(works, "piece of device work", "pieces of device work");
}

// Stores the time of the graph alone, of a job or of one rank, and adds a reason if it differs much
// from the recorded time.
void JudgeGraph(std::optional<GraphTime> time, bool is_job, Health& health) {
  if (!time || time->recorded.count == 0) return;
  if (Share(time->untimed, time->untimed + time->nodes) > kTooMany) return;
  if (std::abs(time->error()) > kTooMany) {
    std::string text =
        time->error() < 0
            ? fmt::format("dependencies explain {} of {}",
                          BareTimeText(time->simulated, time->recorded), TimeText(time->recorded))
            : fmt::format("a step takes {} by its dependencies, but took {} when recorded",
                          TimeText(time->simulated), BareTimeText(time->recorded, time->simulated));
    if (!time->gaps.empty()) {
      const GraphTime::Gap& most = time->gaps.front();
      text += fmt::format("; {} are {} {}{}", TimeText(most.time), GapText(most.kind), most.lane,
                          is_job ? fmt::format(" of rank {}", most.rank) : "");
    }
    health.reasons.push_back({Verdict::kUsable, std::string(kGraphTime), std::move(text)});
  }
  health.graph_time = std::move(time);
}

class TraceJudge {
 public:
  TraceJudge(const RecordedRun& run, const RankRun& rank)
      : run_(run), trace_(run.trace()), rank_(rank), stats_(CarriedStats(trace_)) {}

  Health Run() {
    CountNodes();
    JudgeReading();
    JudgeTimes();
    JudgeKinds();
    JudgeNames();
    JudgeLostLabels();
    JudgeLinks();
    JudgeLaunches();
    JudgeStreams();
    CountWaits();
    JudgeOwnTimes();
    JudgeGaps();
    JudgeLists();
    JudgeSteps();
    if (Cycles() == 0) JudgeGraph(FindGraphTime(rank_), /*is_job=*/false, health_);
    std::ranges::stable_sort(health_.reasons, std::ranges::greater{}, &Health::Reason::verdict);
    return std::move(health_);
  }

 private:
  void Say(Verdict verdict, std::string_view name, std::string text) {
    health_.reasons.push_back({verdict, std::string(name), std::move(text)});
  }
  static Verdict Above(double share, double limit) {
    return share > limit ? Verdict::kDontTrust : Verdict::kUsable;
  }
  uint64_t Met(Stat stat) const { return stats_[stat]; }
  uint64_t Cycles() const { return Met(Stat::kParentCycle) + Met(Stat::kDependencyCycle); }

  void CountNodes() {
    ForEachNode(trace_, [&](NodeId node) {
      const NodeKind kind = trace_.kind(node);
      if (kind == NodeKind::kProcess || kind == NodeKind::kThread) return;
      if (!trace_.duration(node)) ++untimed_;
      ++(trace_.place(node) == Place::kDevice ? device_nodes_ : host_nodes_);
    });
  }

  void JudgeReading() {
    const uint64_t nodes = trace_.node_count();
    const auto share_of = [&](Stat stat) { return Share(Met(stat), nodes + Met(stat)); };
    if (Met(Stat::kTruncated) != 0) {
      Say(Verdict::kUsable, "truncated", "the file is truncated; the rest is lost");
    }
    if (const uint64_t count = Met(Stat::kMalformedElement); count != 0) {
      Say(Above(share_of(Stat::kMalformedElement), kMany), "malformed",
          FormatCount(count, "node or event", "nodes or events") + " could not be read");
    }
    if (const uint64_t count = Met(Stat::kDuplicateId); count != 0) {
      Say(Verdict::kDontTrust, "duplicate_ids",
          FormatCount(count, "id is", "ids are") +
              " not unique: references may point to a wrong node");
    }
    if (const uint64_t count = Met(Stat::kRenumberedId); count != 0) {
      Say(Verdict::kUsable, "renumbered_ids",
          FormatCount(count, "id was", "ids were") +
              " not unique before renumbering: references may point to a wrong node");
    }
    if (const uint64_t count = Cycles(); count != 0) {
      Say(Verdict::kDontTrust, "cycles",
          FormatCount(count, "node is in a cycle of dependencies",
                      "nodes are in cycles of dependencies"));
    }
    if (const uint64_t count = Met(Stat::kDanglingParent) + Met(Stat::kDanglingDependency);
        count != 0) {
      Say(Above(Share(count, nodes), kTooMany), "dangling_references",
          FormatCount(count, "reference points to a node that is",
                      "references point to nodes that are") +
              " missing");
    }
    if (const uint64_t count = Met(Stat::kUnknownDuration) + Met(Stat::kNegativeDuration);
        count != 0) {
      Say(Above(Share(count, nodes), kTooMany), "unknown_durations",
          FormatCount(count, "node has", "nodes have") + " no valid duration");
    }
    if (IsSimulated(trace_) && untimed_ != 0) {
      Say(Above(Share(untimed_, nodes), kTooMany), "unfinished_simulation",
          fmt::format("the simulation completed {} of {} nodes", nodes - untimed_, nodes));
    }
  }

  // Implausible times count as unknown.
  void JudgeTimes() {
    if (const uint64_t all = Met(Stat::kUnknownTime); all != 0) {
      uint64_t works = 0;
      uint64_t untimed = 0;
      ForEachNode(trace_, [&](NodeId node) {
        if (!IsDeviceWork(node)) return;
        ++works;
        untimed += trace_.start(node) ? 0 : 1;
      });
      const uint64_t others = all - std::min(all, untimed);
      std::string text;
      if (untimed != 0) {
        text = ShareText(untimed, PiecesText(works), "has invalid times", "have invalid times");
      }
      if (others != 0) {
        text += fmt::format("{}{} invalid times", untimed != 0 ? ", " : "",
                            FormatCount(others, untimed != 0 ? "other event has" : "event has",
                                        untimed != 0 ? "other events have" : "events have"));
      }
      Say(Above(Share(untimed, works), kLost), "unknown_times",
          text + ", which are treated as unknown");
    }
    if (const uint64_t count = Met(Stat::kCallByOrder); count != 0) {
      Say(Verdict::kUsable, "communication_by_order",
          FormatCount(count, "communication kernel was", "communication kernels were") +
              " matched with host calls by order because ids are missing");
    }
  }

  // Events of unknown categories are not counted anywhere.
  void JudgeKinds() {
    if (!trace_.traits().is_profile) return;
    if (trace_.node_count() == 0) {
      Say(Verdict::kDontTrust, "no_nodes", "found no operator and no device work among its events");
    }
    std::map<std::string_view, uint64_t> counts;
    uint64_t unknown = 0;
    ForEachNode(trace_, [&](NodeId node) {
      if (trace_.kind(node) != NodeKind::kUnknown) return;
      ++unknown;
      ++counts[CategoryOf(node)];
    });
    if (unknown == 0) return;
    std::vector<std::pair<std::string_view, uint64_t>> categories(counts.begin(), counts.end());
    std::ranges::stable_sort(categories, std::ranges::greater{},
                             &std::pair<std::string_view, uint64_t>::second);
    constexpr size_t kShown = 6;
    std::string text;
    for (size_t i = 0; i < std::min(kShown, categories.size()); ++i) {
      text += fmt::format("{}{}", i == 0 ? "" : ", ",
                          categories[i].first.empty() ? "none" : categories[i].first);
    }
    if (categories.size() > kShown) text += ", …";
    Say(Above(Share(unknown, trace_.node_count()), kTooMany), "unknown_categories",
        ShareText(unknown, FormatCount(trace_.node_count(), "event"),
                  "has an unknown category ('cat') and is excluded from all figures: ",
                  "have an unknown category ('cat') and are excluded from all figures: ") +
            text);
    JudgeUnreadProcesses();
  }

  // Events without a category are recognised by their processes, if at all.
  void JudgeUnreadProcesses() {
    for (const Extra& extra : trace_.info().extras) {
      if (trace_.text(extra.key) != kUnreadProcessesKey) continue;
      const auto processes = ParseBounded<nlohmann::ordered_json>(trace_.text(extra.text));
      if (!processes.is_object()) continue;
      for (const auto& [process, count] : processes.items()) {
        if (!SpeaksOfDevice(process) || !count.is_number_unsigned()) continue;
        Say(Verdict::kDontTrust, "unread_device",
            fmt::format("device events of '{}' are not recognized: {} neither a known category nor "
                        "known arguments",
                        process, FormatCount(count.get<uint64_t>(), "event has", "events have")));
      }
    }
  }

  // Kernels of an unknown library count as computation.
  void JudgeNames() {
    std::unordered_map<StringId, bool> speaks;
    uint64_t kernels = 0;
    std::string_view first;
    ForEachNode(trace_, [&](NodeId node) {
      if (trace_.kind(node) != NodeKind::kKernel) return;
      const auto [known, is_new] = speaks.emplace(trace_.name_id(node), false);
      if (is_new) known->second = SpeaksOfCommunication(trace_.name(node));
      if (!known->second) return;
      if (kernels++ == 0) first = trace_.name(node);
    });
    if (kernels == 0) return;
    Say(Verdict::kUsable, "unread_communication",
        fmt::format("{} as computation although the name suggests communication: '{}'",
                    FormatCount(kernels, "kernel counts", "kernels count"),
                    BareFunctionName(first)));
  }

  // EtCommReader uses such a call as its communication.
  void JudgeLostLabels() {
    uint64_t calls = 0;
    for (const auto& [node, comm] : trace_.comms()) {
      calls += StandsForLostLabel(trace_, node) ? 1 : 0;
    }
    if (calls == 0) return;
    Say(Verdict::kUsable, "lost_labels",
        fmt::format("{} known only from {}: the end of the communication was not recorded",
                    FormatCount(calls, "collective is", "collectives are"),
                    calls == 1 ? "its call" : "their calls"));
  }

  // Returns the quoted JSON text; "" if missing.
  std::string_view CategoryOf(NodeId node) const {
    return StatedText(trace_, node, kCategoryExtraKey).value_or("");
  }

  void JudgeLinks() {
    if (const uint64_t lost = Met(Stat::kUnlinkedHost); lost != 0) {
      const double share = Share(lost, host_nodes_);
      if (share > kFew) {
        Say(Above(share, kLost), "host_link_rate",
            fmt::format("{} of the host nodes have an event in the device trace",
                        FormatShare(1 - share)));
      }
    }
    if (const uint64_t lost = Met(Stat::kUnlinkedDeviceOp); lost != 0) {
      const double share = Share(lost, device_nodes_);
      Say(Above(share, kLost), "device_link_rate",
          fmt::format("{} of the device work has a host operator",
                      FormatShare(1 - std::min(share, 1.0))));
    }
    if (const uint64_t guessed = Met(Stat::kFallbackLink); guessed != 0) {
      const double sure = 1 - std::min(1.0, Share(Met(Stat::kAmbiguousLink), guessed));
      Say(Verdict::kUsable, "linked_by_order",
          fmt::format("{} of {} host nodes were matched by name and order because ids are missing, "
                      "{} of them unambiguously",
                      guessed, host_nodes_, FormatShare(sure)));
    } else if (const uint64_t count = Met(Stat::kAmbiguousLink); count != 0) {
      Say(Verdict::kUsable, "ambiguous_links",
          fmt::format("{} with several candidates; the first was used",
                      FormatCount(count, "link", "links")));
    }
    if (const uint64_t count = CountOfOtherProcess(trace_); count != 0) {
      Say(Verdict::kDontTrust, "other_process",
          FormatCount(count, "host node has", "host nodes have") +
              " the times of another process: the host and the device trace are of different runs "
              "or ranks");
    }
    if (trace_.traits().is_linked) {
      uint64_t timed = 0;
      ForEachNode(trace_, [&](NodeId node) { timed += trace_.duration(node).has_value() ? 1 : 0; });
      if (timed == 0 && host_nodes_ != 0) {
        Say(Verdict::kDontTrust, "no_times", "no node has a time");
      }
    }
  }

  // Returns the times in which launches were captured into a graph, which runs nothing yet: from a
  // call that begins a capture to the thread's next one that ends it. Other threads, such as
  // autograd's, may launch into it meanwhile.
  TimeSet FindCaptures() const {
    struct Mark {
      LaneId thread;
      Nanos at;
      bool is_begin;
    };
    std::vector<Mark> marks;
    ForEachNode(trace_, [&](NodeId node) {
      const auto start = trace_.start(node);
      if (!start || trace_.kind(node) != NodeKind::kRuntime) return;
      const std::string_view name = trace_.name(node);
      const bool is_begin = BeginsCapture(name);
      if (!is_begin && !EndsCapture(name)) return;
      marks.push_back({trace_.lane_id(node), *start, is_begin});
    });
    std::ranges::stable_sort(marks, {},
                             [](const Mark& mark) { return std::tuple(mark.thread, mark.at); });
    std::vector<Interval> captures;
    std::vector<Nanos> open;  // of one thread: begins of open captures
    for (size_t i = 0; i < marks.size(); ++i) {
      if (i == 0 || marks[i].thread != marks[i - 1].thread) open.clear();
      if (marks[i].is_begin) {
        open.push_back(marks[i].at);
      } else if (!open.empty()) {
        captures.push_back({open.back(), marks[i].at});
        open.pop_back();
      }
    }
    return TimeSet(std::move(captures));
  }

  bool IsDeviceWork(NodeId node) const {
    const NodeKind kind = trace_.kind(node);
    return trace_.place(node) == Place::kDevice && kind != NodeKind::kSync &&
           kind != NodeKind::kLabel;
  }

  // Returns the number of captured ones among these launches.
  uint64_t CountCaptured(const std::vector<NodeId>& launches) const {
    if (launches.empty()) return 0;
    const TimeSet captures = FindCaptures();
    return static_cast<uint64_t>(std::ranges::count_if(launches, [&](NodeId launch) {
      const auto start = trace_.start(launch);
      return start && captures.Within({*start, *start + Nanos{1}}) != Nanos{};
    }));
  }

  // Counts the device work without a call that was launched before the recording: streams run in
  // order, so it is the work that ran before the first one with a call.
  template <typename IsLaunched>
  uint64_t CountLaunchedBefore(const std::vector<NodeId>& unlaunched,
                               IsLaunched is_launched) const {
    if (unlaunched.empty()) return 0;
    std::unordered_map<size_t, Nanos> first_launched;  // by lane
    ForEachNode(trace_, [&](NodeId node) {
      const auto start = trace_.start(node);
      if (!start || !IsDeviceWork(node) || !is_launched(node)) return;
      const auto [at, is_new] = first_launched.emplace(trace_.lane_id(node).index(), *start);
      if (!is_new) at->second = std::min(at->second, *start);
    });
    return static_cast<uint64_t>(std::ranges::count_if(unlaunched, [&](NodeId work) {
      const auto first = first_launched.find(trace_.lane_id(work).index());
      const auto start = trace_.start(work);
      return first != first_launched.end() && start && *start < first->second;
    }));
  }

  // Only device traces have both sides.
  void JudgeLaunches() {
    if (!trace_.traits().is_profile) return;
    std::unordered_set<int64_t> launched;
    std::unordered_set<int64_t> ran;
    uint64_t launches = 0;
    uint64_t works = 0;
    ForEachNode(trace_, [&](NodeId node) {
      const auto correlation = LaunchCorrelation(trace_, node);
      if (!correlation) return;
      if (trace_.kind(node) == NodeKind::kRuntime) launched.insert(*correlation);
      if (IsDeviceWork(node)) ran.insert(*correlation);
    });
    const auto has_other_side = [&](NodeId node, const std::unordered_set<int64_t>& other) {
      const NodeId parent = trace_.parent(node);
      if (parent && IsDeviceWork(node) && trace_.place(parent) == Place::kHost) return true;
      const auto correlation = LaunchCorrelation(trace_, node);
      return correlation && other.contains(*correlation);
    };
    std::vector<NodeId> unlaunched;  // device work
    std::vector<NodeId> idle;        // launches
    ForEachNode(trace_, [&](NodeId node) {
      if (IsDeviceWork(node)) {
        ++works;
        if (!has_other_side(node, launched)) unlaunched.push_back(node);
      } else if (!launched.empty() && trace_.kind(node) == NodeKind::kRuntime &&
                 LaunchesWork(trace_.name(node))) {
        ++launches;
        if (!has_other_side(node, ran)) idle.push_back(node);
      }
    });
    // Timelines of simulated jobs and profiles of TPUs have no launches.
    const bool computes = std::ranges::any_of(unlaunched, [&](NodeId node) {
      return trace_.kind(node) == NodeKind::kCompute || trace_.correlation(node) == std::nullopt;
    });
    if (computes && launched.empty() && ran.empty()) unlaunched.clear();
    const uint64_t launched_before = CountLaunchedBefore(
        unlaunched, [&](NodeId node) { return has_other_side(node, launched); });
    const uint64_t without_launch = unlaunched.size() - launched_before;
    const uint64_t without_work = idle.size() - CountCaptured(idle);
    if (launched_before != 0) {
      Say(Above(Share(launched_before, works), kMostOfIt), "launched_before",
          ShareText(launched_before, PiecesText(works), "was launched before the recording began",
                    "were launched before the recording began"));
    }
    if (without_launch != 0) {
      Say(Above(Share(without_launch, works), kLost), "work_without_launch",
          ShareText(without_launch, PiecesText(works), "has no call that launched it",
                    "have no call that launched them"));
    }
    if (without_work != 0) {
      Say(Above(Share(without_work, launches), kLost), "launch_without_work",
          ShareText(without_work, FormatCount(launches, "launch", "launches"), "has no device work",
                    "have no device work"));
    }
  }

  // Returns the correlations of launches that may start early.
  std::unordered_set<int64_t> FindEarlyLaunches() const {
    std::unordered_set<int64_t> launches;
    ForEachNode(trace_, [&](NodeId node) {
      const auto correlation = LaunchCorrelation(trace_, node);
      if (trace_.kind(node) == NodeKind::kRuntime && correlation &&
          MayLaunchEarly(trace_.name(node))) {
        launches.insert(*correlation);
      }
    });
    return launches;
  }

  // A stream runs one thing at a time, except kernels launched to start early.
  void JudgeStreams() {
    struct Ran {
      LaneId lane;
      Nanos begin;
      Nanos end;
      NodeId node;
    };
    std::vector<Ran> ran;
    ForEachNode(trace_, [&](NodeId node) {
      if (!IsDeviceWork(node) || !trace_.start(node) || !trace_.duration(node)) return;
      ran.push_back({trace_.lane_id(node), *trace_.start(node),
                     *trace_.start(node) + *trace_.duration(node), node});
    });
    std::ranges::sort(ran, {}, [](const Ran& one) { return std::tuple(one.lane, one.begin); });
    const std::unordered_set<int64_t> early_launches = FindEarlyLaunches();
    const auto is_early = [&](const Ran& one, const Ran& before) {
      if (trace_.kind(one.node) != NodeKind::kKernel) return false;
      if (trace_.kind(before.node) != NodeKind::kKernel) return false;
      const auto correlation = LaunchCorrelation(trace_, one.node);
      return (correlation && early_launches.contains(*correlation)) ||
             HasEarlyLaunch(trace_, one.node);
    };
    constexpr Nanos kClock{1000};  // events with times of whole microseconds may touch
    uint64_t overlaps = 0;
    size_t last = 0;  // the previous work on the stream that ends last
    for (size_t i = 1; i < ran.size(); ++i) {
      const bool is_over = ran[i].lane != ran[last].lane || ran[i].begin + kClock >= ran[last].end;
      if (!is_over && !is_early(ran[i], ran[last])) ++overlaps;
      if (ran[i].lane != ran[last].lane || ran[i].end >= ran[last].end) last = i;
    }
    if (overlaps != 0) {
      Say(Above(Share(overlaps, ran.size()), kTooMany), "overlaps",
          ShareText(overlaps, PiecesText(ran.size()),
                    "begins before the previous work on its stream ended",
                    "begin before the previous work on their stream ended"));
    }
  }

  static std::string GapTime(Nanos time) {
    constexpr Nanos kLong{int64_t{1000} * 1'000'000'000};
    return time >= kLong ? FormatTime(time) : fmt::format("{:.1f} ms", time.ms());
  }

  // Judges time without any activity.
  void JudgeGaps() {
    std::vector<std::pair<Nanos, Nanos>> ran;
    ForEachNode(trace_, [&](NodeId node) {
      if (!trace_.start(node) || !trace_.duration(node) || trace_.place(node) == Place::kUnknown) {
        return;
      }
      ran.emplace_back(*trace_.start(node), *trace_.start(node) + *trace_.duration(node));
    });
    if (ran.empty()) return;
    std::ranges::sort(ran);
    Nanos covered = ran.front().first;
    Nanos widest;
    for (const auto& [begin, end] : ran) {
      widest = std::max(widest, begin - covered);
      covered = std::max(covered, end);
    }
    const Nanos span = covered - ran.front().first;
    constexpr Nanos kWide{10'000'000};
    if (widest > kWide &&
        static_cast<double>(widest.count) > kTooMany * static_cast<double>(span.count)) {
      Say(Verdict::kUsable, "gap",
          fmt::format("nothing ran for {} of {}", GapTime(widest), GapTime(span)));
    }
  }

  // Python frames that open or close a label overlap its begin or its end.
  static bool OpensLabel(std::string_view name) {
    return name.starts_with("<built-in") && name.find("_record_function_e") != name.npos;
  }

  void CountWaits() {
    if (run_.waits().empty()) return;
    const auto is_guessed = [](const OrderEdge& wait) {
      return wait.evidence == Evidence::kByTime;
    };
    const auto guessed = std::ranges::count_if(run_.waits(), is_guessed);
    health_.waits = {.count = run_.waits().size(), .guessed = static_cast<uint64_t>(guessed)};
  }

  // A thread does one thing at a time: the sum of own times cannot exceed the time in which it was
  // active. It does if a trace has lost callers.
  void JudgeOwnTimes() {
    if (trace_.traits().exclusive_durations) return;
    struct Thread {
      std::vector<Interval> busy;
      Nanos own;
    };
    std::map<LaneId, Thread> threads;
    const auto self = run_.self_times();
    ForEachNode(trace_, [&](NodeId node) {
      const auto start = trace_.start(node);
      const auto duration = trace_.duration(node);
      if (trace_.place(node) != Place::kHost || !start || !duration || !self[node.index()]) return;
      if (IsHostThreadLabel(trace_.name(node)) || !trace_.lane_id(node)) return;
      if (OpensLabel(trace_.name(node))) return;
      Thread& thread = threads[trace_.lane_id(node)];
      thread.busy.push_back({*start, *start + *duration});
      thread.own = thread.own + *self[node.index()];
    });
    uint64_t wrong = 0;
    Nanos most;
    std::string text;
    for (auto& [lane, thread] : threads) {
      const Nanos busy = TimeSet(std::move(thread.busy)).length();
      const Nanos surplus = thread.own - busy;
      if (static_cast<double>(surplus.count) <= kMany * static_cast<double>(busy.count)) continue;
      ++wrong;
      if (surplus <= most) continue;
      most = surplus;
      text =
          fmt::format("self times of thread {} add up to {}, but it was busy for {}",
                      trace_.text(trace_.lane(lane).thread), TimeText(thread.own), TimeText(busy));
    }
    if (wrong == 0) return;
    if (wrong > 1) text += fmt::format(" (the same on {} threads in all)", FormatCount(wrong));
    Say(Verdict::kUsable, "own_times", text + ": calls are missing or wrongly nested");
  }

  void JudgeLists() {
    uint64_t cut = 0;
    ForEachNode(trace_, [&](NodeId node) {
      for (const Value& value : trace_.inputs(node)) {
        if (value.kind == ValueKind::kList &&
            trace_.values(value.as_list()).size() >= kObserverListLimit) {
          ++cut;
          break;
        }
      }
    });
    if (cut != 0) {
      Say(Verdict::kUsable, "cut_lists",
          fmt::format("{} a list of {} or more elements, which PyTorch's observer truncates",
                      FormatCount(cut, "node has", "nodes have"), kObserverListLimit));
    }
  }

  void JudgeSteps() {
    std::set<uint64_t> steps;
    ForEachNode(trace_, [&](NodeId node) {
      std::string_view name = trace_.name(node);
      if (!IsStepMark(name)) return;
      name.remove_prefix(kStepMark.size());
      uint64_t number = 0;
      const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
      if (error == std::errc()) steps.insert(number);
    });
    if (steps.size() < 2) return;
    const uint64_t missing = *steps.rbegin() - *steps.begin() + 1 - steps.size();
    if (missing != 0) {
      Say(Verdict::kUsable, "lost_steps",
          fmt::format("{} between {}{} and #{} {} missing", FormatCount(missing, "step", "steps"),
                      kStepMark, *steps.begin(), *steps.rbegin(), missing == 1 ? "is" : "are"));
    }
  }

  const RecordedRun& run_;
  const Trace& trace_;
  const RankRun& rank_;
  Stats stats_;
  Health health_;
  uint64_t host_nodes_ = 0;
  uint64_t untimed_ = 0;
  uint64_t device_nodes_ = 0;
};

}  // namespace

std::string_view Name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kGood: return "good";
    case Verdict::kUsable: return "usable";
    case Verdict::kDontTrust: return "don't trust";
  }
  return "don't trust";
}

Verdict Health::verdict() const {
  Verdict worst = Verdict::kGood;
  for (const Reason& reason : reasons) worst = std::max(worst, reason.verdict);
  return worst;
}

void Health::Add(const Health& part, std::string_view name) {
  for (const Reason& reason : part.reasons) {
    Reason named = reason;
    if (!name.empty()) named.text = fmt::format("{}: {}", name, reason.text);
    if (std::ranges::count(reasons, named) == 0) reasons.push_back(std::move(named));
  }
  std::ranges::stable_sort(reasons, std::ranges::greater{}, &Reason::verdict);
}

void Health::LeaveOutGraphTime() {
  graph_time.reset();
  std::erase_if(reasons, [](const Reason& reason) { return reason.name == kGraphTime; });
}

Health JudgeTrace(const RecordedRun& run, const RankRun& rank) {
  return TraceJudge(run, rank).Run();
}

Health JudgeTrace(const Trace& trace, int64_t rank) {
  const RecordedRun run(trace);
  return JudgeTrace(run, MakeRankRun(run, rank));
}

Health JudgeJob(const CommMatch& match, std::optional<GraphTime> graph_time) {
  Health health;
  if (!match.first_mismatch.empty()) {
    health.reasons.push_back(
        {Verdict::kDontTrust, "communication",
         fmt::format("{} no partners; {}",
                     FormatCount(match.unmatched, "communication found", "communications found"),
                     match.first_mismatch)});
  }
  if (match.world_sizes.size() > 1) {
    std::string sizes;
    for (const auto& [size, ranks] : match.world_sizes) {
      sizes += fmt::format("{}{} by rank{} {}", sizes.empty() ? "" : ", ", size,
                           ranks.size() == 1 ? "" : "s", RankListText(ranks, kMostParts));
    }
    health.reasons.push_back(
        {Verdict::kDontTrust, "world_size",
         fmt::format("the traces are from different jobs: they have different numbers of ranks, {}",
                     sizes)});
  }
  if (match.unknown_partners != 0) {
    health.reasons.push_back(
        {Verdict::kUsable, "unknown_partners",
         FormatCount(match.unknown_partners, "send or receive has", "sends and receives have") +
             " no peer rank"});
  }
  if (match.unknown_groups != 0) {
    health.reasons.push_back(
        {Verdict::kUsable, "unknown_groups",
         FormatCount(match.unknown_groups, "collective has", "collectives have") +
             " no process group"});
  }
  if (!match.different_steps.empty()) {
    health.reasons.push_back(
        {Verdict::kUsable, "different_steps",
         fmt::format("the ranks were recorded in different steps ({}): {} in steps that some ranks "
                     "lack, and ignored",
                     match.different_steps,
                     FormatCount(match.other_steps, "communication is", "communications are"))});
  }
  if (match.unknown_groups == 0 && match.ungrouped != 0) {
    health.reasons.push_back({Verdict::kUsable, "unknown_groups", UngroupedText(match.ungrouped)});
  }
  if (!match.missing_ranks.empty()) {
    health.reasons.push_back(
        {Verdict::kUsable, "missing_ranks",
         fmt::format("missing traces of {} rank{}: {}", match.missing_ranks.size(),
                     match.missing_ranks.size() == 1 ? "" : "s",
                     RankListText(match.missing_ranks, kMostParts))});
  }
  // A job without any times, such as a generated one, has no clocks to compare. In large jobs
  // usually all lack them for one reason, which is reported once.
  const bool has_clocks = !std::ranges::all_of(match.clocks, &ClockOffset::is_none);
  std::vector<std::pair<std::string_view, std::vector<int64_t>>> unknown_clocks;
  for (const ClockOffset& clock : match.clocks) {
    if (clock.offset || !has_clocks) continue;
    auto alike = std::ranges::find(unknown_clocks, clock.reason,
                                   &std::pair<std::string_view, std::vector<int64_t>>::first);
    if (alike == unknown_clocks.end()) {
      alike = unknown_clocks.insert(alike, {clock.reason, {}});
    }
    alike->second.push_back(clock.rank);
  }
  for (const auto& [reason, ranks] : unknown_clocks) {
    health.reasons.push_back(
        {Verdict::kUsable, "clock",
         fmt::format("the clock{} of rank{} {} cannot be compared with that of rank {}: {}",
                     ranks.size() == 1 ? "" : "s", ranks.size() == 1 ? "" : "s",
                     RankListText(ranks, kMostParts), match.clocks.front().rank, reason)});
  }
  JudgeGraph(std::move(graph_time), /*is_job=*/true, health);
  return health;
}

}  // namespace etude
