#include "src/report/page/job_page.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "src/analysis/comm/comm_match.h"
#include "src/analysis/comm/comm_skew.h"
#include "src/analysis/time/graph_time.h"
#include "src/report/tables/comm_tables.h"
#include "src/report/tables/measured_table.h"
#include "src/report/text/format.h"

namespace etude {
namespace {

// Builds one page of jobs.
class PageMaker {
 public:
  PageMaker(std::string title, std::vector<JobFigures> jobs) : jobs_(std::move(jobs)) {
    page_.title = std::move(title);
    for (JobFigures& job : jobs_) {
      for (RankFigures& rank : job.ranks) {
        ranks_.push_back(&rank);
        names_.push_back(NameOf(job, rank));
        page_.inputs.push_back(rank.path);
      }
    }
  }

  Page Make() {
    for (const JobFigures& job : jobs_) MatchJob(job);
    Judge();
    Overview();
    Edited();
    StepSection();
    OperatorSection();
    Collectives();
    CriticalPathSection();
    MemorySection();
    TimelineSection();
    Replays();
    Method();
    return std::move(page_);
  }

 private:
  struct Matched {
    std::vector<CommLog> logs;
    CommMatch match;
    CommSkew skew;
    bool is_job = false;  // several ranks, or one rank of several
  };

  // Returns the name of a rank: its number, or its path if the number is unknown or not unique;
  // prefixed with the job's name if there are several jobs.
  Cell NameOf(const JobFigures& job, const RankFigures& rank) const {
    const bool unique =
        rank.rank && std::ranges::count(job.ranks, rank.rank, &RankFigures::rank) == 1;
    if (!unique) return rank.path;
    if (jobs_.size() == 1) return *rank.rank;
    return fmt::format("{} rank {}", job.name, *rank.rank);
  }

  std::string Who(size_t i) const {
    if (ranks_.size() == 1) return "";
    const auto* number = std::get_if<int64_t>(&names_[i]);
    return number != nullptr ? fmt::format("rank {}", *number) : std::get<std::string>(names_[i]);
  }

  void MatchJob(const JobFigures& job) {
    Matched& matched = matched_.emplace_back();
    std::map<int64_t, const CommLog*> logs;
    for (const RankFigures& rank : job.ranks) {
      if (rank.rank) logs.emplace(*rank.rank, &rank.comms);
    }
    for (const auto& [rank, log] : logs) {
      matched.logs.push_back(*log);
      matched.logs.back().rank = rank;
    }
    matched.match = MatchComms(matched.logs);
    matched.skew = SplitSkew(matched.logs, matched.match);
    matched.is_job = matched.logs.size() > 1 ||
                     (matched.logs.size() == 1 && matched.logs.front().world_size.value_or(1) > 1);
  }

  // Returns the time by the graphs of all ranks.
  static std::optional<GraphTime> TimeOf(JobFigures& job) {
    std::vector<RankRun> runs;
    for (RankFigures& rank : job.ranks) {
      if (!rank.rank || !rank.run) return std::nullopt;
      rank.run->log.rank = *rank.rank;
      runs.push_back(std::move(*rank.run));
    }
    return FindGraphTime(runs);
  }

  void Judge() {
    Health health;
    for (size_t i = 0; i < jobs_.size(); ++i) {
      if (matched_[i].is_job) {
        health.Add(JudgeJob(matched_[i].match, TimeOf(jobs_[i])),
                   jobs_.size() == 1 ? "" : jobs_[i].name);
      }
    }
    for (size_t i = 0; i < ranks_.size(); ++i) health.Add(ranks_[i]->health, Who(i));
    page_.health = std::move(health);
  }

  // Returns a chart title for figures of all ranks.
  std::string OfAll(std::string title) const {
    return ranks_.size() == 1 ? title : title + ", all ranks";
  }

  // Joins the tables with number `index` of a part, with a rank column if there are several ranks.
  Table Join(const RankFigures::Part RankFigures::*part, size_t index, size_t most_rows) const {
    if (ranks_.size() == 1) return (ranks_.front()->*part).tables[index];
    std::vector<const Table*> tables;
    for (const RankFigures* rank : ranks_) tables.push_back(&(rank->*part).tables[index]);
    return JoinTables(names_, tables, most_rows);
  }
  // Joins all rows, for charts.
  Table JoinAll(const RankFigures::Part RankFigures::*part, size_t index) const {
    return Join(part, index, 0);
  }

