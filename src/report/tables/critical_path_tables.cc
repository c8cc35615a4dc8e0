#include "src/report/tables/critical_path_tables.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "src/analysis/view/modules.h"
#include "src/report/text/format.h"
#include "src/run/activity.h"
#include "src/trace/words/thread_text.h"

namespace etude {
namespace {

using Stretch = CriticalPath::Stretch;

// Returns the time of a stretch, on the path or beside it.
Nanos TimeOfStretch(const Stretch& stretch) {
  return IsOnPath(stretch.part) || !stretch.time ? stretch.length : stretch.time->length();
}

Place PlaceOf(const Trace& trace, const Stretch& stretch) {
  return DeviceActivity(trace, stretch.node) != Activity::kNone ? Place::kDevice : Place::kHost;
}

std::string LaneText(const Trace& trace, NodeId node) {
  const LaneId id = trace.lane_id(node);
  if (!id) return "(unknown)";
  const Lane& lane = trace.lane(id);
  if (DeviceActivity(trace, node) != Activity::kNone) {
    return StreamText(trace, lane);
  }
  return ThreadText(trace, lane, "(unknown thread)");
}

// Time on the path by a key, sorted in descending order.
template <typename Key>
class PathSums {
 public:
  void Add(const Key& key, Nanos time) {
    auto& [sum, count] = sums_[key];
    sum = sum + time;
    ++count;
  }
  template <typename AddRow>
  void ForEach(AddRow add_row) const {
    std::vector<std::pair<Key, std::pair<Nanos, int64_t>>> rows(sums_.begin(), sums_.end());
    std::ranges::stable_sort(rows, std::ranges::greater{},
                             [](const auto& row) { return row.second.first; });
    for (const auto& [key, sum] : rows) add_row(key, sum.first, sum.second);
  }

 private:
  std::map<Key, std::pair<Nanos, int64_t>> sums_;
};

class Tables {
 public:
  Tables(const Trace& trace, const CriticalPath& path) : trace_(trace), path_(path) {
    if (path.span) span_ = path.span->length();
  }

  std::vector<Table> Make() const {
    return {Summary(), Parts(), Ops(), Lanes(), ModuleTimes(), Path()};
  }

 private:
  Table Summary() const {
    Table table{.key = "summary",
                .title = path_.by_clock ? "critical path of the recorded run"
                                        : "critical path by dependencies and durations",
                .columns = {{"length_ns", "length", Unit::kTime},
                            {"span_ns", "span", Unit::kTime},
                            {"share", "of the span", Unit::kShare},
                            {"longest_node_ns", "longest node", Unit::kTime},
                            {"work_ns", "all nodes", Unit::kTime},
                            {"stretches", "stretches", Unit::kCount}},
                .rows = {}};
    if (path_.nodes == 0) return table;
    table.rows.push_back(
        {path_.length.count, ToCell(span_), ShareCell(path_.length, span_.value_or(Nanos{})),
         path_.longest_node.count, path_.work.count, static_cast<int64_t>(path_.stretches.size())});
    return table;
  }

  Table Parts() const {
    Table table{.key = "parts",
                .title = "time of the span by activity",
                .columns = {{"part", "part", Unit::kText},
                            {"place", "on", Unit::kText},
                            {"on_path", "path", Unit::kText},
                            {"time_ns", "time", Unit::kTime},
                            {"share", "of the span", Unit::kShare},
                            {"count", "count", Unit::kCount}},
                .rows = {}};
    std::map<std::pair<PathPart, Place>, std::pair<Nanos, int64_t>> sums;
    for (const Stretch& stretch : path_.stretches) {
      auto& [sum, count] = sums[{stretch.part, PlaceOf(trace_, stretch)}];
      sum = sum + TimeOfStretch(stretch);
      ++count;
    }
    if (path_.span) {
      Nanos outside = *span_;
      if (!path_.stretches.empty()) {
        outside =
            outside - (path_.stretches.back().time->end - path_.stretches.front().time->begin);
      }
      if (outside.count > 0) sums[{PathPart::kOutside, Place::kUnknown}] = {outside, 1};
    }
    for (const auto& [key, sum] : sums) {
      const auto& [part, place] = key;
      table.rows.push_back({std::string(Name(part)), std::string(Name(place)),
                            std::string(IsOnPath(part) ? "on" : "beside"), sum.first.count,
                            ShareCell(sum.first, span_.value_or(Nanos{})), sum.second});
    }
    return table;
  }

