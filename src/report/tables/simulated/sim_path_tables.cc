#include "src/report/tables/simulated/sim_path_tables.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "src/base/text/digit_runs.h"

namespace etude {
namespace {

struct Sum {
  int64_t time = 0;
  int64_t count = 0;
  int64_t held = 0;
  int64_t awaited = 0;

  void Add(const SimPath::Stretch& stretch) {
    time += stretch.length();
    ++count;
    held += stretch.held;
    awaited += stretch.awaited;
  }
};

// Returns the sums by time, descending.
template <typename Key>
std::vector<std::pair<Key, Sum>> Sorted(const std::map<Key, Sum>& sums) {
  std::vector<std::pair<Key, Sum>> rows(sums.begin(), sums.end());
  std::ranges::stable_sort(rows, std::ranges::greater{},
                           [](const auto& row) { return row.second.time; });
  return rows;
}

class SimPathRows {
 public:
  SimPathRows(const SimPath& path, const SimWorkload& workload, const SimNodeNames& names)
      : path_(path), workload_(workload) {
    for (const SimPath::Stretch& stretch : path.stretches) {
      names_.push_back(stretch.node == SimPath::Stretch::kNoNode
                           ? std::string()
                           : names(stretch.rank, stretch.node));
    }
  }

  std::vector<Table> Make() const { return {Parts(), Ranks(), NodeNames(), Stretches()}; }

 private:
  Cell Share(int64_t time) const { return ShareCell(Nanos{time}, Nanos{path_.length}); }

  Table Parts() const {
    Table table{.key = "path_parts",
                .title = "critical path by activity",
                .columns = {{"part", "part", Unit::kText},
                            {"time_ns", "time", Unit::kTime},
                            {"share", "of the step", Unit::kShare},
                            {"count", "count", Unit::kCount},
                            {"held_ns", "queued", Unit::kTime}},
                .rows = {}};
    std::array<Sum, kSimPartCount> sums;
    for (const SimPath::Stretch& stretch : path_.stretches) {
      sums[static_cast<size_t>(stretch.part)].Add(stretch);
    }
    for (size_t i = 0; i < sums.size(); ++i) {
      const Sum& sum = sums[i];
      if (sum.count == 0) continue;
      table.rows.push_back({std::string(Name(static_cast<SimPart>(i))), sum.time, Share(sum.time),
                            sum.count, sum.held});
    }
    return table;
  }

  Table Ranks() const {
    Table table{.key = "path_ranks",
                .title = "critical path by rank",
                .columns = {{"rank", "rank", Unit::kNumber},
                            {"time_ns", "time", Unit::kTime},
                            {"share", "of the step", Unit::kShare},
                            {"count", "count", Unit::kCount},
                            {"awaited_ns", "others waited", Unit::kTime}},
                .rows = {}};
    std::map<int64_t, Sum> sums;
    for (const SimPath::Stretch& stretch : path_.stretches) sums[stretch.rank].Add(stretch);
    for (const auto& [rank, sum] : Sorted(sums)) {
      table.rows.push_back({rank, sum.time, Share(sum.time), sum.count, sum.awaited});
    }
    return table;
  }

  Table NodeNames() const {
    Table table{.key = "path_names",
                .title = "critical path by name, ignoring numbers",
                .columns = {{"name", "name", Unit::kText},
                            {"part", "part", Unit::kText},
                            {"time_ns", "time", Unit::kTime},
                            {"share", "of the step", Unit::kShare},
                            {"count", "count", Unit::kCount}},
                .rows = {}};
    std::map<std::pair<std::string, SimPart>, Sum> sums;
    for (size_t i = 0; i < names_.size(); ++i) {
      sums[{WithoutNumbers(names_[i], "*"), path_.stretches[i].part}].Add(path_.stretches[i]);
    }
    for (const auto& [key, sum] : Sorted(sums)) {
      table.rows.push_back({NameCell(key.first), std::string(Name(key.second)), sum.time,
                            Share(sum.time), sum.count});
    }
    return table;
  }

  Table Stretches() const {
    Table table{.key = "path",
                .title = "the critical path",
                .columns = {{"begin_ns", "begin", Unit::kTime},
                            {"time_ns", "time", Unit::kTime},
                            {"rank", "rank", Unit::kNumber},
                            {"part", "part", Unit::kText},
                            {"name", "name", Unit::kText},
                            {"node", "node", Unit::kNumber},
                            {"after", "began after", Unit::kText},
                            {"held_ns", "queued", Unit::kTime},
                            {"awaited_ns", "others waited", Unit::kTime}},
                .rows = {}};
    for (size_t i = 0; i < names_.size(); ++i) {
      const SimPath::Stretch& stretch = path_.stretches[i];
      Cell node;
      if (stretch.node != SimPath::Stretch::kNoNode) {
        const SimRank& rank = workload_.ranks[static_cast<size_t>(stretch.rank)];
        node = static_cast<int64_t>(rank.program->source_ids[stretch.node]);
      }
      table.rows.push_back({stretch.begin, stretch.length(), stretch.rank,
                            std::string(Name(stretch.part)), NameCell(names_[i]), node,
                            std::string(Name(stretch.cause)), stretch.held, stretch.awaited});
    }
    return table;
  }

  static Cell NameCell(const std::string& name) { return name.empty() ? Cell() : Cell(name); }

  const SimPath& path_;
  const SimWorkload& workload_;
  std::vector<std::string> names_;  // by stretch
};

}  // namespace

std::vector<Table> SimPathTables(const SimPath& path, const SimWorkload& workload,
                                 const SimNodeNames& names) {
  return SimPathRows(path, workload, names).Make();
}

}  // namespace etude