  // Returns a section with all tables of a part by key, and its notes.
  Page::Section SectionOf(std::string key, std::string title, std::string about,
                          const RankFigures::Part RankFigures::*part) const {
    Page::Section section{
        .key = std::move(key), .title = std::move(title), .about = std::move(about)};
    const size_t most_rows = std::max<size_t>(kMostPageRows / ranks_.size(), 1);
    for (size_t i = 0; i < (ranks_.front()->*part).tables.size(); ++i) {
      section.tables.push_back(Join(part, i, most_rows));
    }
    section.notes = NotesOf(part);
    return section;
  }

  // Returns the notes without duplicates, prefixed with their ranks unless they apply to all.
  std::vector<std::string> NotesOf(const RankFigures::Part RankFigures::*part) const {
    std::vector<std::pair<std::string_view, std::vector<size_t>>> said;
    for (size_t i = 0; i < ranks_.size(); ++i) {
      for (const std::string& note : (ranks_[i]->*part).notes) {
        auto known =
            std::ranges::find(said, note, &std::pair<std::string_view, std::vector<size_t>>::first);
        if (known == said.end()) known = said.insert(said.end(), {note, {}});
        if (known->second.empty() || known->second.back() != i) known->second.push_back(i);
      }
    }
    std::vector<std::string> notes;
    for (const auto& [note, by] : said) {
      std::string who;
      if (by.size() != ranks_.size()) who = Who(by.front());
      if (!who.empty() && by.size() > 1) who += fmt::format(" and {} more", by.size() - 1);
      notes.push_back(who.empty() ? std::string(note) : fmt::format("{}: {}", who, note));
    }
    return notes;
  }

  void Overview() {
    Page::Section section{.key = "overview", .title = "Overview"};
    int64_t nodes = 0;
    Nanos window, compute, communication, idle;
    std::optional<Nanos> longest;
    std::optional<Bytes> peak;
    for (const RankFigures* rank : ranks_) {
      nodes += static_cast<int64_t>(rank->nodes);
      if (rank->peak) peak = std::max(peak.value_or(Bytes{}), *rank->peak);
      if (!rank->times) continue;
      longest = std::max(longest.value_or(Nanos{}), rank->times->window);
      window = window + rank->times->window;
      compute = compute + rank->times->compute;
      communication = communication + rank->times->exposed_communication;
      idle = idle + rank->times->idle;
    }
    section.facts = {{"ranks", static_cast<int64_t>(ranks_.size()), Unit::kCount},
                     {"nodes", nodes, Unit::kCount},
                     {"recorded time", ToCell(longest), Unit::kTime},
                     {"compute", ShareCell(compute, window), Unit::kShare},
                     {"exposed communication", ShareCell(communication, window), Unit::kShare},
                     {"idle", ShareCell(idle, window), Unit::kShare},
                     {"memory at the peak", ToCell(peak), Unit::kBytes}};
    section.tables.push_back(RankTable());
    page_.sections.push_back(std::move(section));
  }

  Table RankTable() const {
    Table table{.key = "ranks",
                .title = "ranks",
                .columns = {{"rank", "rank", Unit::kText},
                            {"path", "trace", Unit::kText},
                            {"kind", "format", Unit::kText},
                            {"nodes", "nodes", Unit::kCount},
                            {"events", "in the timeline", Unit::kCount},
                            {"window_ns", "recorded time", Unit::kTime},
                            {"peak_bytes", "memory at the peak", Unit::kBytes},
                            {"verdict", "verdict", Unit::kText}},
                .rows = {}};
    for (size_t i = 0; i < ranks_.size(); ++i) {
      const RankFigures& rank = *ranks_[i];
      const bool known = rank.rank.has_value();
      table.rows.push_back({known ? names_[i] : Cell(), rank.path, rank.kind,
                            static_cast<int64_t>(rank.nodes),
                            static_cast<int64_t>(rank.timeline.events),
                            rank.times ? Cell(rank.times->window.count) : Cell(), ToCell(rank.peak),
                            std::string(Name(rank.health.verdict()))});
    }
    return table;
  }

  void Edited() {
    Page::Section section{
        .key = "edited",
        .title = "Recorded, simulated and measured",
        .about =
            "Steps of an edited job: as recorded before the edit, simulated, and measured in "
            "recordings of the edited program. Error: simulated over measured step, less 1."};
    for (size_t i = 0; i < jobs_.size(); ++i) {
      for (Table& table : jobs_[i].edited) {
        // The job of a step is another column than the page's job.
        const auto of_step = std::ranges::find(table.columns, "job", &Table::Column::key);
        if (jobs_.size() > 1 && of_step != table.columns.end()) of_step->key = "step_of";
        AddOfJob(section, i, std::move(table));
      }
    }
    if (section.tables.empty()) return;
    std::vector<std::string> by = {"job"};
    if (jobs_.size() > 1) by.emplace_back("step_of");
    const auto steps = std::ranges::find(section.tables, kMeasuredTable, &Table::key);
    if (steps != section.tables.end()) {
      section.charts.push_back(Bars(*steps, {.title = "time of a step",
                                             .categories = std::move(by),
                                             .values = {"measured_ns", "simulated_ns"}}));
    }
    page_.sections.push_back(std::move(section));
  }

