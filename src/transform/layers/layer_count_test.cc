#include "src/transform/layers/layer_count.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/trace/trace_builder.h"
#include "src/transform/layers/training_step_testing.h"

namespace etude {
namespace {

// Parts of a step besides its layers.
struct Form {
  bool has_losses = false;  // each layer's result has a loss of its own
  bool reduces = false;     // each layer ends with an all-reduce
  bool gathers = false;     // the backward pass gathers the parameters of the layer after the next
  bool has_bucket = false;  // an all-reduce of all gradients
};

// Writes the recording of a training step: layers of two operators, their backward pass with a
// gradient each, and an optimizer that works parameter by parameter, on a list, and on a list by
// calls for its elements.
class Step : private testing_layers::StepWriter {
 public:
  explicit Step(int layers, Form form = {}) : layers_(layers), form_(form) {}

  Trace Make() {
    now_ = Nanos{1000};
    Op("aten::embedding", {kEmbedding}, {2}, 70);
    for (int layer = 0; layer < layers_; ++layer) {
      const NodeId label = Label(fmt::format("nn.Module: Net.blocks.{} (Block)", layer));
      Op("aten::linear", {2, Weight(layer)}, {3}, 40, label);
      Op("aten::relu", {3}, {2, 300 + layer}, 10, label);
      if (form_.reduces) Communicate("c10d::allreduce_", CollectiveType::kAllReduce, label);
      End(label);
    }
    for (int layer = 0; form_.has_losses && layer < layers_; ++layer)
      Op("aten::pow", {300 + layer}, {6}, 5);
    Op("aten::nll_loss", {2}, {4}, 30);
    if (form_.gathers) Gather(layers_ - 1);
    for (int layer = layers_ - 1; layer >= 0; --layer) {
      const NodeId call = Label("autograd::engine::evaluate_function: AddmmBackward0");
      if (form_.gathers && layer > 0) Gather(layer - 1, call);
      Op("aten::mm", {4, Weight(layer)}, {Gradient(layer)}, 50, call);
      End(call);
      const NodeId last =
          Label("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad");
      Op("torch::autograd::AccumulateGrad", {Gradient(layer)}, {}, 5, last, NodeKind::kLabel);
      End(last);
    }
    if (form_.has_bucket) {
      const NodeId call = Label("autograd::engine::evaluate_function: EmbeddingBackward0");
      Communicate("c10d::allreduce_", CollectiveType::kAllReduce, call);
      End(call);
    }
    Op("aten::embedding_dense_backward", {4}, {5}, 20);
    Op("aten::add_", {kEmbedding, 5}, {kEmbedding}, 25);
    for (int layer = 0; layer < layers_; ++layer) {
      Op("aten::add_", {Weight(layer), Gradient(layer)}, {Weight(layer)}, 15);
    }
    std::vector<int> gradients;
    for (int layer = 0; layer < layers_; ++layer) gradients.push_back(Gradient(layer));
    const NodeId slow = List("aten::_foreach_mul_", gradients, 0);
    Op("aten::mul_", {kEmbedding}, {kEmbedding}, 25, slow);
    for (int layer = 0; layer < layers_; ++layer) {
      Op("aten::mul_", {Weight(layer)}, {Weight(layer)}, 12, slow);
    }
    Op("aten::div_", {kEmbedding}, {kEmbedding}, 5, slow);
    End(slow);
    List("aten::_foreach_zero_", gradients, 20 * layers_);
    return builder_.Finish().value();
  }

 private:
  static constexpr int kEmbedding = 1;
  static int Weight(int layer) { return 100 + layer; }
  static int Gradient(int layer) { return 200 + layer; }

  Value Tensor(int memory) override {
    const std::vector<int64_t> shape = {memory == kEmbedding ? 64 : 8, 8};
    const StringId type = builder_.Intern("Tensor(float)");
    const auto address = static_cast<uint64_t>(memory);
    return Value::Tensor(type, builder_.InternTensor({.tensor = address,
                                                      .storage = address,
                                                      .numel = shape[0] * shape[1],
                                                      .element_bytes = 4,
                                                      .type = type,
                                                      .shape = builder_.InternInts(shape)}));
  }
  void Op(const std::string& name, const std::vector<int>& reads, const std::vector<int>& makes,
          int64_t time, NodeId parent = {}, NodeKind kind = NodeKind::kOperator) {
    NodeRow row = Row(name, kind, parent);
    row.duration = Nanos{time};
    row.inputs = Tensors(reads);
    row.outputs = Tensors(makes);
    last_ = builder_.AddNode(row);
    now_ = now_ + Nanos{time + 3};
  }
  // Issues a communication that runs on another thread, longer than its caller.
  void Communicate(const std::string& call, CollectiveType type, NodeId parent) {
    const Nanos begin = now_;
    Op(call, {7}, {}, 8, parent);
    NodeRow row = Row(type == CollectiveType::kAllReduce ? "gloo:all_reduce" : "gloo:all_gather",
                      NodeKind::kCollective, {});
    row.lane = builder_.InternLane({.thread = builder_.Intern("2")});
    row.start = begin + Nanos{5};
    row.duration = Nanos{90};
    const NodeId label = builder_.AddNode(row);
    builder_.SetComm(label, {.type = type, .bytes = Bytes{256}});
    builder_.AddDep(label, last_, DepKind::kData);
  }
  // Gathers the parameters of a layer.
  void Gather(int layer, NodeId parent = {}) {
    Op("aten::copy_", {8, Weight(layer)}, {}, 6, parent);
    Communicate("c10d::_allgather_base_", CollectiveType::kAllGather, parent);
  }
  NodeId List(const std::string& name, const std::vector<int>& reads, int64_t time) {
    NodeRow row = Row(name, NodeKind::kOperator, {});
    row.duration = Nanos{time};
    const Value list = Value::List(builder_.Intern("GenericList[]"), Tensors(reads));
    row.inputs = builder_.InternValues(std::vector<Value>{list});
    now_ = now_ + Nanos{time};
    return builder_.AddNode(row);
  }
  NodeId Label(const std::string& name) {
    const NodeRow row = Row(name, NodeKind::kLabel, {});
    now_ = now_ + Nanos{2};
    return builder_.AddNode(row);
  }
  void End(NodeId label) {
    const Nanos start = *builder_.start(label);
    builder_.SetTimes(label, start, now_ - start, std::nullopt);
    now_ = now_ + Nanos{4};
  }

