#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "src/formats/json/json_tape.h"
#include "src/trace/trace_builder.h"

namespace etude {

// Inputs or outputs of one node of an execution trace: parallel trees of values, shapes, types,
// strides and Python numbers, in any order in the file. Reused from node to node.
class EtArguments {
 public:
  void Clear();
  // Each at most once per node; trees that are not read are missing.
  simdjson::error_code ReadValues(simdjson::ondemand::value& value) { return values_.Read(value); }
  simdjson::error_code ReadShapes(simdjson::ondemand::value& value) { return shapes_.Read(value); }
  simdjson::error_code ReadTypes(simdjson::ondemand::value& value) { return types_.Read(value); }
  simdjson::error_code ReadStrides(simdjson::ondemand::value& value) {
    return strides_.Read(value);
  }

  simdjson::error_code ReadNumbers(simdjson::ondemand::value& value) {
    return numbers_.Read(value);
  }

  // Stores the values, with their parts, in the trace's tables; `end` is the end of the node's
  // text. Values of unexpected form are kept as text and counted. Returns kNone if there are none;
  // nullopt if `values` is not an array or contains invalid JSON.
  std::optional<ValueListId> Build(TraceBuilder& builder, const char* end);

 private:
  // Parallel tokens; kAbsent for a tree without one.
  struct Cursor {
    size_t value = 0;
    size_t shape = 0;
    size_t stride = 0;
    size_t number = 0;
  };

  Value BuildValue(const Cursor& at, std::string_view type);
  Value BuildScalar(const JsonTape::Token& token, std::string_view type, StringId type_id);
  Value BuildNumber(const JsonTape::Token& token, std::string_view type, StringId type_id);
  Value BuildList(const Cursor& at, std::string_view type, StringId type_id);
  std::optional<TensorId> BuildTensor(const Cursor& at, StringId type_id);
  IntListId BuildInts(const JsonTape& tape, size_t index);
  void SetNumber(size_t index, TensorUse& use);
  Value Raw(const JsonTape::Token& token, StringId type_id);
  StringId TypeId(std::string_view type);

  JsonTape values_;
  JsonTape shapes_;
  JsonTape types_;
  JsonTape strides_;
  JsonTape numbers_;
  std::vector<Value> scratch_;  // elements of the lists being built
  std::vector<int64_t> ints_;
  TraceBuilder* builder_ = nullptr;
  const char* end_ = nullptr;
  bool malformed_ = false;
};

}  // namespace etude