  void StepSection() {
    Page::Section section =
        SectionOf("steps", "Steps",
                  "Time per step: compute, exposed communication, exposed copies, and idle.",
                  &RankFigures::steps);
    const bool on_device = std::ranges::all_of(ranks_, [](const RankFigures* rank) {
      return rank->on_device && rank->times && rank->times->reasons;
    });
    std::vector<std::string> parts = {"compute_ns", "exposed_communication_ns",
                                      "exposed_copies_ns"};
    if (on_device) {
      parts.insert(parts.end(), {"host_wait_ns", "kernel_wait_ns", "other_wait_ns"});
    } else {
      parts.emplace_back("idle_ns");
    }
    const Table steps = JoinAll(&RankFigures::steps, 0);
    section.charts.push_back(Bars(steps, {.title = "all recorded time, by rank",
                                          .kind = Chart::Kind::kStacked,
                                          .categories = {"rank"},
                                          .values = parts,
                                          .where = {{"step", "(all)"}}}));
    Table single = steps;
    std::erase_if(single.rows, [](const std::vector<Cell>& row) {
      return std::ranges::count(row, Cell(std::string("(all)"))) != 0;
    });
    section.charts.push_back(Bars(single, {.title = "steps",
                                           .kind = Chart::Kind::kStacked,
                                           .categories = {"step", "rank"},
                                           .values = parts}));
    page_.sections.push_back(std::move(section));
  }

  void OperatorSection() {
    Page::Section section = SectionOf(
        "operators", "Operators and modules",
        "Self time is the time of a node without the nodes inside it on the same thread or stream.",
        &RankFigures::operators);
    const Table operators = JoinAll(&RankFigures::operators, 0);
    const auto by_place = [&](const std::string& title, const std::string& place) {
      return Bars(operators, {.title = title,
                              .categories = {"name"},
                              .values = {"self_ns"},
                              .where = {{"place", place}},
                              .largest_first = true,
                              .most = 15});
    };
    section.charts.push_back(by_place(OfAll("self time on devices"), "device"));
    section.charts.push_back(by_place(OfAll("self time on the host"), "host"));
    section.charts.push_back(
        Bars(JoinAll(&RankFigures::operators, 2), {.title = OfAll("modules"),
                                                   .categories = {"module"},
                                                   .values = {"host_self_ns", "device_ns"},
                                                   .largest_first = true,
                                                   .most = 15}));
    page_.sections.push_back(std::move(section));
  }

  void Collectives() {
    Page::Section section{.key = "collectives",
                          .title = "Collectives",
                          .about =
                              "Skew is the time a rank waits in a collective until the last rank "
                              "enters it, on aligned clocks; transfer is the rest."};
    for (size_t i = 0; i < jobs_.size(); ++i) {
      const Matched& matched = matched_[i];
      if (!matched.is_job) continue;
      std::vector<Table> tables = CommTables(matched.skew, matched.match);
      for (Table& table : tables) AddOfJob(section, i, std::move(table));
      for (const std::string& note : CommNotes(matched.skew, matched.match)) {
        section.notes.push_back(jobs_.size() == 1 ? note : jobs_[i].name + ": " + note);
      }
    }
    if (section.tables.empty()) {
      section.about.clear();
      section.notes.emplace_back(
          "separating skew from transfer requires traces of several ranks of a job");
    } else {
      SkewCharts(section);
      section.tables = CutForPage(std::move(section.tables));
    }
    page_.sections.push_back(std::move(section));
  }

  // Adds a table of one of several jobs, with the job's name as prefix.
  void AddOfJob(Page::Section& section, size_t job, Table table) const {
    if (jobs_.size() > 1) {
      table.columns.insert(table.columns.begin(), {"job", "job", Unit::kText});
      for (auto& row : table.rows) row.insert(row.begin(), jobs_[job].name);
    }
    const auto same = std::ranges::find(section.tables, table.key, &Table::key);
    if (same == section.tables.end()) {
      section.tables.push_back(std::move(table));
    } else {
      same->left_out += table.left_out;
      same->rows.insert(same->rows.end(), table.rows.begin(), table.rows.end());
    }
  }

