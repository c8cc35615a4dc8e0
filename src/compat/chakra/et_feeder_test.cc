// Uses the adapter as simulators use Chakra's feeders.
#include "src/compat/chakra/et_feeder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <queue>
#include <string>
#include <vector>

#include "src/formats/chakra/chakra_schema.h"
#include "src/formats/test_support.h"

namespace etude {
namespace {

namespace pb = ChakraProtoMsg;
using Chakra::ETFeeder;
using Chakra::ETFeederNode;
using NodePtr = std::shared_ptr<ETFeederNode>;
using Ids = std::vector<uint64_t>;

// A message and its length, which is below 128.
std::string Frame(const std::string& message) {
  EXPECT_LT(message.size(), 128u);
  return std::string(1, static_cast<char>(message.size())) + message;
}

pb::Node FeederNode(uint64_t id, uint64_t micros, bool on_host, const Ids& deps) {
  pb::Node node;
  node.set_id(id);
  node.set_type(pb::COMP_NODE);
  node.set_duration_micros(micros);
  for (const uint64_t dep : deps) node.add_data_deps(dep);
  auto* attr = node.add_attr();
  attr->set_name("is_cpu_op");
  attr->set_bool_val(on_host);
  return node;
}

class EtFeeder : public testing::Test {
 protected:
  ~EtFeeder() override { std::filesystem::remove(path_); }

  std::string Write(const std::vector<pb::Node>& nodes) {
    pb::GlobalMetadata metadata;
    metadata.set_version("0.0.4");
    std::ofstream file(path_, std::ios::binary);
    file << Frame(metadata.SerializeAsString());
    for (const pb::Node& node : nodes) file << Frame(node.SerializeAsString());
    return path_;
  }

  std::string path_ =
      (std::filesystem::path(testing::TempDir()) /
       (std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + ".et"))
          .string();
};

// One host and one device that run one node at a time: end times of nodes.
class Machine {
 public:
  bool IsAvailable(const ETFeederNode& node) const { return !busy_[node.is_cpu_op()]; }
  void Start(const ETFeederNode& node) {
    busy_[node.is_cpu_op()] = true;
    events_.push({now_ + node.runtime(), node.id()});
  }
  bool idle() const { return events_.empty(); }
  // Advances to the next end of a node and returns its id.
  uint64_t Step(ETFeeder& feeder) {
    const auto [time, id] = events_.top();
    events_.pop();
    now_ = time;
    busy_[feeder.lookupNode(id)->is_cpu_op()] = false;
    ends_[id] = time;
    return id;
  }
  const std::map<uint64_t, uint64_t>& ends() const { return ends_; }