  Table Ops() const {
    Table table{.key = "ops",
                .title = "time on the path by name",
                .columns = {{"name", "name", Unit::kText},
                            {"part", "part", Unit::kText},
                            {"time_ns", "time", Unit::kTime},
                            {"share", "of the path", Unit::kShare},
                            {"count", "count", Unit::kCount}},
                .rows = {}};
    PathSums<std::pair<std::string_view, PathPart>> sums;
    for (const Stretch& stretch : path_.stretches) {
      if (IsOnPath(stretch.part)) {
        sums.Add({trace_.name(stretch.node), stretch.part}, stretch.length);
      }
    }
    sums.ForEach([&](const auto& key, Nanos time, int64_t count) {
      table.rows.push_back({std::string(key.first), std::string(Name(key.second)), time.count,
                            ShareCell(time, path_.length), count});
    });
    return table;
  }

  // Returns the time on the path by the text that `key` returns for a node.
  template <typename KeyOf>
  Table ByText(std::string table_key, std::string title, std::string column, KeyOf key) const {
    Table table{.key = std::move(table_key),
                .title = std::move(title),
                .columns = {{column, column, Unit::kText},
                            {"time_ns", "time", Unit::kTime},
                            {"share", "of the path", Unit::kShare},
                            {"count", "count", Unit::kCount}},
                .rows = {}};
    PathSums<std::string> sums;
    for (const Stretch& stretch : path_.stretches) {
      if (IsOnPath(stretch.part)) sums.Add(key(stretch.node), stretch.length);
    }
    sums.ForEach([&](const std::string& text, Nanos time, int64_t count) {
      table.rows.push_back({text, time.count, ShareCell(time, path_.length), count});
    });
    return table;
  }

  Table Lanes() const {
    return ByText("lanes", "time on the path by thread and stream", "lane",
                  [&](NodeId node) { return LaneText(trace_, node); });
  }
  Table ModuleTimes() const {
    const Modules modules(trace_, Launches(trace_));
    return ByText("modules", "time on the path by module", "module",
                  [&](NodeId node) { return std::string(modules.name(node)); });
  }

  Table Path() const {
    Table table{.key = "path",
                .title = "the path",
                .columns = {{"begin_ns", "begin", Unit::kTime},
                            {"time_ns", "time", Unit::kTime},
                            {"part", "part", Unit::kText},
                            {"name", "name", Unit::kText},
                            {"node", "node", Unit::kNumber},
                            {"lane", "lane", Unit::kText}},
                .rows = {}};
    for (const Stretch& stretch : path_.stretches) {
      std::optional<Nanos> begin;
      if (stretch.time && path_.span) begin = stretch.time->begin - path_.span->begin;
      table.rows.push_back({ToCell(begin), TimeOfStretch(stretch).count,
                            std::string(Name(stretch.part)), std::string(trace_.name(stretch.node)),
                            static_cast<int64_t>(trace_.source_id(stretch.node)),
                            LaneText(trace_, stretch.node)});
    }
    return table;
  }

  const Trace& trace_;
  const CriticalPath& path_;
  std::optional<Nanos> span_;
};

}  // namespace

std::vector<Table> CriticalPathTables(const Trace& trace, const CriticalPath& path) {
  return Tables(trace, path).Make();
}

std::vector<std::string> CriticalPathNotes(const CriticalPath& path) {
  std::vector<std::string> notes;
  if (path.nodes == 0) {
    notes.emplace_back("no path, because no operator or device work has a duration");
    return notes;
  }
  if (!path.by_clock) {
    notes.emplace_back("starts are unknown; the path is based on dependencies and durations");
  }
  if (path.untimed != 0) {
    notes.push_back(fmt::format(
        "{}", FormatCount(path.untimed, "operator or device work without times counts as zero",
                          "operators and device work without times count as zero")));
  }
  if (path.contradictions != 0) {
    notes.push_back(
        fmt::format("{} left out",
                    FormatCount(path.contradictions,
                                "dependency contradicts times or other dependencies and was",
                                "dependencies contradict times or other dependencies and were")));
  }
  return notes;
}

}  // namespace etude