  void SkewCharts(Page::Section& section) const {
    const auto chart = [&](const std::string& title, std::vector<std::string> by) {
      if (jobs_.size() > 1) by.insert(by.begin(), "job");
      return Bars(section.tables[0], {.title = title,
                                      .kind = Chart::Kind::kStacked,
                                      .categories = std::move(by),
                                      .values = {"skew_ns", "transfer_ns"}});
    };
    section.charts.push_back(chart("skew and transfer, by rank", {"rank"}));
    section.charts.push_back(chart("skew and transfer, by type and group", {"type", "group"}));
  }

  void CriticalPathSection() {
    Page::Section section = SectionOf(
        "critical_path", "Critical path",
        "The longest chain of dependent work. Only work on this chain can shorten the run.",
        &RankFigures::critical_path);
    section.charts.push_back(
        Bars(JoinAll(&RankFigures::critical_path, 1), {.title = "time of the span by activity",
                                                       .kind = Chart::Kind::kStacked,
                                                       .categories = {"rank"},
                                                       .values = {"time_ns"},
                                                       .series = "part"}));
    section.charts.push_back(
        Bars(JoinAll(&RankFigures::critical_path, 2), {.title = OfAll("most time on the path"),
                                                       .categories = {"name"},
                                                       .values = {"time_ns"},
                                                       .largest_first = true,
                                                       .most = 15}));
    page_.sections.push_back(std::move(section));
  }

  void MemorySection() {
    Page::Section section = SectionOf("memory", "Memory", "", &RankFigures::memory);
    Chart lines{
        .title = "memory in use over time", .kind = Chart::Kind::kSteps, .unit = Unit::kBytes};
    constexpr size_t kMostLines = 8;
    size_t left_out = 0;
    for (size_t i = 0; i < ranks_.size(); ++i) {
      for (Chart::Series& series : ranks_[i]->memory_lines.series) {
        if (lines.series.size() == kMostLines) {
          ++left_out;
          continue;
        }
        if (!Who(i).empty()) series.name = Who(i) + " · " + series.name;
        lines.series.push_back(std::move(series));
      }
    }
    if (left_out != 0) lines.note = fmt::format("{} more lines are not drawn", left_out);
    section.charts.push_back(std::move(lines));
    section.charts.push_back(
        Bars(JoinAll(&RankFigures::memory, 1),
             {.title = OfAll("memory at the peak, by the operator that created it"),
              .categories = {"op"},
              .values = {"bytes"},
              .largest_first = true,
              .most = 12}));
    page_.sections.push_back(std::move(section));
  }

  void TimelineSection() {
    Page::Section section{.key = "timeline", .title = "Timeline"};
    size_t unaligned = 0;
    size_t next = 0;
    for (size_t i = 0; i < jobs_.size(); ++i) {
      const std::optional<Nanos> first = FirstBegin(matched_[i], jobs_[i]);
      for (RankFigures& rank : jobs_[i].ranks) {
        const size_t index = next++;
        AddTimelineNotes(rank.timeline, index, section.notes);
        if (!rank.timeline.span) continue;
        const std::optional<Nanos> offset = OffsetOf(matched_[i], rank);
        if (!offset && jobs_[i].ranks.size() > 1) ++unaligned;
        const Nanos begin = rank.timeline.span->begin;
        section.tracks.push_back({.title = ranks_.size() == 1 ? rank.path : Who(index),
                                  .timeline = std::move(rank.timeline),
                                  .clock_offset = offset ? *offset + *first : begin});
      }
    }
    if (section.tracks.empty()) {
      section.notes.emplace_back("no timeline, because no node has a start and a duration");
    }
    if (unaligned != 0) {
      section.notes.push_back(
          fmt::format("{} cannot be aligned with the others; its times start at 0",
                      FormatCount(unaligned, "clock")));
    }
    page_.sections.push_back(std::move(section));
  }

  // Returns how far the clock of a rank is ahead; nullopt if it is unknown.
  static std::optional<Nanos> OffsetOf(const Matched& matched, const RankFigures& rank) {
    if (!rank.rank || matched.logs.size() < 2) return std::nullopt;
    const auto clock = std::ranges::find(matched.match.clocks, *rank.rank, &ClockOffset::rank);
    return clock == matched.match.clocks.end() ? std::nullopt : clock->offset;
  }

