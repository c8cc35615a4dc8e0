#include "src/trace/job/layered_operations.h"

#include <algorithm>
#include <compare>
#include <deque>
#include <functional>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

#include "src/base/container/hash.h"

namespace etude {
namespace {

// An edge, seen from one of its ends.
struct Neighbour {
  uint32_t operation = 0;
  uint8_t label = 0;  // kind and direction
};

uint8_t LabelOf(EdgeKind kind, bool outwards) {
  return static_cast<uint8_t>(2 * static_cast<uint8_t>(kind) + (outwards ? 1 : 0));
}

// Returns an even weight. Sums of weights distinguish multisets of labels.
uint64_t WeightOf(uint8_t label) { return HashMix(HashMix(0, uint64_t{label} + 1), label) << 1; }

// Ranks operations by the graph alone, independent of their program order. Operations are kept in
// ordered cells, at first by layer, type and outside edges. Cells are split by the number of edges
// of each kind to or from another cell, until no split separates any (colour refinement). Then one
// operation of the first cell with several becomes a cell of its own, and refinement continues. Any
// operation of that cell may be taken, because except in rare graphs they are interchangeable. An
// operation's edges are visited once for each time that its cell is the smaller part of a split:
// O(edges · log operations).
class Ranking {
 public:
  Ranking(const OperationGraph& graph, const std::vector<uint32_t>& layers)
      : at_(layers.size()),
        place_(layers.size()),
        cell_(layers.size()),
        end_(layers.size()),
        queued_(layers.size()),
        keys_(layers.size()) {
    struct Seen {
      uint32_t by = 0;
      Neighbour neighbour;
    };
    std::vector<Seen> seen;
    std::vector<uint64_t> outside(layers.size());
    for (uint32_t i = 0; i < layers.size(); ++i) {
      for (const OperationEdge& edge : graph.edges[i]) {
        if (edge.source == OperationEdge::kOutside) {
          outside[i] += WeightOf(LabelOf(edge.kind, false));
          continue;
        }
        seen.push_back({i, {edge.source, LabelOf(edge.kind, false)}});
        seen.push_back({edge.source, {i, LabelOf(edge.kind, true)}});
      }
    }
    neighbours_ = Csr<Neighbour>::Build(
        layers.size(), seen, [](const Seen& one) { return one.by; },
        [](const Seen& one) { return one.neighbour; });
    const auto key = [&](uint32_t i) { return std::tuple(layers[i], graph.types[i], outside[i]); };
    std::iota(at_.begin(), at_.end(), uint32_t{0});
    std::ranges::stable_sort(at_, {}, key);
    uint32_t begin = 0;
    for (uint32_t i = 0; i < at_.size(); ++i) {
      if (key(at_[i]) != key(at_[begin])) begin = i;
      place_[at_[i]] = i;
      cell_[at_[i]] = begin;
      end_[begin] = i + 1;
      if (i == begin) Enqueue(begin);
    }
  }

  // Returns the rank of each operation, from 0.
  std::vector<uint32_t> Run() {
    Refine();
    for (uint32_t begin = 0; begin < at_.size(); begin = end_[begin]) {
      while (SizeOf(begin) > 1) {
        const uint32_t last = --end_[begin];
        end_[last] = last + 1;
        cell_[at_[last]] = last;
        Enqueue(last);
        Refine();
      }
    }
    return std::move(place_);
  }

 private:
  uint32_t SizeOf(uint32_t begin) const { return end_[begin] - begin; }

  void Enqueue(uint32_t begin) {
    queued_[begin] = true;
    queue_.push_back(begin);
  }

  void Refine() {
    while (!queue_.empty()) {
      const uint32_t splitter = queue_.front();
      queue_.pop_front();
      queued_[splitter] = false;
      std::vector<uint32_t> touched;
      for (uint32_t i = splitter; i < end_[splitter]; ++i) {
        for (const Neighbour& neighbour : neighbours_[at_[i]]) {
          if (SizeOf(cell_[neighbour.operation]) == 1) continue;
          uint64_t& key = keys_[neighbour.operation];
          if (key == 0) {
            touched.push_back(neighbour.operation);
            key = 1;  // odd from here on
          }
          key += WeightOf(neighbour.label);
        }
      }
      std::ranges::sort(touched, {}, [&](uint32_t i) { return std::pair(cell_[i], keys_[i]); });
      for (size_t begin = 0; begin < touched.size();) {
        size_t end = begin + 1;
        while (end < touched.size() && cell_[touched[end]] == cell_[touched[begin]]) ++end;
        Split(std::span(touched).subspan(begin, end - begin));
        begin = end;
      }
      for (const uint32_t i : touched) keys_[i] = 0;
    }
  }

  // Splits the cell of `touched`, some or all of its operations, by key. The other operations stay
  // in front, followed by one cell per key.
  void Split(std::span<const uint32_t> touched) {
    const uint32_t begin = cell_[touched.front()];
    const uint32_t end = end_[begin];
    const auto moved = static_cast<uint32_t>(touched.size());
    for (uint32_t i = 0; i < moved; ++i) Swap(touched[moved - 1 - i], end - 1 - i);
    std::vector<uint32_t> begins = {begin};
    for (uint32_t i = end - moved; i < end; ++i) {
      const bool begins_here = i == end - moved ? i != begin : keys_[at_[i]] != keys_[at_[i - 1]];
      if (begins_here) begins.push_back(i);
      if (begins.back() != begin) cell_[at_[i]] = begins.back();
    }
    size_t largest = 0;
    for (size_t i = 0; i < begins.size(); ++i) {
      end_[begins[i]] = i + 1 < begins.size() ? begins[i + 1] : end;
      if (SizeOf(begins[i]) > SizeOf(begins[largest])) largest = i;
    }
    // Counts for the whole cell and for all parts but one give those of the last part.
    const bool whole_is_to_come = queued_[begin];
    for (size_t i = 0; i < begins.size(); ++i) {
      if (!queued_[begins[i]] && (whole_is_to_come || i != largest)) Enqueue(begins[i]);
    }
  }

