#include "src/transform/operators/program_phases.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "src/run/calls/launch.h"
#include "src/run/waits/program_order.h"
#include "src/trace/program_parts.h"
#include "src/trace/words/operator_name.h"
#include "src/transform/operators/label_phases.h"

namespace etude {
namespace {

constexpr size_t kPhaseCount = std::size(kAllPhases);

PhaseRow& RowOf(std::vector<PhaseRow>& rows, Phase phase) {
  return rows[static_cast<size_t>(phase)];
}

// Adds the shape of a graph of these nodes.
void AddShape(PhaseRow& row, const Trace& trace, const OperationTypes& types,
              const std::vector<NodeId>& nodes) {
  const std::optional<LayerShape> shape = FindShape(GraphOf(trace, types, nodes));
  if (!shape || !row.shape) {
    row.shape = std::nullopt;
    return;
  }
  row.shape->layers = std::max(row.shape->layers, shape->layers);
  row.shape->width = std::max(row.shape->width, shape->width);
}

std::vector<PhaseRow> RowsOfAll() {
  std::vector<PhaseRow> rows(kPhaseCount);
  for (const Phase phase : kAllPhases) RowOf(rows, phase).phase = phase;
  return rows;
}

ProgramPhases OfSpans(const Trace& trace, const std::vector<ProgramSpan>& spans) {
  ProgramPhases found{.stated = true, .rows = RowsOfAll()};
  const std::vector<const ProgramSpan*> of = SpansOfNodes(trace, spans);
  const OperationTypes types = FindTypes(trace);
  std::set<int64_t> steps;
  std::set<int64_t> micro_batches;
  for (size_t i = 0; i < of.size();) {
    size_t end = i;
    while (end < of.size() && of[end] == of[i]) ++end;
    if (of[i] != nullptr) {
      const ProgramPart& part = of[i]->part;
      steps.insert(part.step);
      if (part.micro_batch) micro_batches.insert(*part.micro_batch);
      PhaseRow& row = RowOf(found.rows, part.phase);
      const uint64_t nodes = end - i;
      row.least = row.stretches == 0 ? nodes : std::min(row.least, nodes);
      row.most = std::max(row.most, nodes);
      row.nodes += nodes;
      ++row.stretches;
      AddShape(row, trace, types, Stretch(i, nodes));
    }
    i = end;
  }
  found.steps = steps.size();
  found.micro_batches = micro_batches.size();
  return found;
}

ProgramPhases ByLabels(const Trace& trace) {
  ProgramPhases found{.rows = RowsOfAll()};
  std::vector<Phase> phases = PhasesByLabels(trace, TopDown(trace));
  const std::vector<NodeId> launchers = FindLaunchers(trace);
  std::set<std::string_view> steps;
  std::vector<std::vector<NodeId>> nodes(kPhaseCount);
  ForEachNode(trace, [&](NodeId node) {
    if (IsRoot(trace.kind(node))) return;
    if (IsStepMark(trace.name(node))) {
      steps.insert(trace.name(node));
      return;
    }
    const NodeId launcher = launchers[node.index()];
    nodes[static_cast<size_t>(phases[(launcher ? launcher : node).index()])].push_back(node);
  });
  const OperationTypes types = FindTypes(trace);
  for (PhaseRow& row : found.rows) {
    const std::vector<NodeId>& of = nodes[static_cast<size_t>(row.phase)];
    row.nodes = of.size();
    AddShape(row, trace, types, of);
  }
  found.steps = steps.size();
  // Unlabelled nodes count as forward: in a trace without labels, phases are unknown.
  if (std::ranges::all_of(found.rows, [](const PhaseRow& row) {
        return row.phase == Phase::kForward || row.nodes == 0;
      })) {
    found.rows.clear();
  }
  return found;
}

}  // namespace

Result<ProgramPhases> FindPhases(const Trace& trace) {
  ETUDE_ASSIGN_OR_RETURN(const std::vector<ProgramSpan> spans, StatedParts(trace));
  ProgramPhases found = spans.empty() ? ByLabels(trace) : OfSpans(trace, spans);
  std::erase_if(found.rows, [](const PhaseRow& row) { return row.nodes == 0; });
  return found;
}

}  // namespace etude
