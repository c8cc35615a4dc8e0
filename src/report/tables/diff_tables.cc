#include "src/report/tables/diff_tables.h"

#include <utility>

#include <fmt/format.h>

namespace etude {
namespace {

// Returns b / a - 1.
Cell Growth(std::optional<Nanos> a, std::optional<Nanos> b) {
  if (!a || !b || a->count <= 0) return {};
  return static_cast<double>(b->count) / static_cast<double>(a->count) - 1;
}

Table Sums(std::string key, std::string title, std::string column,
           const std::vector<TraceDiff::Sum>& sums) {
  Table table{.key = std::move(key),
              .title = std::move(title),
              .columns = {{column, column, Unit::kText},
                          {"place", "on", Unit::kText},
                          {"count_a", "count a", Unit::kCount},
                          {"count_b", "count b", Unit::kCount},
                          {"removed", "removed", Unit::kCount},
                          {"added", "added", Unit::kCount},
                          {"reshaped", "reshaped", Unit::kCount},
                          {"self_a_ns", "time a", Unit::kTime},
                          {"self_b_ns", "time b", Unit::kTime},
                          {"change", "change", Unit::kChange}},
              .rows = {}};
  for (const TraceDiff::Sum& sum : sums) {
    table.rows.push_back({std::string(sum.name), std::string(Name(sum.place)),
                          CountCell(sum.count_a), CountCell(sum.count_b), CountCell(sum.removed),
                          CountCell(sum.added), CountCell(sum.reshaped), ToCell(sum.self_a),
                          ToCell(sum.self_b), Growth(sum.self_a, sum.self_b)});
  }
  return table;
}

// Returns the shapes of a node's input tensors: "[8,16] [16]".
std::string ShapesText(const Trace& trace, NodeId node) {
  std::string text;
  const auto add = [&](TensorId id) {
    const TensorUse& use = trace.tensor(id);
    if (!text.empty()) text += " ";
    text += fmt::format("[{}]", fmt::join(trace.ints(use.shape), ","));
  };
  ForEachTensor(trace, trace.inputs(node), add);
  return text;
}

void Describe(const Trace& trace, NodeId node, std::vector<Cell>& cells) {
  cells.resize(cells.size() + 2);
  if (!node) return;
  cells[cells.size() - 2] = static_cast<int64_t>(trace.source_id(node));
  cells[cells.size() - 1] = ShapesText(trace, node);
}

}  // namespace

std::vector<Table> DiffTables(const Trace& a, const Trace& b, const TraceDiff& diff) {
  Table summary{.key = "summary",
                .title = diff.is_same() ? "the same operators" : "different operators",
                .columns = {{"same", "same", Unit::kCount},
                            {"removed", "only in a", Unit::kCount},
                            {"added", "only in b", Unit::kCount},
                            {"reshaped", "other shapes", Unit::kCount},
                            {"span_a_ns", "span a", Unit::kTime},
                            {"span_b_ns", "span b", Unit::kTime},
                            {"change", "change", Unit::kChange}},
                .rows = {}};
  summary.rows.push_back({CountCell(diff.same), CountCell(diff.removed), CountCell(diff.added),
                          CountCell(diff.reshaped), ToCell(diff.span_a), ToCell(diff.span_b),
                          Growth(diff.span_a, diff.span_b)});
  Table nodes{.key = "nodes",
              .title = "nodes that differ",
              .columns = {{"change", "change", Unit::kText},
                          {"name", "name", Unit::kText},
                          {"node_a", "node a", Unit::kNumber},
                          {"shapes_a", "takes", Unit::kText},
                          {"node_b", "node b", Unit::kNumber},
                          {"shapes_b", "takes", Unit::kText}},
              .rows = {}};
  for (const TraceDiff::Entry& entry : diff.entries) {
    std::vector<Cell>& cells = nodes.rows.emplace_back();
    cells.emplace_back(std::string(Name(entry.change)));
    cells.emplace_back(std::string(entry.a ? a.name(entry.a) : b.name(entry.b)));
    Describe(a, entry.a, cells);
    Describe(b, entry.b, cells);
  }
  return {std::move(summary), Sums("ops", "operators and device work by name", "name", diff.ops),
          Sums("modules", "by module", "module", diff.modules), std::move(nodes)};
}

}  // namespace etude