  int layers_;
  Form form_;
  NodeId last_;  // added operator
};

// Returns a line for each node in order of time: its name, times and the name of its caller.
std::vector<std::string> Lines(const Trace& trace) {
  std::vector<std::pair<std::pair<Nanos, Nanos>, std::string>> lines;
  ForEachNode(trace, [&](NodeId node) {
    const Nanos start = *trace.start(node);
    const Nanos duration = *trace.duration(node);
    const NodeId parent = trace.parent(node);
    lines.push_back({{start, Nanos{} - duration},
                     fmt::format("{} {} {} in {}", trace.name(node), start.count, duration.count,
                                 parent ? trace.name(parent) : "")});
  });
  std::ranges::sort(lines);
  std::vector<std::string> texts;
  for (auto& [time, text] : lines) texts.push_back(std::move(text));
  return texts;
}

TEST(LayerCount, AnEditedStepIsTheStepOfTheOtherModel) {
  for (const int from : {2, 3, 5}) {
    for (const int to : {1, 2, 3, 4, 9}) {
      const auto edited = SetLayerCount(Step(from).Make(), to, {});
      ASSERT_TRUE(edited) << edited.error().message;
      EXPECT_EQ(edited->stack.layers, static_cast<size_t>(from));
      EXPECT_EQ(edited->stack.runs.size(), 4u)
          << "forward, backward, optimizer, elements of a list";
      EXPECT_EQ(Lines(edited->trace), Lines(Step(to).Make())) << from << " to " << to;
    }
  }
}

TEST(LayerCount, CommunicationOfLayersIsCopied) {
  for (const Form form : {Form{.reduces = true}, Form{.gathers = true}}) {
    for (const int from : {3, 5}) {
      for (const int to : {2, 3, 4, 9}) {
        const auto edited = SetLayerCount(Step(from, form).Make(), to, {});
        ASSERT_TRUE(edited) << edited.error().message;
        EXPECT_EQ(edited->stack.runs.size(), 4u);
        EXPECT_EQ(Lines(edited->trace), Lines(Step(to, form).Make())) << from << " to " << to;
      }
    }
  }
}

TEST(LayerCount, ReductionsOfSeveralLayersAreRefused) {
  const auto edited = SetLayerCount(Step(3, {.has_bucket = true}).Make(), 5, {});
  ASSERT_FALSE(edited);
  EXPECT_NE(edited.error().message.find("in the backward pass outside of layers"),
            std::string::npos);
}

TEST(LayerCount, OthersThatRepeatAsOftenAreNamed) {
  const auto edited = SetLayerCount(Step(3, {.has_losses = true}).Make(), 5, {});
  ASSERT_TRUE(edited) << edited.error().message;
  EXPECT_EQ(edited->stack.others, std::vector<std::string>{"aten::pow"});
  EXPECT_TRUE(SetLayerCount(Step(3).Make(), 5, {})->stack.others.empty());
}

TEST(LayerCount, ModulesAreNamed) {
  const auto edited = SetLayerCount(Step(3).Make(), 5, {});
  ASSERT_TRUE(edited);
  EXPECT_EQ(edited->modules,
            (std::vector<std::string>{"Net.blocks.0", "Net.blocks.1", "Net.blocks.2"}));
}

TEST(LayerCount, TooManyLayersAreRefusedBeforeTheyAreMade) {
  const auto edited = SetLayerCount(Step(2).Make(), 100'000'000, {});
  ASSERT_FALSE(edited);
  EXPECT_NE(edited.error().message.find("expected at most 10,000,000 nodes in all"),
            std::string::npos);
}

TEST(LayerCount, OneLayerIsNoRepetition) {
  const auto edited = SetLayerCount(Step(1).Make(), 2, {});
  ASSERT_FALSE(edited);
  EXPECT_NE(edited.error().message.find("at least two equal layers"), std::string::npos);
}

}  // namespace
}  // namespace etude
