#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "src/trace/trace.h"
#include "src/trace/trace_builder.h"

// For tests only.
namespace etude::testing_layers {

// Parts of a recorded step besides its layers.
struct TrainingStepForm {
  int layers = 4;
  bool has_ends = false;   // embedding, loss, release of gradients, a mask for all layers, a mark
  bool is_tied = false;    // the loss reads the embedding's weights
  bool is_alone = true;    // without communication
  bool has_sizes = true;   // of the tensors between layers
  int passes = 1;          // forward and backward
  bool on_device = false;  // each operator launches a kernel that takes as long
  // Operators have schemas, and the backward pass reads what the forward pass has made.
  bool has_lifetimes = false;
};

// Writes host operators of one thread, whose tensors have numbers as memory.
class StepWriter {
 public:
  virtual ~StepWriter() = default;

 protected:
  virtual Value Tensor(int memory) = 0;

  ValueListId Tensors(const std::vector<int>& memory) {
    std::vector<Value> values;
    for (const int one : memory) values.push_back(Tensor(one));
    return builder_.InternValues(values);
  }
  NodeRow Row(const std::string& name, NodeKind kind, NodeId parent) {
    NodeRow row;
    row.source_id = ++id_;
    row.kind = kind;
    row.place = Place::kHost;
    row.name = builder_.Intern(name);
    row.parent_node = parent;
    row.lane = builder_.InternLane({.thread = builder_.Intern("1")});
    row.start = now_;
    return row;
  }

  TraceBuilder builder_;
  uint64_t id_ = 0;
  Nanos now_;
};

// Writes the recording of a training step without gaps: a forward pass of `kForward` ns per layer,
// a backward pass of `kBackward` ns per layer, and an optimizer on a list of all parameters.
// Tensors between layers have `kActivation` bytes, and each layer has a weight of 8 · 8 floats.
class TrainingStep : private StepWriter {
 public:
  static constexpr int64_t kForward = 3000;
  static constexpr int64_t kBackward = 5000;
  static constexpr int64_t kGradient = 100;  // part of the backward pass: addition of a gradient
  static constexpr int64_t kUpdate = 4000;   // the whole optimizer
  static constexpr int64_t kRelease = 700;
  static constexpr int64_t kMark = 50;  // time of the step before all others
  static constexpr int64_t kActivation = 16 * 8 * 4;
  static constexpr int64_t kWeight = 8 * 8 * 4;

  explicit TrainingStep(const TrainingStepForm& form) : form_(form) {}

  Trace Make() {
    now_ = Nanos{1'000'000};
    NodeId mark;
    if (form_.has_ends) {
      mark = Begin("ProfilerStep#1", NodeKind::kLabel);
      now_ = now_ + Nanos{kMark};
      const NodeId release = Begin("Optimizer.zero_grad#SGD.zero_grad", NodeKind::kLabel);
      now_ = now_ + Nanos{kRelease};
      End(release);
    }
    for (int pass = 0; pass < form_.passes; ++pass) AddPass();
    std::vector<int> all;
    for (int layer = 0; layer < form_.layers; ++layer) all.push_back(Weight(layer));
    std::vector<int> gradients;
    for (int layer = 0; layer < form_.layers; ++layer) gradients.push_back(Gradient(layer));
    if (form_.has_ends) {
      all.push_back(kEmbedding);
      gradients.push_back(kEmbeddingGradient);
    }
    const Value lists[] = {List(all), List(gradients)};
    NodeRow row = Row("aten::_foreach_add_", NodeKind::kOperator, {});
    row.inputs = builder_.InternValues(lists);
    row.duration = Nanos{kUpdate};
    if (form_.has_lifetimes) {
      row.op_schema =
          builder_.Intern("aten::_foreach_add_.List(Tensor(a!)[] self, Tensor[] other) -> ()");
    }
    Launch(builder_.AddNode(row), kUpdate);
    now_ = now_ + Nanos{kUpdate};
    if (mark) End(mark);
    if (!form_.is_alone) {
      builder_.SetComm(Op("c10d::allreduce_", {kEmbedding}, {}, 10, {}, NodeKind::kCollective), {});
    }
    return builder_.Finish().value();
  }

 private:
  static constexpr int kTokens = 1;
  static constexpr int kEmbedding = 2;
  static constexpr int kMask = 3;
  static constexpr int kLoss = 4;
  static constexpr int kTargets = 5;
  static constexpr int kEmbeddingGradient = 6;
  static int Weight(int layer) { return 100 + layer; }
  static int Gradient(int layer) { return 200 + layer; }
  static int Activation(int layer) { return 300 + layer; }  // input of the layer
  static int Flow(int layer) { return 400 + layer; }        // gradient of that