  // Returns the begin of the first event, by the first rank's clock, among ranks with comparable
  // clocks.
  static std::optional<Nanos> FirstBegin(const Matched& matched, const JobFigures& job) {
    std::optional<Nanos> first;
    for (const RankFigures& rank : job.ranks) {
      const std::optional<Nanos> offset = OffsetOf(matched, rank);
      if (!offset || !rank.timeline.span) continue;
      const Nanos begin = rank.timeline.span->begin - *offset;
      first = std::min(first.value_or(begin), begin);
    }
    return first;
  }

  void AddTimelineNotes(const Timeline& timeline, size_t rank,
                        std::vector<std::string>& notes) const {
    const std::string who = Who(rank).empty() ? "" : Who(rank) + ": ";
    if (timeline.merged_below.count != 0) {
      notes.push_back(
          fmt::format("{}{} events are drawn as {}: adjacent events shorter than {} are merged",
                      who, FormatCount(timeline.events), FormatCount(timeline.drawn),
                      FormatTime(timeline.merged_below)));
    }
    if (timeline.too_deep != 0) {
      notes.push_back(fmt::format("{}{} nested more than {} deep and not drawn", who,
                                  FormatCount(timeline.too_deep, "event is", "events are"),
                                  kMostRows));
    }
    if (timeline.untimed != 0 && timeline.span) {
      notes.push_back(fmt::format("{}{} no start or no duration and {} not drawn", who,
                                  FormatCount(timeline.untimed, "node has", "nodes have"),
                                  timeline.untimed == 1 ? "is" : "are"));
    }
  }

  void Replays() {
    Page::Section section{
        .key = "replay",
        .title = "Original and replay",
        .about = "Steps of the original, timed without instrumentation, and steps of its replay."};
    for (size_t i = 0; i < jobs_.size(); ++i) {
      section.notes.insert(section.notes.end(), jobs_[i].replay_notes.begin(),
                           jobs_[i].replay_notes.end());
      if (jobs_[i].replays.empty()) continue;
      for (Table& table : ReplayTables(jobs_[i].replays)) AddOfJob(section, i, std::move(table));
    }
    const bool has_replays = !section.tables.empty();
    for (size_t i = 0; i < jobs_.size(); ++i) {
      if (!jobs_[i].runs.empty()) AddOfJob(section, i, RunComparisonTable(jobs_[i].runs));
    }
    if (section.tables.empty() && section.notes.empty()) return;
    if (has_replays) {
      std::vector<std::string> by = {"rank", "clock"};
      if (jobs_.size() > 1) by.insert(by.begin(), "job");
      section.charts.push_back(Bars(section.tables[0], {.title = "median time of a step",
                                                        .categories = std::move(by),
                                                        .values = {"original_ns", "replay_ns"}}));
    }
    page_.sections.push_back(std::move(section));
  }

  void Method() {
    page_.remarks.push_back(
        {"Method",
         "Verdict: see docs/health.md. It counts everything that could not be read, linked or "
         "matched.\nSteps: unions over all streams of a rank, so that concurrent work counts once; "
         "for a trace without device work, over the host threads. Exposed time is time that no "
         "kind of work listed before it overlaps.\nOperators: durations as recorded; self time "
         "excludes nodes inside on the same lane. Modules come from nn.Module labels, or from the "
         "program's own labels.\nCollectives: matched by process group and issue order. Clocks are "
         "aligned at the ends of collectives that end on all ranks together; the offset is the "
         "median difference.\nCritical path: a thread runs its nodes in order; device work starts "
         "after its launch, after the previous work on its stream, and after everything it waits "
         "for.\nMemory: from tensors, from their creation to their last recorded use, which is a "
         "lower bound; and from the allocators, if the profile contains their events.\nTimeline: "
         "events narrower than a pixel share one, shaded by how much of it is filled.\nReplay: "
         "medians and quartiles of steps; the error is the replay's median divided by the "
         "original's, minus 1. For alternating runs: medians with 95 % intervals from a bootstrap "
         "over pairs (docs/models/paired_comparison.md).\nUnknown figures are shown as –. The "
         "commands stats, breakdown, critical-path, memory and validate of etude print the same "
         "figures in full."});
  }

  std::vector<JobFigures> jobs_;
  std::vector<RankFigures*> ranks_;  // of all jobs
  std::vector<Cell> names_;          // names of the ranks
  std::vector<Matched> matched_;     // by job
  Page page_;
};

}  // namespace

Page MakeJobPage(std::string title, std::vector<JobFigures> jobs) {
  return PageMaker(std::move(title), std::move(jobs)).Make();
}

}  // namespace etude