  void Swap(uint32_t operation, uint32_t place) {
    const uint32_t other = at_[place];
    std::swap(at_[place_[operation]], at_[place]);
    place_[other] = place_[operation];
    place_[operation] = place;
  }

  Csr<Neighbour> neighbours_;
  std::vector<uint32_t> at_;     // operations, cell by cell
  std::vector<uint32_t> place_;  // by operation: position in at_
  std::vector<uint32_t> cell_;   // by operation: first position of its cell
  std::vector<uint32_t> end_;    // by first position of a cell: its end
  std::deque<uint32_t> queue_;   // cells that others must still be split by
  std::vector<bool> queued_;     // by first position of a cell
  std::vector<uint64_t> keys_;   // by operation; 0: no edge to the splitter
};

// An edge of an operation at a position, with its index among the operation's edges.
struct PlacedEdge {
  OperationEdge edge;
  uint32_t number = 0;

  // kOutside is the lowest key.
  std::pair<uint32_t, EdgeKind> key() const { return {edge.source + 1, edge.kind}; }
};

std::vector<PlacedEdge> PlaceEdges(std::span<const OperationEdge> edges,
                                   const std::vector<uint32_t>& position) {
  std::vector<PlacedEdge> placed;
  for (const OperationEdge& edge : edges) {
    placed.push_back({.edge = edge, .number = static_cast<uint32_t>(placed.size())});
    if (edge.source != OperationEdge::kOutside) {
      placed.back().edge.source = position[edge.source];
    }
  }
  std::ranges::stable_sort(placed, std::greater<>(), &PlacedEdge::key);
  return placed;
}

}  // namespace

LayerShape LayeredForm::shape() const {
  LayerShape shape{.layers = layer_count()};
  for (size_t i = 0; i < layer_count(); ++i) {
    shape.width = std::max<uint64_t>(shape.width, begins[i + 1] - begins[i]);
  }
  return shape;
}

std::optional<LayeredOperations> LayerOperations(const OperationGraph& graph) {
  const auto layers = FindLayers(graph);
  if (!layers) return std::nullopt;
  const std::vector<uint32_t> ranks = Ranking(graph, *layers).Run();
  struct Operation {
    uint32_t number = 0;
    std::vector<PlacedEdge> edges;
  };
  const auto comes_before = [&](const Operation& a, const Operation& b) {
    const auto order = std::lexicographical_compare_three_way(
        a.edges.begin(), a.edges.end(), b.edges.begin(), b.edges.end(),
        [](const PlacedEdge& x, const PlacedEdge& y) { return x.key() <=> y.key(); });
    if (order != 0) return order < 0;
    return std::pair(graph.types[a.number], ranks[a.number]) <
           std::pair(graph.types[b.number], ranks[b.number]);
  };
  LayeredOperations layered;
  LayeredForm& form = layered.form;
  // Ranks ascend with layers.
  layered.order.resize(ranks.size());
  for (uint32_t i = 0; i < ranks.size(); ++i) layered.order[ranks[i]] = i;
  std::vector<uint32_t> position(ranks.size());
  std::vector<std::pair<uint32_t, OperationEdge>> edges;
  std::vector<Operation> layer;
  for (uint32_t begin = 0; begin < ranks.size(); begin = form.begins.back()) {
    layer.clear();
    for (uint32_t i = begin; i < ranks.size(); ++i) {
      const uint32_t operation = layered.order[i];
      if ((*layers)[operation] != form.layer_count()) break;
      layer.push_back({operation, PlaceEdges(graph.edges[operation], position)});
    }
    std::ranges::sort(layer, comes_before);
    for (const Operation& operation : layer) {
      const auto at = static_cast<uint32_t>(form.types.size());
      position[operation.number] = at;
      layered.order[at] = operation.number;
      form.types.push_back(graph.types[operation.number]);
      for (const PlacedEdge& placed : operation.edges) {
        edges.emplace_back(at, placed.edge);
        layered.edge_order.push_back(placed.number);
      }
    }
    form.begins.push_back(static_cast<uint32_t>(form.types.size()));
  }
  form.edges = Csr<OperationEdge>::Build(
      ranks.size(), edges, [](const auto& edge) { return edge.first; },
      [](const auto& edge) { return edge.second; });
  return layered;
}

OperationGraph InProgramOrder(const LayeredOperations& layered) {
  const LayeredForm& form = layered.form;
  OperationGraph graph;
  graph.types.resize(layered.order.size());
  struct Listed {
    uint32_t operation = 0;
    uint32_t number = 0;
    OperationEdge edge;
  };
  std::vector<Listed> listed;
  for (uint32_t at = 0; at < layered.order.size(); ++at) {
    graph.types[layered.order[at]] = form.types[at];
    for (OperationEdge edge : form.edges[at]) {
      if (edge.source != OperationEdge::kOutside) edge.source = layered.order[edge.source];
      listed.push_back({layered.order[at], layered.edge_order[listed.size()], edge});
    }
  }
  std::ranges::sort(listed, {}, &Listed::number);
  graph.edges = Csr<OperationEdge>::Build(
      graph.types.size(), listed, [](const Listed& one) { return one.operation; },
      [](const Listed& one) { return one.edge; });
  return graph;
}

}  // namespace etude
