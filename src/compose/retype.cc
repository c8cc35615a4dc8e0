#include "src/compose/retype.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/analysis/tensor_shape.h"
#include "src/transform/rewrite.h"

namespace etude {
namespace {

constexpr DType kNetworkTypes[] = {DType::kFloat32, DType::kFloat64, DType::kFloat16,
                                   DType::kBFloat16};

// The types of a schema's arguments: "Tensor", "ScalarType?" of "x(Tensor a, ScalarType? b=6) ->
// …".
std::vector<std::string_view> ArgumentTypes(std::string_view schema) {
  std::vector<std::string_view> types;
  const size_t open = schema.find('(');
  if (open == std::string_view::npos) return types;
  int depth = 0;
  size_t begin = open + 1;
  for (size_t i = begin; i < schema.size(); ++i) {
    const char c = schema[i];
    const bool ends = depth == 0 && (c == ',' || c == ')');
    if (c == '(' || c == '[') ++depth;
    if ((c == ')' || c == ']') && !ends) --depth;
    if (!ends) continue;
    std::string_view argument = schema.substr(begin, i - begin);
    while (argument.starts_with(' ')) argument.remove_prefix(1);
    if (!argument.empty() && argument != "*")
      types.push_back(argument.substr(0, argument.find(' ')));
    begin = i + 1;
    if (c == ')') break;
  }
  return types;
}

class Retyper {
 public:
  Retyper(const Trace& trace, DType from, DType to) : trace_(trace), from_(from), to_(to) {}

  Result<Retyped> Run(const Limits& limits) {
    auto trace = RewriteTrace(trace_, limits, [&](RewrittenNode& node, TraceBuilder& builder) {
      builder_ = &builder;
      Retype(node);
      return Status();
    });
    if (!trace) return tl::unexpected<Error>(trace.error());
    retyped_.trace = *std::move(trace);
    return std::move(retyped_);
  }

 private:
  void Retype(RewrittenNode& node) {
    changed_ = false;
    const auto types = ArgumentTypes(trace_.text(trace_.op_schema(node.node)));
    node.row.inputs = List(trace_.input_list(node.node), types);
    node.row.outputs = List(trace_.output_list(node.node), {});
    if (node.comm && node.comm->dtype == from_) {
      changed_ = true;
      node.comm->dtype = to_;
      if (node.comm->bytes) node.comm->bytes->count = Resized(node.comm->bytes->count);
    }
    if (!changed_) return;
    ++retyped_.changed;
    node.row.duration.reset();
    node.row.exclusive.reset();
  }

  int64_t Resized(int64_t bytes) const { return bytes / *ElementBytes(from_) * *ElementBytes(to_); }

  // `types`: of an operator's arguments; none of what is inside of one.
  ValueListId List(ValueListId list, const std::vector<std::string_view>& types) {
    if (!list) return list;
    const auto found = trace_.values(list);
    std::vector<Value> values(found.begin(), found.end());
    for (size_t i = 0; i < values.size(); ++i) {
      Value& value = values[i];
      const bool names_type = i < types.size() && types[i].starts_with("ScalarType");
      switch (value.kind) {
        case ValueKind::kInt:
          if (names_type && value.as_int() == ScalarTypeNumber(from_)) {
            changed_ = true;
            value.payload = static_cast<uint64_t>(ScalarTypeNumber(to_));
          }
          break;
        case ValueKind::kTensor: value = Tensor(value); break;
        case ValueKind::kList:
          value.payload = List(value.as_list(), {}).value();
          value.type = Type(value.type);
          break;
        default: break;
      }
    }
    return builder_->InternValues(values);
  }

  Value Tensor(Value value) {
    TensorUse use = trace_.tensor(value.as_tensor());
    if (DTypeOf(trace_, use) != from_) return value;
    changed_ = true;
    use.type = Type(use.type);
    use.element_bytes = *ElementBytes(to_);
    if (use.storage_bytes > 0) use.storage_bytes = Resized(use.storage_bytes);
    value.type = Type(value.type);
    value.payload = builder_->InternTensor(use).value();
    return value;
  }

  // "Tensor(c10::BFloat16)" for "Tensor(float)", also in lists.
  StringId Type(StringId type) {
    if (!type) return type;
    const std::string was = "Tensor(" + std::string(TypeText(from_)) + ")";
    const std::string is = "Tensor(" + std::string(TypeText(to_)) + ")";
    std::string text(trace_.text(type));
    for (size_t at = 0; (at = text.find(was, at)) != std::string::npos; at += is.size()) {
      text.replace(at, was.size(), is);
    }
    return builder_->Intern(text);
  }

  const Trace& trace_;
  const DType from_;
  const DType to_;
  TraceBuilder* builder_ = nullptr;
  Retyped retyped_;
  bool changed_ = false;  // of the node that is rewritten
};

}  // namespace

bool IsNetworkType(DType dtype) { return std::ranges::count(kNetworkTypes, dtype) != 0; }

Result<Retyped> RetypeTrace(const Trace& trace, DType from, DType to, const Limits& limits) {
  return Retyper(trace, from, to).Run(limits);
}

}  // namespace etude
