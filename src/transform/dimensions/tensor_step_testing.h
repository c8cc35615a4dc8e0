#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/trace/trace.h"
#include "src/trace/trace_builder.h"

// For tests only.
namespace etude::testing_dimensions {

// Writes host operators of one thread with tensors, one after another without gaps.
class TensorStep {
 public:
  static constexpr int64_t kTime = 1000;  // of each operator

  // A tensor: its memory by name, sizes and strides.
  struct Tensor {
    std::string memory;
    std::vector<int64_t> shape;
    std::vector<int64_t> strides;
    int64_t offset = 0;
  };
  // Returns a tensor without gaps.
  static Tensor Whole(std::string memory, std::vector<int64_t> shape) {
    std::vector<int64_t> strides(shape.size());
    int64_t stride = 1;
    for (size_t i = shape.size(); i-- > 0; stride *= shape[i]) strides[i] = stride;
    return {.memory = std::move(memory), .shape = std::move(shape), .strides = std::move(strides)};
  }
  // Returns a matrix with its dimensions exchanged.
  static Tensor Turned(const Tensor& matrix) {
    return {.memory = matrix.memory,
            .shape = {matrix.shape[1], matrix.shape[0]},
            .strides = {matrix.strides[1], matrix.strides[0]}};
  }

  // Adds an operator on tensors, with numbers after them.
  NodeId Op(const std::string& name, const std::vector<Tensor>& reads,
            const std::vector<Tensor>& makes, std::initializer_list<int64_t> numbers = {}) {
    NodeRow row = Row(name);
    row.kind = NodeKind::kOperator;
    row.op_schema = builder_.Intern(Schema(name, reads.size() + numbers.size()));
    row.duration = Nanos{kTime};
    row.inputs = Values(reads, numbers);
    row.outputs = Values(makes, {});
    now_ = now_ + Nanos{kTime};
    return builder_.AddNode(row);
  }
  // Adds an operator with a list of numbers as its last argument.
  NodeId OpOver(const std::string& name, const std::vector<Tensor>& reads,
                const std::vector<Tensor>& makes, const std::vector<int64_t>& numbers) {
    NodeRow row = Row(name);
    row.kind = NodeKind::kOperator;
    row.op_schema = builder_.Intern(Schema(name, reads.size() + 1));
    row.duration = Nanos{kTime};
    std::vector<Value> values;
    for (const Tensor& tensor : reads) values.push_back(Make(tensor));
    std::vector<Value> list;
    for (const int64_t number : numbers) list.push_back(Value::Int(builder_.Intern("Int"), number));
    values.push_back(Value::List(builder_.Intern("GenericList[Int]"), builder_.InternValues(list)));
    row.inputs = builder_.InternValues(values);
    row.outputs = Values(makes, {});
    now_ = now_ + Nanos{kTime};
    return builder_.AddNode(row);
  }
  // Begins and ends a call of autograd, or another label.
  void Begin(const std::string& name) {
    NodeRow row = Row(name);
    row.kind = NodeKind::kLabel;
    around_ = builder_.AddNode(row);
  }
  void End() {
    const Nanos start = *builder_.start(around_);
    builder_.SetTimes(around_, start, now_ - start, std::nullopt);
    around_ = NodeId::None();
  }
  // Adds the label in which autograd keeps a gradient.
  void Keep(const Tensor& gradient) {
    NodeRow row = Row("torch::autograd::AccumulateGrad");
    row.kind = NodeKind::kLabel;
    row.inputs = Values({gradient}, {});
    row.duration = Nanos{kTime};
    now_ = now_ + Nanos{kTime};
    builder_.AddNode(row);
  }

  Trace Finish() { return builder_.Finish().value(); }

 private:
  NodeRow Row(const std::string& name) {
    NodeRow row;
    row.source_id = ++id_;
    row.place = Place::kHost;
    row.name = builder_.Intern(name);
    row.parent_node = around_;
    row.lane = builder_.InternLane({.thread = builder_.Intern("1")});
    row.start = now_;
    return row;
  }
  static std::string Schema(const std::string& name, size_t arguments) {
    std::string schema = name + "(";
    const bool in_place = name.ends_with('_');
    for (size_t i = 0; i < arguments; ++i) {
      schema += (i > 0 ? ", " : "") + std::string(in_place && i == 0 ? "Tensor(a!)" : "Tensor") +
                " t" + std::to_string(i);
    }
    return schema + ") -> Tensor";
  }
  Value Make(const Tensor& tensor) {
    const auto [memory, is_new] = memory_.try_emplace(tensor.memory, memory_.size() + 1);
    const StringId type = builder_.Intern("Tensor(float)");
    int64_t numel = 1;
    uint64_t view = memory->second;
    for (const int64_t size : tensor.shape) numel *= size;
    for (const int64_t stride : tensor.strides) view = view * 1000 + static_cast<uint64_t>(stride);
    return Value::Tensor(
        type, builder_.InternTensor({.tensor = view * 1000 + static_cast<uint64_t>(tensor.offset),
                                     .storage = memory->second,
                                     .offset = tensor.offset,
                                     .numel = numel,
                                     .element_bytes = 4,
                                     .type = type,
                                     .shape = builder_.InternInts(tensor.shape),
                                     .strides = builder_.InternInts(tensor.strides)}));
  }
  ValueListId Values(const std::vector<Tensor>& tensors, std::initializer_list<int64_t> numbers) {
    std::vector<Value> values;
    for (const Tensor& tensor : tensors) values.push_back(Make(tensor));
    for (const int64_t number : numbers) {
      values.push_back(Value::Int(builder_.Intern("Int"), number));
    }
    return builder_.InternValues(values);
  }

  TraceBuilder builder_;
  std::map<std::string, uint64_t> memory_;
  NodeId around_;
  uint64_t id_ = 0;
  Nanos now_{1'000'000};
};

}  // namespace etude::testing_dimensions
