#include "src/trace/job/operation_graph.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "src/trace/words/cut_text.h"

namespace etude {
namespace {

std::string NameWithoutNumbers(std::string_view name) {
  const std::string form = CutNumbers(name).form;
  std::string without = form.substr(1);
  if (form.front() == CutText::kWithNumbers) {
    std::ranges::replace(without, CutText::kNumberInText, '#');
  }
  return without;
}

EdgeKind KindOf(DepKind kind) {
  switch (kind) {
    case DepKind::kControl: return EdgeKind::kControl;
    case DepKind::kData: return EdgeKind::kData;
    case DepKind::kSync: return EdgeKind::kSync;
  }
  return EdgeKind::kControl;
}

}  // namespace

OperationTypes FindTypes(const Trace& trace) {
  OperationTypes found;
  std::vector<std::optional<std::string>> names(trace.strings().size());
  std::map<OperationType, uint32_t> numbers;  // in node order
  ForEachNode(trace, [&](NodeId node) {
    OperationType type{.kind = trace.kind(node), .place = trace.place(node)};
    if (const Comm* comm = trace.comm(node)) type.collective = comm->type;
    if (const StringId name = trace.name_id(node)) {
      std::optional<std::string>& known = names[name.index()];
      if (!known) known = NameWithoutNumbers(trace.text(name));
      type.name = *known;
    }
    const auto number = static_cast<uint32_t>(numbers.size());
    found.of.push_back(numbers.emplace(std::move(type), number).first->second);
  });
  std::vector<uint32_t> sorted(numbers.size());
  for (const auto& [type, number] : numbers) {
    sorted[number] = static_cast<uint32_t>(found.types.size());
    found.types.push_back(type);
  }
  for (uint32_t& type : found.of) type = sorted[type];
  return found;
}

OperationGraph GraphOf(const Trace& trace, const OperationTypes& types,
                       std::span<const NodeId> nodes) {
  const auto source_of = [&](NodeId node) {
    const auto at = std::ranges::lower_bound(nodes, node);
    return at == nodes.end() || *at != node ? OperationEdge::kOutside
                                            : static_cast<uint32_t>(at - nodes.begin());
  };
  OperationGraph graph;
  std::vector<std::pair<size_t, OperationEdge>> edges;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const NodeId node = nodes[i];
    graph.types.push_back(types.of[node.index()]);
    if (const NodeId caller = trace.parent(node)) {
      edges.push_back({i, {.source = source_of(caller), .kind = EdgeKind::kCaller}});
    }
    const auto deps = trace.deps(node);
    for (size_t k = 0; k < deps.size(); ++k) {
      edges.push_back(
          {i, {.source = source_of(deps[k]), .kind = KindOf(trace.dep_kinds(node)[k])}});
    }
  }
  graph.edges = Csr<OperationEdge>::Build(
      nodes.size(), edges, [](const auto& edge) { return edge.first; },
      [](const auto& edge) { return edge.second; });
  return graph;
}

std::vector<NodeId> Stretch(size_t first, size_t count) {
  std::vector<NodeId> nodes;
  nodes.reserve(count);
  for (size_t i = 0; i < count; ++i) nodes.push_back(NodeId::FromIndex(first + i));
  return nodes;
}

std::optional<std::vector<uint32_t>> FindLayers(const OperationGraph& graph) {
  const size_t count = graph.types.size();
  std::vector<std::pair<uint32_t, uint32_t>> inside;  // source, operation
  std::vector<uint32_t> waits(count);
  for (uint32_t i = 0; i < count; ++i) {
    for (const OperationEdge& edge : graph.edges[i]) {
      if (edge.source == OperationEdge::kOutside) continue;
      inside.emplace_back(edge.source, i);
      ++waits[i];
    }
  }
  const auto after = Csr<uint32_t>::Build(
      count, inside, [](const auto& edge) { return edge.first; },
      [](const auto& edge) { return edge.second; });
  std::vector<uint32_t> layers(count);
  std::vector<uint32_t> ready;
  for (uint32_t i = 0; i < count; ++i) {
    if (waits[i] == 0) ready.push_back(i);
  }
  for (size_t at = 0; at < ready.size(); ++at) {
    for (const uint32_t next : after[ready[at]]) {
      layers[next] = std::max(layers[next], layers[ready[at]] + 1);
      if (--waits[next] == 0) ready.push_back(next);
    }
  }
  if (ready.size() != count) return std::nullopt;
  return layers;
}

std::optional<LayerShape> FindShape(const OperationGraph& graph) {
  const auto layers = FindLayers(graph);
  if (!layers) return std::nullopt;
  std::vector<uint64_t> widths;
  for (const uint32_t layer : *layers) {
    if (layer >= widths.size()) widths.resize(layer + 1);
    ++widths[layer];
  }
  return LayerShape{.layers = widths.size(),
                    .width = widths.empty() ? 0 : std::ranges::max(widths)};
}

}  // namespace etude
