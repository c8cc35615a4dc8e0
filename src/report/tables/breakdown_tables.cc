#include "src/report/tables/breakdown_tables.h"

#include <utility>

#include <fmt/format.h>

#include "src/base/text/format_count.h"
#include "src/report/text/format.h"

namespace etude {
namespace {

const std::vector<Table::Column> kShareColumns = {
    {"window_ns", "window", Unit::kTime},
    {"compute_ns", "compute", Unit::kTime},
    {"communication_ns", "comm", Unit::kTime},
    {"exposed_communication_ns", "exposed comm", Unit::kTime},
    {"copies_ns", "copies", Unit::kTime},
    {"exposed_copies_ns", "exposed copies", Unit::kTime},
    {"idle_ns", "idle", Unit::kTime},
    {"host_wait_ns", "host wait", Unit::kTime},
    {"kernel_wait_ns", "kernel wait", Unit::kTime},
    {"other_wait_ns", "other wait", Unit::kTime},
};

void AddShares(const TimeShares& times, std::vector<Cell>& cells) {
  for (const Nanos time :
       {times.window, times.compute, times.communication, times.exposed_communication, times.copies,
        times.exposed_copies, times.idle}) {
    cells.emplace_back(time.count);
  }
  for (const auto reason :
       {&IdleReasons::host_wait, &IdleReasons::kernel_wait, &IdleReasons::other}) {
    std::optional<Nanos> idle;
    if (times.reasons) idle = (*times.reasons).*reason;
    cells.push_back(ToCell(idle));
  }
}

std::vector<Table::Column> WithShares(std::vector<Table::Column> columns) {
  columns.insert(columns.end(), kShareColumns.begin(), kShareColumns.end());
  return columns;
}

}  // namespace

std::vector<Table> BreakdownTables(const Breakdown& breakdown) {
  Table steps{.key = "steps",
              .title = breakdown.on_device ? "time of devices" : "time of host threads",
              .columns = WithShares({{"step", "step", Unit::kText}}),
              .rows = {}};
  const auto add_step = [&](std::string_view name, const TimeShares& times) {
    std::vector<Cell>& cells = steps.rows.emplace_back();
    cells.emplace_back(std::string(name));
    AddShares(times, cells);
  };
  if (breakdown.whole) add_step("(all)", *breakdown.whole);
  for (const Breakdown::Step& step : breakdown.steps) add_step(step.name, step.times);
  Table streams{.key = "streams",
                .title = "time of each stream, from its first to its last work",
                .columns = WithShares({{"process", "process", Unit::kText},
                                       {"device", "device", Unit::kNumber},
                                       {"stream", "stream", Unit::kNumber},
                                       {"count", "count", Unit::kCount}}),
                .rows = {}};
  for (const Breakdown::Stream& stream : breakdown.streams) {
    std::vector<Cell>& cells = streams.rows.emplace_back();
    cells.push_back(stream.process.empty() ? Cell() : Cell(std::string(stream.process)));
    for (const int32_t number : {stream.device, stream.stream}) {
      Cell& cell = cells.emplace_back();
      if (number >= 0) cell = int64_t{number};
    }
    cells.emplace_back(static_cast<int64_t>(stream.count));
    AddShares(stream.times, cells);
  }
  return {std::move(steps), std::move(streams)};
}

std::vector<std::string> BreakdownNotes(const Breakdown& breakdown) {
  std::vector<std::string> notes;
  if (!breakdown.whole) {
    notes.emplace_back(breakdown.untimed == 0
                           ? "no operator and no device work: nothing to break down"
                           : "no work has a start and a duration: nothing to break down");
  } else if (breakdown.untimed != 0) {
    notes.push_back(FormatCount(breakdown.untimed,
                                "piece of work lacks a start or duration and is ignored",
                                "pieces of work lack a start or duration and are ignored"));
  }
  if (breakdown.unlaunched != 0) {
    notes.push_back(
        fmt::format("{} launched at an unknown time; idle time before is counted as \"other\"",
                    FormatCount(breakdown.unlaunched, "piece of device work was",
                                "pieces of device work were")));
  }
  return notes;
}

}  // namespace etude
