#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/formats/pytorch_et/et_json_reader.h"
#include "src/formats/test_support.h"
#include "src/run/step/data_flow.h"
#include "src/run/step/recorded_step.h"
#include "src/trace/trace.h"

namespace etude::testing_support {

// Addresses from here on contain integers.
inline constexpr int kInteger = 500;

// Writes host traces of a synthetic step of operators on tensors of four elements.
class MadeUpStep {
 public:
  // Adds an operator below `parent`, with tensors named by the address of their memory.
  uint64_t Op(const std::string& schema, const std::vector<int>& inputs,
              const std::vector<int>& outputs, uint64_t parent = 1) {
    const uint64_t id = next_id_++;
    nodes_ += ",{\"id\":" + std::to_string(id) + ",\"name\":\"" +
              schema.substr(0, schema.find('(')) + "\",\"ctrl_deps\":" + std::to_string(parent) +
              ",\"inputs\":" + Values(inputs) + ",\"outputs\":" + Values(outputs) +
              ",\"attrs\":[{\"name\":\"scope\",\"type\":\"uint64\",\"value\":0}," + Sequence() +
              "{\"name\":\"op_schema\",\"type\":\"string\",\"value\":\"" + schema + "\"}]}";
    return id;
  }
  uint64_t Add(int a, int b, int out, uint64_t parent = 1) {
    return Op("aten::add.Tensor(Tensor self, Tensor other) -> Tensor", {a, b}, {out}, parent);
  }

  // Sets the autograd sequence number of nodes added from now on; -1 for none.
  void SetSequence(int64_t number) { sequence_ = number; }

  // Adds a label: a node without a schema.
  uint64_t Label(const std::string& name, const std::vector<int>& inputs = {},
                 uint64_t parent = 1) {
    const uint64_t id = next_id_++;
    nodes_ += ",{\"id\":" + std::to_string(id) + ",\"name\":\"" + name +
              "\",\"ctrl_deps\":" + std::to_string(parent) + ",\"inputs\":" + Values(inputs) +
              ",\"outputs\":" + Values({}) + ",\"attrs\":[" + Sequence() +
              "{\"name\":\"scope\",\"type\":\"uint64\",\"value\":0}]}";
    return id;
  }
  // Adds an accumulation of the gradient `tensor`, by the operator `schema`.
  uint64_t Accumulate(int tensor, const std::string& schema, const std::vector<int>& inputs,
                      int out) {
    const uint64_t label = Label("torch::autograd::AccumulateGrad", {tensor});
    return Op(schema, inputs, {out}, label);
  }

  Trace Read() const {
    const std::string text =
        R"({"schema":"1.1.1-chakra.0.0.4","pid":1,"time":"","start_ts":0,"nodes":[)"
        R"({"id":1,"name":"[pytorch|profiler|execution_trace|process]","ctrl_deps":1})" +
        nodes_ + R"(],"finish_ts":1})";
    return ReadWith(MakeEtJsonReader, text).value();
  }

 private:
  std::string Sequence() const {
    return R"({"name":"seq_id","type":"int64","value":)" + std::to_string(sequence_) + "},";
  }
  static std::string Values(const std::vector<int>& tensors) {
    std::string values;
    std::string shapes;
    std::string types;
    for (const int tensor : tensors) {
      const std::string comma = values.empty() ? "" : ",";
      values += comma + "[" + std::to_string(tensor + 1000) + "," + std::to_string(tensor) +
                (tensor < kInteger ? ",0,4,4,\"cpu\"]" : ",0,4,8,\"cpu\"]");
      shapes += comma + "[4]";
      types += comma + (tensor < kInteger ? "\"Tensor(float)\"" : "\"Tensor(long int)\"");
    }
    return "{\"values\":[" + values + "],\"shapes\":[" + shapes + "],\"types\":[" + types +
           "],\"strides\":[]}";
  }

  std::string nodes_;
  uint64_t next_id_ = 2;
  int64_t sequence_ = -1;
};

struct Flow {
  explicit Flow(const MadeUpStep& made)
      : trace(made.Read()), step(RecordedStep::Select(trace, "").value()), flow(step) {}

  NodeId Node(uint64_t source_id) const {
    for (const NodeId node : step.nodes()) {
      if (trace.source_id(node) == source_id) return node;
    }
    return NodeId::None();
  }
  StorageVersion Read(uint64_t id, size_t i) const { return flow.inputs(Node(id))[i].version; }
  StorageVersion Written(uint64_t id) const { return flow.outputs(Node(id))[0].version; }

  Trace trace;
  RecordedStep step;
  DataFlow flow;
};

}  // namespace etude::testing_support
