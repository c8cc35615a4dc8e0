#include "src/report/tables/simulated/sim_page.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace etude {
namespace {

// Tables of a section, in order, and a bar chart of one of them.
struct SectionPlan {
  std::string_view key;
  std::string_view title;
  std::string_view about;
  std::vector<std::string_view> tables;
  std::string_view chart_of;
  BarChoice chart;
};

BarChoice BarsOf(std::string title, std::vector<std::string> categories, std::string value) {
  return {.title = std::move(title),
          .categories = std::move(categories),
          .values = {std::move(value)},
          .series = {},
          .where = {},
          .largest_first = true};
}

std::vector<SectionPlan> SectionPlans() {
  return {
      {"jobs",
       "Jobs",
       "Steps of jobs alone on the network and beside the others.",
       {"jobs"},
       "jobs",
       {.title = "Steps of the jobs",
        .categories = {"job"},
        .values = {"alone_ns", "shared_ns"},
        .series = {},
        .where = {}}},
      {"time",
       "Time",
       "Where each class of ranks spends the step. Waits are idle time.",
       {"times", "ranks", "measured", "roofline"},
       "ranks",
       {.title = "Time of the ranks by activity",
        .kind = Chart::Kind::kStacked,
        .categories = {"ranks"},
        .values = {"compute_ns", "exposed_communication_ns", "exposed_memory_ns", "host_ns",
                   "idle_ns"},
        .series = {},
        .where = {}}},
      {"sensitivity",
       "Sensitivity",
       "What 1 % more of one thing gains, as a share of the step.",
       {"sensitivity"},
       "sensitivity",
       BarsOf("Gain with 1 % more of one thing", {"what"}, "gain_share")},
      {"path",
       "Critical path",
       "The chain of work and waits that ends with the step.",
       {"path_parts", "path_names", "path_ranks", "path"},
       "path_names",
       BarsOf("Time on the critical path", {"name", "part"}, "time_ns")},
      {"collectives",
       "Collectives",
       "Mean times, from the first begin to the last end.",
       {"collectives"},
       "collectives",
       BarsOf("Mean time of a collective", {"type", "bytes", "ranks", "algorithm"}, "time_ns")},
      {"links",
       "Links",
       "Share of the step in which a link would be busy with its bytes alone.",
       {"links"},
       "links",
       BarsOf("Utilisation of links", {"from", "to"}, "utilisation")},
      {"variation",
       "Variation and failures",
       "Steps with random differences, and what failures cost a long job.",
       {"variation", "failures"},
       "",
       {}},
      {"stragglers",
       "Stragglers",
       "The step with the times of ranks that do the same.",
       {"stragglers", "remedies"},
       "",
       {}},
      {"energy", "Energy", "By a table of power.", {"energy", "energy_ranks"}, "", {}},
      {"memory", "Memory", "Memory of the job.", {"capacity", "memory"}, "", {}},
  };
}

}  // namespace

Page SimPage(const SimPageInput& input) {
  Page page{.title = "Simulated step",
            .inputs = {input.job},
            .health = {},
            .sections = {},
            .remarks = {{"Machine", input.machine}}};
  const auto find = [&](std::string_view key) {
    return std::ranges::find(input.tables, key, &Table::key);
  };
  for (SectionPlan& plan : SectionPlans()) {
    Page::Section section{.key = std::string(plan.key),
                          .title = std::string(plan.title),
                          .about = std::string(plan.about)};
    for (const std::string_view key : plan.tables) {
      const auto table = find(key);
      if (table == input.tables.end() || table->rows.empty()) continue;
      if (key == plan.chart_of) section.charts.push_back(Bars(*table, plan.chart));
      section.tables.push_back(*table);
    }
    if (section.tables.empty()) continue;
    if (page.sections.empty()) {
      section.facts = {{"step time", input.step, Unit::kTime},
                       {"ranks", input.ranks, Unit::kCount},
                       {"model", input.model, Unit::kText}};
      section.notes = input.notes;
    }
    page.sections.push_back(std::move(section));
  }
  return page;
}

}  // namespace etude
