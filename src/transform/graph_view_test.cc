#include "src/transform/graph_view.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "src/trace/trace_builder.h"

namespace etude {
namespace {

struct PlantedNode {
  uint64_t id;
  std::string name;
  std::optional<uint64_t> parent;
  std::vector<uint64_t> deps;
};

Trace MakeGraphTrace(const std::vector<PlantedNode>& nodes) {
  TraceBuilder builder;
  for (const PlantedNode& planted : nodes) {
    NodeRow row{.source_id = planted.id, .kind = NodeKind::kOperator, .place = Place::kHost};
    row.name = builder.Intern(planted.name);
    row.parent = planted.parent;
    const NodeId node = builder.AddNode(row);
    for (const uint64_t dep : planted.deps) builder.AddDep(node, dep, DepKind::kData);
  }
  return builder.Finish().value();
}

// A thread with two layers of two operators each; the second layer reads results of the first.
Trace Layers() {
  return MakeGraphTrace({{.id = 0, .name = "thread"},
                         {.id = 1, .name = "layer0", .parent = 0},
                         {.id = 2, .name = "mm", .parent = 1},
                         {.id = 3, .name = "relu", .parent = 1, .deps = {2}},
                         {.id = 4, .name = "layer1", .parent = 0},
                         {.id = 5, .name = "mm", .parent = 4, .deps = {3}},
                         {.id = 6, .name = "relu", .parent = 4, .deps = {5, 99}}});
}

using Edges = std::map<std::tuple<std::string, std::string, std::string>, uint64_t>;

Edges EdgesOf(const DrawnGraph& graph) {
  Edges edges;
  for (const auto& edge : graph.edges) {
    edges[{graph.boxes[edge.from].label, graph.boxes[edge.to].label,
           std::string(Name(edge.kind))}] += edge.count;
  }
  return edges;
}

std::map<std::string, uint64_t> BoxesOf(const DrawnGraph& graph) {
  std::map<std::string, uint64_t> boxes;
  for (const auto& box : graph.boxes) boxes[box.label] += box.nodes;
  return boxes;
}

TEST(ViewGraph, SmallGraphsAreDrawnAsTheyAre) {
  const GraphView view = ViewGraph(Layers(), 7);
  EXPECT_EQ(view.collapse, Collapse::kNone);
  EXPECT_EQ(view.graph.boxes.size(), 7u);
  EXPECT_EQ(view.graph.edges.size(), 9u);
  EXPECT_EQ(view.graph.boxes[3].id, 3u);
  EXPECT_EQ(view.dangling, 1u);
}

TEST(ViewGraph, NestingCollapsesFirst) {
  const GraphView view = ViewGraph(Layers(), 6);
  EXPECT_EQ(view.collapse, Collapse::kDepth);
  EXPECT_EQ(view.depth, 1u);
  EXPECT_EQ(BoxesOf(view.graph),
            (std::map<std::string, uint64_t>{{"thread", 1}, {"layer0", 3}, {"layer1", 3}}));
  EXPECT_EQ(EdgesOf(view.graph), (Edges{{{"thread", "layer0", "call"}, 1},
                                        {{"thread", "layer1", "call"}, 1},
                                        {{"layer0", "layer1", "data"}, 1}}));
  EXPECT_EQ(view.inside, 6u);
}

TEST(ViewGraph, ThenNamesBelowOneBoxThenNamesThenKinds) {
  std::vector<PlantedNode> nodes = {{.id = 0, .name = "thread"}};
  for (uint64_t i = 0; i < 10; ++i) {
    nodes.push_back({.id = 1 + 2 * i, .name = i % 2 == 0 ? "even" : "odd", .parent = 0});
    nodes.push_back({.id = 2 + 2 * i, .name = "op" + std::to_string(i), .parent = 1 + 2 * i});
  }
  const Trace trace = MakeGraphTrace(nodes);
  const GraphView path = ViewGraph(trace, 4);
  EXPECT_EQ(path.collapse, Collapse::kPath);
  EXPECT_EQ(path.depth, 1u);
  EXPECT_EQ(BoxesOf(path.graph),
            (std::map<std::string, uint64_t>{{"thread", 1}, {"even", 10}, {"odd", 10}}));

  std::vector<PlantedNode> flat;
  for (uint64_t i = 0; i < 40; ++i) {
    flat.push_back({.id = i, .name = "layer" + std::to_string(i) + ".mm" + std::to_string(i % 3)});
  }
  const GraphView name = ViewGraph(MakeGraphTrace(flat), 5);
  EXPECT_EQ(name.collapse, Collapse::kName);
  EXPECT_EQ(BoxesOf(name.graph), (std::map<std::string, uint64_t>{{"layer#.mm#", 40}}));

  for (uint64_t i = 0; i < 40; ++i) flat[i].name = std::string(1, static_cast<char>('A' + i));
  const GraphView kind = ViewGraph(MakeGraphTrace(flat), 5);
  EXPECT_EQ(kind.collapse, Collapse::kKind);
  EXPECT_EQ(BoxesOf(kind.graph), (std::map<std::string, uint64_t>{{"operator, host", 40}}));
}

TEST(ViewGraph, LaunchersThatCallEachOtherEndTheirNesting) {
  // A host node below the device work that its own call launched.
  TraceBuilder builder;
  NodeRow row{.source_id = 0, .kind = NodeKind::kKernel, .place = Place::kDevice};
  row.correlation = 1;
  builder.AddNode(row);
  row = {.source_id = 1, .kind = NodeKind::kRuntime, .place = Place::kHost, .parent = 0};
  row.correlation = 1;
  builder.AddNode(row);
  row = {.source_id = 2, .kind = NodeKind::kKernel, .place = Place::kDevice};
  row.correlation = 1;
  builder.AddNode(row);
  const GraphView view = ViewGraph(builder.Finish().value(), 1);
  EXPECT_GE(view.graph.boxes.size(), 1u);
  uint64_t nodes = 0;
  for (const auto& box : view.graph.boxes) nodes += box.nodes;
  EXPECT_EQ(nodes, 3u);
}

std::string Written(Status (*write)(const DrawnGraph&, const ByteSink&), const DrawnGraph& graph) {
  std::string text;
  EXPECT_TRUE(write(graph, [&](std::string_view bytes) {
    text += bytes;
    return Status();
  }));
  return text;
}

TEST(GraphWriter, HostileNamesStayText) {
  DrawnGraph graph;
  graph.title = "a\"; evil";
  graph.boxes.push_back({.label = "x\"]; evil [\\n<b>&\x01\n"});
  graph.boxes.push_back({.label = std::string(59, 'y') + "éz"});
  graph.edges.push_back({.from = 0, .to = 1, .kind = DrawnGraph::EdgeKind::kSync, .count = 3});
  const std::string dot = Written(WriteDot, graph);
  EXPECT_NE(dot.find("digraph \"a\\\"; evil\""), std::string::npos);
  EXPECT_NE(dot.find("label=\"x\\\"]; evil [\\\\n<b>&amp;  \""), std::string::npos) << dot;
  EXPECT_NE(dot.find(std::string(59, 'y') + "…"), std::string::npos) << "cut between characters";
  EXPECT_NE(dot.find("n0 -> n1 [color=\"#b03030\", style=dashed, label=\"3\""), std::string::npos);
  const std::string xml = Written(WriteGraphml, graph);
  EXPECT_NE(xml.find("x&quot;]; evil [\\n&lt;b&gt;&amp;\xEF\xBF\xBD&#10;"), std::string::npos)
      << xml;
}

}  // namespace
}  // namespace etude