  void AddPass() {
    if (form_.has_ends) {
      Op("aten::ones", {}, {kMask}, 100);
      Op("aten::embedding", {kEmbedding, kTokens}, {Activation(0)}, 200);
    }
    for (int layer = 0; layer < form_.layers; ++layer) {
      const std::vector<int> mask = form_.has_ends ? std::vector{kMask} : std::vector<int>();
      std::vector<int> reads = {Activation(layer), Weight(layer)};
      reads.insert(reads.end(), mask.begin(), mask.end());
      Op("aten::linear", reads, {Activation(layer + 1)}, kForward);
    }
    if (form_.has_ends) {
      std::vector<int> reads = {Activation(form_.layers), kTargets};
      if (form_.is_tied) reads.push_back(kEmbedding);
      Op("aten::nll_loss", reads, {kLoss}, 300);
    }
    for (int layer = form_.layers - 1; layer >= 0; --layer) {
      const NodeId call =
          Begin("autograd::engine::evaluate_function: AddmmBackward0", NodeKind::kLabel);
      std::vector<int> reads = {Flow(layer + 1), Weight(layer)};
      if (form_.has_lifetimes) reads.push_back(Activation(layer));
      Op("aten::mm", reads, {Gradient(layer), Flow(layer)}, kBackward - kGradient, call);
      End(call);
      const NodeId last = Begin(
          "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", NodeKind::kLabel);
      Op("torch::autograd::AccumulateGrad", {Gradient(layer)}, {}, kGradient, last,
         NodeKind::kLabel);
      End(last);
    }
    if (form_.has_ends) {
      const NodeId call =
          Begin("autograd::engine::evaluate_function: EmbeddingBackward0", NodeKind::kLabel);
      Op("aten::embedding_dense_backward", {Flow(0)}, {kEmbeddingGradient}, 400, call);
      End(call);
    }
  }

  Value Tensor(int memory) override {
    const bool is_weight = memory >= 100 && memory < 300;
    const bool is_whole = memory == kTokens || memory == kTargets;
    const std::vector<int64_t> shape = {is_weight ? 8 : 16, 8};
    const StringId type = builder_.Intern(is_whole ? "Tensor(long int)" : "Tensor(float)");
    const auto address = static_cast<uint64_t>(memory);
    const bool is_unknown = memory >= 300 && memory < 400 && !form_.has_sizes;
    return Value::Tensor(
        type, builder_.InternTensor(
                  {.tensor = address,
                   .storage = address,
                   .numel = is_unknown ? -1 : shape[0] * shape[1],
                   .element_bytes = is_whole ? 8 : 4,
                   .type = type,
                   .shape = is_unknown ? IntListId::None() : builder_.InternInts(shape)}));
  }
  Value List(const std::vector<int>& memory) {
    return Value::List(builder_.Intern("GenericList[]"), Tensors(memory));
  }
  NodeId Op(const std::string& name, const std::vector<int>& reads, const std::vector<int>& makes,
            int64_t time, NodeId parent = {}, NodeKind kind = NodeKind::kOperator) {
    NodeRow row = Row(name, kind, parent);
    row.duration = Nanos{time};
    row.inputs = Tensors(reads);
    row.outputs = Tensors(makes);
    if (form_.has_lifetimes && kind == NodeKind::kOperator) {
      row.op_schema = builder_.Intern(name + "(Tensor self) -> Tensor");
    }
    const NodeId node = builder_.AddNode(row);
    if (kind == NodeKind::kOperator) Launch(node, time);
    now_ = now_ + Nanos{time};
    return node;
  }
  void Launch(NodeId by, int64_t time) {
    if (!form_.on_device) return;
    NodeRow row = Row("kernel", NodeKind::kKernel, by);
    row.place = Place::kDevice;
    row.lane = builder_.InternLane({.device = 0, .stream = 7});
    row.start = now_ + Nanos{10};
    row.duration = Nanos{time};
    builder_.AddNode(row);
  }
  NodeId Begin(const std::string& name, NodeKind kind) {
    return builder_.AddNode(Row(name, kind, {}));
  }
  void End(NodeId node) {
    const Nanos start = *builder_.start(node);
    builder_.SetTimes(node, start, now_ - start, std::nullopt);
  }

  TrainingStepForm form_;
};

inline Trace MakeTrainingStep(const TrainingStepForm& form) { return TrainingStep(form).Make(); }

}  // namespace etude::testing_layers
