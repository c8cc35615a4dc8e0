#include "src/synth/dlrm/dlrm_plan.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include <fmt/format.h>

#include "src/base/ceil_div.h"

namespace etude {
namespace {

constexpr double kMostDlrmWork = 2e7;  // total of all ranks
constexpr int64_t kStateBytes = 4;

int64_t TypeBytes(const DlrmModel& model) { return ElementBytes(model.type).value_or(0); }

double Double(int64_t value) { return static_cast<double>(value); }

// Returns an upper bound of the total of operations and bytes of a rank's passes.
double MostOfStep(const DlrmModel& model, const DlrmPlan& plan) {
  const double samples = Double(plan.batch) * Double(plan.ranks);
  double looked_up = 0;
  for (const EmbeddingTable& table : model.tables) {
    looked_up += (Double(table.lookups) + 1) * (Double(table.dimension) + 8);
  }
  const double features = Double(model.features());
  return 64 * samples *
             (looked_up + Double(DenseParameters(model)) +
              features * (features + 1) * (Double(model.bottom.back()) + 1) +
              Double(model.cross_layers + 1) * Double(model.feature_elements())) +
         32 * (Double(DenseParameters(model)) + Double(TableParameters(model)));
}

}  // namespace

Status CheckDlrmPlan(const DlrmModel& model, const DlrmPlan& plan) {
  constexpr int64_t kMostRanks = int64_t{1} << 20;
  constexpr int64_t kMostBatch = int64_t{1} << 24;
  if (plan.ranks < 1 || plan.ranks > kMostRanks) {
    return BadInput(fmt::format("ranks: found {}, expected 1 to {}", plan.ranks, kMostRanks));
  }
  if (plan.batch < 1 || plan.batch > kMostBatch) {
    return BadInput(fmt::format("batch: found {}, expected 1 to {}", plan.batch, kMostBatch));
  }
  if (plan.most_columns && *plan.most_columns < 1) {
    return BadInput(fmt::format("columns of a part of a table: found {}, expected one or more",
                                *plan.most_columns));
  }
  if (plan.bucket.count < 1) {
    return BadInput(fmt::format("bucket: found {} bytes, expected one or more", plan.bucket.count));
  }
  double parts = 0;
  for (const EmbeddingTable& table : model.tables) {
    parts +=
        std::ceil(Double(table.dimension) / Double(plan.most_columns.value_or(table.dimension)));
  }
  const double layers = Double(static_cast<int64_t>(model.bottom.size() + model.top.size())) +
                        Double(model.cross_layers);
  const double works =
      2 * parts + (2 * Double(model.features()) + 8 * layers + 16) * Double(plan.ranks);
  if (works > kMostDlrmWork) {
    return BadInput(fmt::format("found about {:.1e} nodes on all ranks, expected at most {:.1e}",
                                works, kMostDlrmWork));
  }
  if (const double most = MostOfStep(model, plan); most > std::ldexp(1, 62)) {
    return BadInput(
        fmt::format("found about {:.1e} operations or bytes of a step, expected fewer "
                    "than {:.1e}",
                    most, std::ldexp(1, 62)));
  }
  return {};
}

TablePlacement PlaceTables(const DlrmModel& model, const DlrmPlan& plan) {
  TablePlacement placement;
  placement.parts.resize(static_cast<size_t>(plan.ranks));
  std::vector<std::pair<int64_t, TablePart>> parts;  // by cost
  for (size_t i = 0; i < model.tables.size(); ++i) {
    const EmbeddingTable& table = model.tables[i];
    const int64_t bytes = table.elements() * TypeBytes(model);
    if (plan.ranks > 1 && bytes <= plan.replicate.count) {
      placement.replicated.push_back(i);
      continue;
    }
    if (plan.ranks > 1 && plan.split_rows && bytes > plan.split_rows->count) {
      placement.by_rows.push_back(i);
      continue;
    }
    const int64_t most = std::min(plan.most_columns.value_or(table.dimension), table.dimension);
    for (int64_t first = 0; first < table.dimension; first += most) {
      const int64_t columns = std::min(most, table.dimension - first);
      const int64_t rows = plan.cost == TableCost::kBytes ? table.rows : table.lookups;
      parts.emplace_back(rows * columns,
                         TablePart{.table = i, .first_column = first, .columns = columns});
    }
  }
  std::ranges::stable_sort(parts, std::greater<>(), &std::pair<int64_t, TablePart>::first);
  using Load = std::pair<int64_t, size_t>;  // load, rank
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  for (size_t rank = 0; rank < placement.parts.size(); ++rank) loads.emplace(0, rank);
  for (const auto& [cost, part] : parts) {
    const auto [load, rank] = loads.top();
    loads.pop();
    placement.parts[rank].push_back(part);
    loads.emplace(load + cost, rank);
  }
  for (std::vector<TablePart>& own : placement.parts) {
    std::ranges::sort(own, [](const TablePart& a, const TablePart& b) {
      return std::pair(a.table, a.first_column) < std::pair(b.table, b.first_column);
    });
  }
  return placement;
}

StepStates StatesOfRank(const DlrmModel& model, const DlrmPlan& plan,
                        const TablePlacement& placement, int64_t rank) {
  const int64_t width = TypeBytes(model);
  int64_t elements = 0;
  int64_t rows = 0;  // with one number each for row-wise Adagrad
  for (const TablePart& part : placement.parts[static_cast<size_t>(rank)]) {
    elements += model.tables[part.table].rows * part.columns;
    rows += model.tables[part.table].rows;
  }
  for (const size_t table : placement.by_rows) {
    const int64_t share = CeilDiv(model.tables[table].rows, plan.ranks);
    elements += share * model.tables[table].dimension;
    rows += share;
  }
  int64_t replicated = 0;
  for (const size_t table : placement.replicated) replicated += model.tables[table].elements();
  const int64_t dense = DenseParameters(model);
  StepStates states{.weights = Bytes{(elements + replicated + dense) * width}};
  if (!plan.training) return states;
  states.gradients = Bytes{(dense + replicated) * width};
  if (plan.optimizer == DlrmOptimizer::kAdagrad) {
    states.optimizer = Bytes{(dense + replicated + rows) * kStateBytes};
  }
  return states;
}

}  // namespace etude
