#include "src/formats/chakra/chakra_feeder.h"
#include "src/formats/test_support.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "et_def.pb.h"

namespace etude::chakra {
namespace {

using testing_support::Framed;
using testing_support::Gzip;

namespace pb = ChakraProtoMsg;
using Ids = std::vector<uint64_t>;

constexpr size_t kNoBound = SIZE_MAX;

pb::Node Node(uint64_t id, const Ids& data_deps, const Ids& ctrl_deps = {}) {
  pb::Node node;
  node.set_id(id);
  node.set_name("n" + std::to_string(id));
  node.set_type(pb::COMP_NODE);
  for (const uint64_t dep : data_deps) node.add_data_deps(dep);
  for (const uint64_t dep : ctrl_deps) node.add_ctrl_deps(dep);
  return node;
}

std::string File(const std::vector<pb::Node>& nodes) {
  pb::GlobalMetadata metadata;
  metadata.set_version("0.0.4");
  std::string out = Framed(metadata.SerializeAsString());
  for (const pb::Node& node : nodes) out += Framed(node.SerializeAsString());
  return out;
}

// Collects warnings in `warnings` if given.
RunContext Context(std::string* warnings = nullptr) {
  RunContext context;
  if (warnings != nullptr) {
    context.warn = [warnings](std::string_view text) { *warnings += std::string(text) + "\n"; };
  }
  return context;
}

Result<Feeder> Feed(const std::string& bytes, const FeederOptions& options = {},
                    const RunContext& context = {}) {
  return Feeder::FromMemory("test.et", bytes, options, context);
}

// Order of the nodes if each finishes at once, followed by the error's text.
struct Fed {
  Ids order;
  std::string error;
  bool done = false;
};

Fed FeedAtOnce(Result<Feeder> feeder) {
  if (!feeder) return {.error = feeder.error().message};
  Fed run;
  while (true) {
    const auto node = feeder->Next();
    if (!node) run.error = node.error().message;
    if (!node || !*node) break;
    run.order.push_back((*node)->id());
    const Status status = feeder->Finish((*node)->id());
    if (!status) run.error = status.error().message;
    if (!status) break;
  }
  run.done = feeder->done();
  return run;
}

std::string TempPath(const std::string& name) {
  return (std::filesystem::path(testing::TempDir()) / ("etude_feeder_" + name)).string();
}

TEST(Feeder, HandsOutTheFirstFreeNodeOfTheFile) {
  const auto run = FeedAtOnce(
      Feed(File({Node(30, {20}), Node(10, {}), Node(20, {5}), Node(7, {}), Node(5, {})})));
  EXPECT_EQ(run.order, Ids({10, 7, 5, 20, 30}));
  EXPECT_TRUE(run.done);
  EXPECT_EQ(run.error, "");
}

TEST(Feeder, MetadataMayBeMissingOrElsewhere) {
  const std::string metadata = File({});
  std::string nodes = File({Node(2, {1}), Node(1, {99})}).substr(metadata.size());
  struct Row {
    std::string bytes;
    std::string_view said;
    size_t metadata;  // in bytes
  };
  const Row rows[] = {
      {metadata + nodes, "", metadata.size() - 1},
      {nodes, "byte 0: found a Node, expected GlobalMetadata", 0},
      {nodes + metadata, "found GlobalMetadata, expected it once", metadata.size() - 1},
      {metadata + metadata + nodes, "found GlobalMetadata, expected it once", metadata.size() - 1},
  };
  for (const Row& row : rows) {
    std::string warnings;
    const RunContext context = Context(&warnings);
    auto feeder = Feed(row.bytes, {}, context);
    ASSERT_TRUE(feeder.has_value()) << row.said;
    Ids order;
    while (const auto node = feeder->Next().value()) {
      order.push_back(node->id());
      EXPECT_TRUE(feeder->Finish(node->id()).has_value());
    }
    EXPECT_EQ(order, Ids({1, 2})) << row.said;
    EXPECT_TRUE(feeder->done());
    EXPECT_NE(warnings.find(row.said), std::string::npos) << warnings;
    EXPECT_EQ(feeder->metadata().size(), row.metadata) << row.said;
  }
}

TEST(Feeder, SaysWhenAllWaitForNodesInFlight) {
  auto feeder = Feed(File({Node(1, {}), Node(2, {1}), Node(3, {1}, {2})})).value();
  EXPECT_EQ(feeder.Next().value()->id(), 1u);
  EXPECT_FALSE(feeder.Next().value().has_value());
  EXPECT_FALSE(feeder.done());
  const FeederCounts counts = feeder.counts();
  EXPECT_EQ(counts.waiting, 2u);
  EXPECT_EQ(counts.in_flight, 1u);
  EXPECT_TRUE(feeder.Finish(1).has_value());
  EXPECT_EQ(feeder.Next().value()->id(), 2u);
  EXPECT_FALSE(feeder.Next().value().has_value());  // 3 also waits for the control dependency
  EXPECT_TRUE(feeder.Finish(2).has_value());
  EXPECT_EQ(feeder.Next().value()->id(), 3u);
  EXPECT_FALSE(feeder.done());
  EXPECT_TRUE(feeder.Finish(3).has_value());
  EXPECT_TRUE(feeder.done());  // at once, without another Next
  EXPECT_EQ(feeder.counts().finished, 3u);
}

TEST(Feeder, DependenciesOfOneKindCanBeLeftOut) {
  const std::string file = File({Node(1, {2}), Node(2, {}, {3}), Node(3, {})});
  EXPECT_EQ(FeedAtOnce(Feed(file)).order, Ids({3, 2, 1}));
  FeederOptions options;
  options.dependencies = {.ctrl = false};
  EXPECT_EQ(FeedAtOnce(Feed(file, options)).order, Ids({2, 1, 3}));
  options.dependencies = {.data = false};
  EXPECT_EQ(FeedAtOnce(Feed(file, options)).order, Ids({1, 3, 2}));
}

TEST(Feeder, WindowDecidesHowFarItLooksWhileNodesAreInFlight) {
  const std::string file = File({Node(1, {}), Node(2, {1}), Node(3, {1}), Node(4, {})});
  FeederOptions options;
  options.window = 2;
  auto narrow = Feed(file, options).value();
  EXPECT_EQ(narrow.Next().value()->id(), 1u);
  EXPECT_FALSE(narrow.Next().value().has_value());
  options.window = 3;
  auto wide = Feed(file, options).value();
  EXPECT_EQ(wide.Next().value()->id(), 1u);
  EXPECT_EQ(wide.Next().value()->id(), 4u);
}

TEST(Feeder, FindsDependenciesBeyondTheWindow) {
  std::vector<pb::Node> nodes{Node(0, {9'999})};
  for (uint64_t id = 1; id < 9'999; ++id) nodes.push_back(Node(id, {id - 1}));
  nodes.push_back(Node(9'999, {}));
  FeederOptions options;
  options.window = 4;
  const Fed run = FeedAtOnce(Feed(File(nodes), options));
  ASSERT_EQ(run.order.size(), 10'000u);
  EXPECT_EQ(run.order[0], 9'999u);
  EXPECT_EQ(run.order[1], 0u);
  EXPECT_EQ(run.order.back(), 9'998u);
  EXPECT_TRUE(run.done);
}

TEST(Feeder, EdgesToFinishedNodesAreMet) {
  std::vector<pb::Node> nodes;
  for (uint64_t id = 0; id < 5'000; ++id) nodes.push_back(Node(id, {}));
  for (uint64_t id = 5'000; id < 5'100; ++id) nodes.push_back(Node(id, {1, 1}, {2}));
  FeederOptions options;
  options.window = 8;
  const Fed run = FeedAtOnce(Feed(File(nodes), options));
  EXPECT_EQ(run.order.size(), 5'100u);
  EXPECT_TRUE(std::ranges::is_sorted(run.order));
  EXPECT_TRUE(run.done);
}

TEST(Feeder, MissingDependenciesHoldNobodyUpAndAreSaid) {
  const std::string file = File({Node(1, {77}), Node(2, {1, 88}, {77})});
  for (const std::string& bytes : {file, Gzip(file)}) {
    std::string warnings;
    auto feeder = Feed(bytes, {}, Context(&warnings)).value();
    EXPECT_EQ(feeder.Next().value()->id(), 1u);
    EXPECT_TRUE(feeder.Finish(1).has_value());
    EXPECT_EQ(feeder.Next().value()->id(), 2u);
    EXPECT_TRUE(feeder.Finish(2).has_value());
    EXPECT_TRUE(feeder.done());
    EXPECT_EQ(feeder.counts().missing, 3u);
    EXPECT_EQ(warnings,
              "test.et: node 1 depends on node 77, which is not in the file; 3 such dependencies "
              "are ignored\n");
  }
  FeederOptions strict;
  strict.strict = true;
  EXPECT_EQ(FeedAtOnce(Feed(file, strict)).error,
            "test.et: node 1 depends on node 77, which is not in the file");
}

// Missing nodes of an input that cannot be read twice are found only at its end.
TEST(Feeder, PipesAreReadOnce) {
  const std::string path = TempPath("pipe");
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const std::string file = File({Node(1, {77}), Node(2, {1}), Node(3, {})});
  std::thread writer([&] { std::ofstream(path, std::ios::binary) << file; });
  const Fed run = FeedAtOnce(Feeder::Open(path, {}, {}));
  writer.join();
  EXPECT_EQ(run.order, Ids({3, 1, 2}));
  EXPECT_TRUE(run.done);
  std::filesystem::remove(path);
}

TEST(Feeder, CyclesAreErrorsThatNameTheirNodes) {
  const Fed run =
      FeedAtOnce(Feed(File({Node(4, {1}), Node(1, {2}), Node(2, {3}), Node(3, {1}), Node(9, {})})));
  EXPECT_EQ(run.order, Ids({9}));
  EXPECT_EQ(run.error,
            "test.et: 4 nodes can never run: found a cycle of 3 dependencies (1 → 2 → 3 → 1)");
  EXPECT_FALSE(run.done);
  EXPECT_EQ(FeedAtOnce(Feed(File({Node(5, {5})}))).error,
            "test.et: 1 nodes can never run: found a cycle of 1 dependencies (5 → 5)");
}

TEST(Feeder, DamageIsAnErrorWithItsPlaceAfterTheNodesBeforeIt) {
  const std::string good = File({Node(1, {}), Node(2, {1})});
  const size_t last = Node(2, {1}).ByteSizeLong();
  const Fed cut = FeedAtOnce(Feed(good.substr(0, good.size() - 3)));
  EXPECT_EQ(cut.order, Ids({1}));
  EXPECT_EQ(cut.error, "test.et:byte " + std::to_string(good.size() - last - 1) +
                           " (node message 2): found the end of the file, expected " +
                           std::to_string(last + 1) + " bytes");
  const Fed malformed = FeedAtOnce(Feed(good + Framed("\xff\xff")));
  EXPECT_EQ(malformed.order, Ids({1, 2}));
  EXPECT_EQ(malformed.error, "test.et:byte " + std::to_string(good.size()) +
                                 " (node message 3): found a malformed message (end of buffer "
                                 "exception), expected a node");
  // The bytes inside attributes are checked too.
  EXPECT_NE(FeedAtOnce(Feed(good + Framed(std::string("\x52\x02\x0a\x09", 4)))).error, "");
  EXPECT_NE(FeedAtOnce(Feed(good + std::string(9, '\xff'))).error, "");
  const Fed again = FeedAtOnce(Feed(good + Framed(Node(1, {}).SerializeAsString())));
  EXPECT_EQ(again.order, Ids({1, 2}));
  EXPECT_EQ(again.error, "test.et:byte " + std::to_string(good.size()) +
                             " (node message 3): found node 1 again, expected each id once");
  const std::string gzip = Gzip(good);
  EXPECT_NE(FeedAtOnce(Feed(gzip.substr(0, gzip.size() - 6))).error, "");
  EXPECT_EQ(FeedAtOnce(Feed("")).error,
            "test.et:byte 0 (GlobalMetadata): found the end of the file, expected a Chakra trace");
  EXPECT_NE(FeedAtOnce(Feed("no trace")).error, "");
  EXPECT_NE(FeedAtOnce(Feeder::Open(TempPath("absent"), {}, {})).error, "");
}

TEST(Feeder, KeepsReturningItsError) {
  auto feeder = Feed(File({Node(1, {}), Node(2, {})}) + Framed("\xff")).value();
  EXPECT_EQ(feeder.Next().value()->id(), 1u);
  EXPECT_EQ(feeder.Next().value()->id(), 2u);
  EXPECT_FALSE(feeder.Next().has_value());
  EXPECT_FALSE(feeder.Next().has_value());
  EXPECT_FALSE(feeder.Finish(1).has_value());
  EXPECT_FALSE(feeder.done());
}

TEST(Feeder, EmptyTracesAndEmptyMessages) {
  const Fed none = FeedAtOnce(Feed(File({})));
  EXPECT_TRUE(none.done);
  EXPECT_EQ(none.error, "");
  // An empty message is a node with id 0.
  EXPECT_EQ(FeedAtOnce(Feed(File({Node(3, {0})}) + Framed(""))).order, Ids({0, 3}));
}

TEST(Feeder, LimitsBoundWhatIsHeld) {
  RunContext context;
  context.limits.nodes = 2;
  const std::string three = File({Node(1, {2}), Node(2, {3}), Node(3, {})});
  EXPECT_NE(FeedAtOnce(Feed(three, {}, context)).error.find("(limit 'nodes')"), std::string::npos);
  context.limits.nodes = 3;
  EXPECT_EQ(FeedAtOnce(Feed(three, {}, context)).order, Ids({3, 2, 1}));
  context.limits.edges = 1;
  EXPECT_NE(FeedAtOnce(Feed(three, {}, context)).error.find("(limit 'edges')"), std::string::npos);
  context.limits.element_bytes = 3;
  EXPECT_NE(FeedAtOnce(Feed(three, {}, context)).error.find("(limit 'element_bytes')"),
            std::string::npos);
}

TEST(Feeder, OnlyNodesInFlightCanFinish) {
  auto feeder =
      Feed(File({Node(1, {}), Node(2, {1}), Node(3, {}), Node(4, {9}), Node(9, {})})).value();
  const auto fails = [&](uint64_t id) {
    const Status status = feeder.Finish(id);
    return status ? "" : status.error().message;
  };
  EXPECT_EQ(fails(1), "test.et: node 1 was not issued, so it cannot finish");
  EXPECT_EQ(fails(5), "test.et: node 5 has not been read, so it cannot finish");
  EXPECT_EQ(feeder.Next().value()->id(), 1u);
  EXPECT_EQ(feeder.Next().value()->id(), 3u);
  EXPECT_EQ(feeder.Next().value()->id(), 9u);
  EXPECT_EQ(fails(2), "test.et: node 2 waits for other nodes, so it cannot finish");
  EXPECT_EQ(fails(1), "");
  EXPECT_EQ(fails(1), "test.et: node 1 has finished, so it cannot finish");
  EXPECT_EQ(feeder.counts().finished, 1u);
}

TEST(Feeder, LooksUpWhatIsHeld) {
  auto feeder = Feed(File({Node(1, {}), Node(2, {1}), Node(3, {2}, {1}), Node(8, {1, 1})})).value();
  EXPECT_EQ(feeder.Lookup(1).value().name(), "n1");
  EXPECT_FALSE(feeder.Lookup(2).has_value());  // not read: 1 is ready before it
  EXPECT_EQ(feeder.Next().value()->id(), 1u);
  EXPECT_FALSE(feeder.Next().value().has_value());
  EXPECT_EQ(feeder.Lookup(3).value().name(), "n3");
  EXPECT_EQ(feeder.Dependents(1), Ids({2, 3, 8}));
  EXPECT_EQ(feeder.Dependents(3), Ids());
  EXPECT_TRUE(feeder.Finish(1).has_value());
  EXPECT_EQ(feeder.Lookup(1).error().message, "test.et: node 1 has finished");
  EXPECT_EQ(feeder.Lookup(4).error().code, ErrorCode::kUsage);
  EXPECT_EQ(feeder.Dependents(1), Ids());
}

TEST(Feeder, ShowsWhatGeneratedCodeShows) {
  pb::Node node = Node(1'000'000'000'000, {7}, {8, 9});
  node.set_type(pb::COMM_COLL_NODE);
  node.set_start_time_micros(5);
  node.set_duration_micros(0);
  node.mutable_inputs()->set_values("[1]");
  node.mutable_inputs()->set_types("['Int']");
  node.mutable_outputs()->set_shapes("[[2]]");
  auto* size = node.add_attr();
  size->set_name("comm_size");
  size->set_int64_val(-3);
  auto* flags = node.add_attr();
  flags->set_name("involved_dim");
  flags->mutable_bool_list()->add_values(true);
  auto* again = node.add_attr();
  again->set_name("comm_size");
  again->set_int64_val(4);
  auto feeder = Feed(File({node})).value();
  const NodeView view = feeder.Next().value().value();
  EXPECT_EQ(view.id(), 1'000'000'000'000u);
  EXPECT_EQ(view.message(), node.SerializeAsString());
  EXPECT_EQ(view.name(), "n1000000000000");
  EXPECT_EQ(view.type(), 7u);
  EXPECT_EQ(view.start_micros(), 5u);
  EXPECT_EQ(view.duration_micros(), std::nullopt);
  EXPECT_EQ(view.data_deps(), Ids({7}));
  EXPECT_EQ(view.ctrl_deps(), Ids({8, 9}));
  EXPECT_EQ(view.inputs().values, "[1]");
  EXPECT_EQ(view.inputs().shapes, "");
  EXPECT_EQ(view.inputs().types, "['Int']");
  EXPECT_EQ(view.outputs().shapes, "[[2]]");
  EXPECT_EQ(view.FindAttr("comm_size").value().value.AsInt64(), -3);  // the first one
  EXPECT_FALSE(view.FindAttr("comm_type").has_value());
  ASSERT_EQ(view.attrs().size(), 3u);
  pb::AttributeProto attr;
  ASSERT_TRUE(attr.ParseFromString(std::string(view.FindAttr("involved_dim").value().message)));
  EXPECT_TRUE(attr.bool_list().values(0));
  pb::GlobalMetadata metadata;
  ASSERT_TRUE(metadata.ParseFromString(feeder.metadata()));
  EXPECT_EQ(metadata.version(), "0.0.4");
}

TEST(Feeder, GivesTheBytesOfLargeMessages) {
  std::vector<pb::Node> nodes;
  for (uint64_t id = 0; id < 60; ++id) {
    nodes.push_back(Node(id, {id + 1}));
    nodes.back().set_name(std::string(id * id * 15, static_cast<char>('a' + id % 26)));
  }
  nodes.push_back(Node(60, {}));
  const std::string file = File(nodes);
  for (const std::string& bytes : {file, Gzip(file)}) {
    auto feeder = Feed(bytes).value();
    for (uint64_t id = 61; id-- > 0;) {
      const NodeView view = feeder.Next().value().value();
      ASSERT_EQ(view.id(), id);
      ASSERT_EQ(view.name(), nodes[id].name());
      ASSERT_TRUE(feeder.Finish(id).has_value());
    }
    EXPECT_TRUE(feeder.done());
  }
}

TEST(Feeder, AFileThatChangesIsAnError) {
  const std::string path = TempPath("changing.et");
  std::ofstream(path, std::ios::binary) << File({Node(1, {}), Node(2, {})});
  auto feeder = Feeder::Open(path, {}, {}).value();
  EXPECT_EQ(feeder.Next().value()->id(), 1u);
  const std::string other = File({Node(3, {}), Node(4, {})});
  std::ofstream(path, std::ios::binary | std::ios::trunc) << other;
  const auto reread = feeder.Lookup(1);  // still in the block that was read
  EXPECT_TRUE(reread.has_value());
  auto late = Feeder::Open(path, {}, {}).value();
  std::ofstream(path, std::ios::binary | std::ios::trunc) << std::string(other.size(), 'x');
  const auto node = late.Next();
  ASSERT_FALSE(node.has_value());
  EXPECT_EQ(node.error().code, ErrorCode::kIo);
  std::filesystem::remove(path);
}

// Figures per node, without the fixed buffers.
TEST(Feeder, TakesAtMost100BytesPerNodeInFlightOrWaiting) {
  constexpr uint64_t kNodes = 100'000;
  constexpr size_t kFixed = size_t{2} << 20;
  std::vector<pb::Node> flat;
  std::vector<pb::Node> chains;
  for (uint64_t id = 0; id < kNodes; ++id) {
    flat.push_back(Node(id, {}));
    chains.push_back(Node(id, id < 2 ? Ids() : Ids({id - 2})));
  }
  FeederOptions options;
  options.window = kNoBound;
  for (const auto& [nodes, in_flight] : {std::pair(flat, kNodes), std::pair(chains, uint64_t{2})}) {
    auto feeder = Feed(File(nodes), options).value();
    while (feeder.Next().value()) {
    }
    const FeederCounts counts = feeder.counts();
    EXPECT_EQ(counts.in_flight, in_flight);
    EXPECT_EQ(counts.in_flight + counts.waiting, kNodes);
    EXPECT_LE(feeder.memory_bytes(), kFixed + kNodes * 100);
  }
  options.window = 100;
  auto feeder = Feed(File(chains), options).value();
  for (uint64_t id = 0; id < kNodes; ++id) {
    ASSERT_EQ(feeder.Next().value()->id(), id);
    ASSERT_FALSE(id % 2 == 1 && feeder.Next().value());
    ASSERT_TRUE(id % 2 == 0 || (feeder.Finish(id - 1) && feeder.Finish(id)));
  }
  EXPECT_LE(feeder.counts().most_held, 110u);
  EXPECT_LE(feeder.memory_bytes(), kFixed);
}

// An acyclic graph with nodes in random order and some dependencies on missing nodes.
struct Graph {
  std::vector<pb::Node> nodes;
  std::map<uint64_t, Ids> deps;
};

Graph RandomGraph() {
  const auto count = *rc::gen::inRange<size_t>(0, 40);
  const bool sparse = *rc::gen::arbitrary<bool>();
  Ids ids;
  for (size_t i = 0; i < count; ++i) ids.push_back(sparse ? i * 0x9E3779B97F4A7C15 : i);
  Graph graph;
  for (size_t i = 0; i < count; ++i) {
    Ids by_kind[2];
    for (const size_t draw :
         *rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(0, 80))) {
      const uint64_t dep = draw % 41 == 0 ? 0xDEAD : i == 0 ? 0xDEAD : ids[draw % i];
      by_kind[draw / 40 % 2].push_back(dep);
      graph.deps[ids[i]].push_back(dep);
    }
    graph.nodes.push_back(Node(ids[i], by_kind[0], by_kind[1]));
  }
  const auto keys = *rc::gen::container<std::vector<int>>(count, rc::gen::inRange(0, 1000));
  std::vector<size_t> order(count);
  for (size_t i = 0; i < count; ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](size_t i) { return keys[i]; });
  std::vector<pb::Node> shuffled;
  for (const size_t i : order) shuffled.push_back(graph.nodes[i]);
  graph.nodes = shuffled;
  return graph;
}

bool IsFree(const Graph& graph, uint64_t id, const std::set<uint64_t>& finished) {
  const auto deps = graph.deps.find(id);
  if (deps == graph.deps.end()) return true;
  return std::ranges::all_of(deps->second, [&](uint64_t dep) {
    const bool in_file =
        std::ranges::any_of(graph.nodes, [&](const pb::Node& node) { return node.id() == dep; });
    return !in_file || finished.contains(dep);
  });
}

RC_GTEST_PROP(FeederProperty, OrderIsThatOfTheFirstFreeNodeWhateverTheWindow, ()) {
  const Graph graph = RandomGraph();
  Ids expected;
  std::set<uint64_t> finished;
  while (expected.size() < graph.nodes.size()) {
    const auto next = std::ranges::find_if(graph.nodes, [&](const pb::Node& node) {
      return !finished.contains(node.id()) && IsFree(graph, node.id(), finished);
    });
    RC_ASSERT(next != graph.nodes.end());
    expected.push_back(next->id());
    finished.insert(next->id());
  }
  const std::string file = File(graph.nodes);
  for (const size_t window : {size_t{0}, size_t{1}, size_t{5}, kNoBound}) {
    FeederOptions options;
    options.window = window;
    for (const std::string& bytes : {file, Gzip(file)}) {
      const Fed run = FeedAtOnce(Feed(bytes, options));
      RC_ASSERT(run.error == "");
      RC_ASSERT(run.order == expected);
      RC_ASSERT(run.done);
    }
  }
}

RC_GTEST_PROP(FeederProperty, EachNodeOnceAndAfterItsDependencies, ()) {
  const Graph graph = RandomGraph();
  FeederOptions options;
  options.window = *rc::gen::inRange<size_t>(0, 8);
  auto feeder = Feed(File(graph.nodes), options).value();
  std::set<uint64_t> finished;
  std::set<uint64_t> seen;
  Ids in_flight;
  while (!feeder.done()) {
    const bool asks = *rc::gen::arbitrary<bool>() || in_flight.empty();
    const auto node = asks ? feeder.Next().value() : std::nullopt;
    if (node) {
      RC_ASSERT(seen.insert(node->id()).second);
      RC_ASSERT(IsFree(graph, node->id(), finished));
      in_flight.push_back(node->id());
    } else {
      RC_ASSERT(!in_flight.empty());
      const auto which = *rc::gen::inRange<size_t>(0, in_flight.size());
      RC_ASSERT(feeder.Finish(in_flight[which]).has_value());
      finished.insert(in_flight[which]);
      in_flight.erase(in_flight.begin() + static_cast<ptrdiff_t>(which));
    }
  }
  RC_ASSERT(finished.size() == graph.nodes.size());
}

}  // namespace
}  // namespace etude::chakra