 private:
  using Event = std::pair<uint64_t, uint64_t>;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  bool busy_[2] = {false, false};
  uint64_t now_ = 0;
  std::map<uint64_t, uint64_t> ends_;
};

// Like users of mlcommons/chakra's feeder: takes nodes, and puts them back if there is no room.
std::map<uint64_t, uint64_t> SimulateByTaking(ETFeeder& feeder) {
  Machine machine;
  const auto issue = [&] {
    std::queue<NodePtr> put_back;
    for (NodePtr node = feeder.getNextIssuableNode(); node != nullptr;
         node = feeder.getNextIssuableNode()) {
      if (machine.IsAvailable(*node)) {
        machine.Start(*node);
      } else {
        put_back.push(node);
      }
    }
    for (; !put_back.empty(); put_back.pop()) feeder.pushBackIssuableNode(put_back.front()->id());
  };
  issue();
  while (feeder.hasNodesToIssue() && !machine.idle()) {
    const uint64_t id = machine.Step(feeder);
    feeder.freeChildrenNodes(id);
    issue();
    feeder.removeNode(id);
  }
  return machine.ends();
}

// Like users of ASTRA-sim's feeder: inspects all free nodes.
std::map<uint64_t, uint64_t> SimulateByLooking(ETFeeder& feeder) {
  Machine machine;
  auto& resolver = feeder.getDependancyResolver();
  const auto issue = [&] {
    const auto free = resolver.get_dependancy_free_nodes();
    for (const auto id : free) {
      const NodePtr node = feeder.lookupNode(id);
      if (!machine.IsAvailable(*node)) continue;
      resolver.take_node(id);
      machine.Start(*node);
    }
  };
  issue();
  while (!resolver.get_dependancy_free_nodes().empty() || !resolver.get_ongoing_nodes().empty()) {
    resolver.finish_node(machine.Step(feeder));
    issue();
  }
  return machine.ends();
}

TEST_F(EtFeeder, SimulatorsOfBothKindsFinishAtTheHandComputedTimes) {
  // Host: 1 (5 µs), 2 (3 µs) after it, 5 (1 µs) free but behind 1 and then behind 2 by its id.
  // Device: 3 (10 µs) after 1, 4 (2 µs) after 1 and behind 3, 6 (1 µs) after 4 and 5.
  const std::string path = Write({FeederNode(1, 5, true, {}), FeederNode(2, 3, true, {1}),
                                  FeederNode(3, 10, false, {1}), FeederNode(4, 2, false, {1}),
                                  FeederNode(5, 1, true, {}), FeederNode(6, 1, false, {4, 5})});
  const std::map<uint64_t, uint64_t> expected{{1, 5}, {2, 8}, {3, 15}, {4, 17}, {5, 9}, {6, 18}};
  ETFeeder taking(path);
  EXPECT_EQ(SimulateByTaking(taking), expected);
  EXPECT_FALSE(taking.hasNodesToIssue());
  ETFeeder looking(path);
  EXPECT_EQ(SimulateByLooking(looking), expected);
  EXPECT_FALSE(looking.hasNodesToIssue());
}

TEST_F(EtFeeder, FreeNodesComeBySmallestId) {
  ETFeeder feeder(
      Write({FeederNode(7, 1, true, {}), FeederNode(9, 1, true, {3}), FeederNode(3, 1, true, {})}));
  EXPECT_EQ(feeder.getNextIssuableNode()->id(), 3u);
  EXPECT_EQ(feeder.getNextIssuableNode()->id(), 7u);
  EXPECT_EQ(feeder.getNextIssuableNode(), nullptr);
  EXPECT_TRUE(feeder.hasNodesToIssue());
  EXPECT_EQ(feeder.lookupNode(3)->getChildren().at(0)->id(), 9u);
  feeder.pushBackIssuableNode(3);
  EXPECT_THROW(feeder.freeChildrenNodes(3), std::runtime_error);  // free again
  EXPECT_EQ(feeder.getNextIssuableNode()->id(), 3u);
  feeder.freeChildrenNodes(3);
  EXPECT_THROW(feeder.lookupNode(3), std::runtime_error);
  EXPECT_THROW(feeder.pushBackIssuableNode(3), std::runtime_error);
  EXPECT_EQ(feeder.getNextIssuableNode()->id(), 9u);
}

TEST_F(EtFeeder, AttributesAreTheFilesOrTheCallersOrAnError) {
  pb::Node node = FeederNode(1, 0, false, {});
  node.clear_attr();
  node.set_type(pb::COMM_COLL_NODE);
  const auto add = [&](const std::string& name) {
    auto* attr = node.add_attr();
    attr->set_name(name);
    return attr;
  };
  add("comm_size")->set_int64_val(1'000);
  add("comm_tag")->set_int32_val(-1);
  add("comm_type")->set_int64_val(7);
  add("num_ops")->set_double_val(2.5);
  add("dims")->mutable_bool_list()->add_values(true);
  node.mutable_inputs()->set_values("[2]");
  ETFeeder feeder(Write({node}));
  const NodePtr view = feeder.getNextIssuableNode();
  EXPECT_EQ(view->type(), pb::COMM_COLL_NODE);
  EXPECT_EQ(view->comm_size(), 1'000u);
  EXPECT_EQ(view->comm_size<uint16_t>(), 1'000);
  EXPECT_THROW(view->comm_size<uint8_t>(), std::runtime_error);  // does not fit
  EXPECT_THROW(view->comm_tag(), std::runtime_error);
  EXPECT_EQ(view->comm_tag<int>(), -1);
  EXPECT_EQ(view->comm_type(), pb::REDUCE_SCATTER);
  EXPECT_EQ(view->comm_type<uint64_t>(), 7u);
  EXPECT_EQ(view->num_ops<double>(), 2.5);
  EXPECT_THROW(view->num_ops(), std::runtime_error);
  EXPECT_FALSE(view->is_cpu_op());
  EXPECT_TRUE(view->is_cpu_op<bool>(true));
  EXPECT_EQ(view->comm_priority(), 0u);
  EXPECT_EQ(view->pg_name(), "");
  EXPECT_EQ(view->pg_name<std::string>("all"), "all");
  EXPECT_THROW(view->comm_src(), std::runtime_error);
  EXPECT_EQ(view->comm_src(5), 5);
  EXPECT_THROW(view->get_attr<std::string>("comm_size"), std::runtime_error);
  EXPECT_TRUE(view->get_attr<Chakra::FeederV3::ChakraAttr>("dims").bool_list().values(0));
  EXPECT_TRUE(view->has_other_attr("dims"));
  EXPECT_FALSE(view->has_attr("involved_dim"));
  EXPECT_EQ(view->get_inputs_values(), "[2]");
  EXPECT_EQ(view->get_outputs_values(), "");
  EXPECT_EQ(view->getChakraNode()->SerializeAsString(), node.SerializeAsString());
  EXPECT_EQ(feeder.global_metadata.version(), "0.0.4");
}

TEST_F(EtFeeder, ErrorsAreThrown) {
  EXPECT_THROW(ETFeeder feeder(path_), std::runtime_error);  // no such file
  ETFeeder feeder(Write(
      {FeederNode(1, 1, true, {}), FeederNode(2, 1, true, {1, 3}), FeederNode(3, 1, true, {2})}));
  feeder.getNextIssuableNode();
  EXPECT_THROW(feeder.freeChildrenNodes(1), std::runtime_error);  // a cycle is left
}

TEST(EtFeederNumbers, AreThoseOfTheSchema) {
  for (const auto& row : chakra::kNodeTypes) {
    pb::NodeType type{};
    if (pb::NodeType_Parse(std::string(row.name), &type)) {
      EXPECT_EQ(static_cast<uint32_t>(type), row.number);
    }
  }
}

// The sample and expectations of mlcommons/chakra's feeder tests.
TEST(EtFeederSample, GivesTheNodesThatChakrasTestsExpect) {
  ETUDE_NEED_SHARED_DATA();
  chakra::FeederOptions options;
  options.dependencies.ctrl = false;
  ETFeeder feeder(ETUDE_SHARED_DATA "/chakra/feeder/chakra.0.et.zst", options);
  const NodePtr first = feeder.getNextIssuableNode();
  EXPECT_EQ(first->id(), 216u);
  EXPECT_EQ(first->type(), pb::COMP_NODE);
  EXPECT_TRUE(first->is_cpu_op());
  EXPECT_EQ(first->get_other_attr("rf_id").int64_val(), 2);
  const auto children = first->getChildren();
  ASSERT_GE(children.size(), 3u);
  EXPECT_EQ(children[0]->id(), 217u);
  EXPECT_EQ(children[1]->id(), 430u);
  EXPECT_EQ(children[2]->id(), 435u);
  const NodePtr second = feeder.getNextIssuableNode();
  EXPECT_EQ(second->id(), 432u);
  EXPECT_EQ(second->type(), pb::COMM_COLL_NODE);
  EXPECT_EQ(second->get_other_attr("rf_id").int64_val(), 110);
  feeder.freeChildrenNodes(216);
  EXPECT_EQ(feeder.getNextIssuableNode()->id(), 217u);
}

// Real traces from start to end. Those of Chakra's converter have control dependencies on nodes
// that it left out.
TEST(EtFeederSample, RunsConvertedTraces) {
  for (const auto& [file, count] :
       {std::pair("mlp.et", size_t{223}), std::pair("lstm.et", size_t{553})}) {
    ETFeeder feeder(testing_support::DataPath(std::string("chakra_tools/converter/") + file));
    EXPECT_EQ(SimulateByTaking(feeder).size(), count) << file;
    EXPECT_FALSE(feeder.hasNodesToIssue());
  }
}

// The control and data dependencies of the sample make cycles.
TEST(EtFeederSample, RunsSharedTraces) {
  ETUDE_NEED_SHARED_DATA();
  const std::string folder = ETUDE_SHARED_DATA "/chakra/";
  for (const auto& [file, count] : {std::pair("dlrm8/chakra.0.et.zst", size_t{1'935}),
                                    std::pair("sample102/chakra.0.et", size_t{262})}) {
    ETFeeder feeder(folder + file);
    EXPECT_EQ(SimulateByTaking(feeder).size(), count) << file;
    EXPECT_FALSE(feeder.hasNodesToIssue());
  }
  chakra::FeederOptions options;
  options.dependencies.ctrl = false;
  ETFeeder sample(folder + "feeder/chakra.0.et.zst", options);
  EXPECT_EQ(SimulateByTaking(sample).size(), 3'664u);
  ETFeeder cyclic(folder + "feeder/chakra.0.et.zst");
  EXPECT_THROW(SimulateByTaking(cyclic), std::runtime_error);
}

}  // namespace
}  // namespace etude
