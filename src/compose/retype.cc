#include "src/compose/retype.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/run/calls/launch.h"
#include "src/run/step/tensor_shape.h"
#include "src/trace/words/operator_name.h"
#include "src/transform/edit/rewrite.h"

namespace etude {
namespace {

constexpr DType kNetworkTypes[] = {DType::kFloat32, DType::kFloat64, DType::kFloat16,
                                   DType::kBFloat16};

// Returns true for names of sums that attention keeps for its backward pass, in its accumulation
// type.
bool IsSumOfAttention(std::string_view name) {
  return name.ends_with("logsumexp") || name == "log_sumexp";
}

DType TypeOfSums(DType dtype) { return *ElementBytes(dtype) < 4 ? DType::kFloat32 : dtype; }

class Retyper {
 public:
  Retyper(const Trace& trace, DType from, DType to)
      : trace_(trace), from_(from), to_(to), is_changed_(trace.node_count()) {}

  Result<Retyped> Run(const Limits& limits) {
    auto trace = RewriteTrace(trace_, limits, [&](RewrittenNode& node, TraceBuilder& builder) {
      builder_ = &builder;
      Retype(node);
      return Status();
    });
    if (!trace) return tl::unexpected<Error>(trace.error());
    retyped_.trace = *std::move(trace);
    if (retyped_.changed > 0) ETUDE_RETURN_IF_ERROR(ForgetTimes(limits));
    return std::move(retyped_);
  }

 private:
  // Removes unknown times: those of changed nodes, of their callers, including labels, and of their
  // device work.
  Status ForgetTimes(const Limits& limits) {
    const Trace& retyped = retyped_.trace;
    std::vector<bool> unknown(retyped.node_count());  // changed nodes and their callers
    ForEachNode(retyped, [&](NodeId node) {
      if (!is_changed_[node.index()]) return;
      while (node && !unknown[node.index()]) {
        unknown[node.index()] = true;
        node = retyped.parent(node);
      }
    });
    const std::vector<NodeId> launchers = FindLaunchers(retyped);
    ForEachNode(retyped, [&](NodeId node) {
      NodeId launcher = launchers[node.index()];
      // A runtime call changes with its operator.
      if (launcher && retyped.kind(launcher) == NodeKind::kRuntime) {
        launcher = retyped.parent(launcher);
      }
      if (launcher && is_changed_[launcher.index()]) unknown[node.index()] = true;
    });
    ETUDE_ASSIGN_OR_RETURN(retyped_.trace,
                           RewriteTrace(retyped, limits, [&](RewrittenNode& node, TraceBuilder&) {
                             if (unknown[node.node.index()]) {
                               node.row.duration.reset();
                               node.row.exclusive.reset();
                             }
                             return Status();
                           }));
    return {};
  }
  void Retype(RewrittenNode& node) {
    changed_ = false;
    const OperatorSignature signature = SignatureOf(trace_.text(trace_.op_schema(node.node)));
    node.row.inputs = List(trace_.input_list(node.node), signature.arguments);
    node.row.outputs = List(trace_.output_list(node.node), signature.results);
    if (node.comm && node.comm->dtype == from_) {
      changed_ = true;
      node.comm->dtype = to_;
      if (node.comm->bytes) {
        const auto bytes = Resized(node.comm->bytes->count, from_, to_);
        node.comm->bytes = bytes ? std::optional(Bytes{*bytes}) : std::nullopt;
      }
    }
    if (!changed_) return;
    ++retyped_.changed;
    is_changed_[node.node.index()] = true;
  }

  // Returns nullopt on overflow.
  static std::optional<int64_t> Resized(int64_t bytes, DType from, DType to) {
    int64_t resized = 0;
    if (__builtin_mul_overflow(bytes / *ElementBytes(from), *ElementBytes(to), &resized)) {
      return std::nullopt;
    }
    return resized;
  }

  // `declared`: an operator's arguments or results; empty inside one.
  ValueListId List(ValueListId list, std::span<const DeclaredValue> declared) {
    if (!list) return list;
    const auto found = trace_.values(list);
    std::vector<Value> values(found.begin(), found.end());
    for (size_t i = 0; i < values.size(); ++i) {
      Value& value = values[i];
      const DeclaredValue as = i < declared.size() ? declared[i] : DeclaredValue{};
      const bool names_type = as.type.starts_with("ScalarType");
      switch (value.kind) {
        case ValueKind::kInt:
          if (names_type && value.as_int() == ScalarTypeNumber(from_)) {
            changed_ = true;
            value.payload = static_cast<uint64_t>(ScalarTypeNumber(to_));
          }
          break;
        case ValueKind::kTensor:
          value = IsSumOfAttention(as.name) ? Tensor(value, TypeOfSums(from_), TypeOfSums(to_))
                                            : Tensor(value, from_, to_);
          break;
        case ValueKind::kList:
          value.payload = List(value.as_list(), {}).value();
          value.type = Type(value.type, from_, to_);
          break;
        default: break;
      }
    }
    return builder_->InternValues(values);
  }

  Value Tensor(Value value, DType from, DType to) {
    TensorUse use = trace_.tensor(value.as_tensor());
    if (from == to || DTypeOf(trace_, use) != from) return value;
    changed_ = true;
    use.type = Type(use.type, from, to);
    use.element_bytes = *ElementBytes(to);
    if (use.storage_bytes > 0)
      use.storage_bytes = Resized(use.storage_bytes, from, to).value_or(-1);
    value.type = Type(value.type, from, to);
    value.payload = builder_->InternTensor(use).value();
    return value;
  }

  // Returns "Tensor(c10::BFloat16)" for "Tensor(float)", also in lists.
  StringId Type(StringId type, DType from, DType to) {
    if (!type) return type;
    const std::string was = "Tensor(" + std::string(TypeText(from)) + ")";
    const std::string is = "Tensor(" + std::string(TypeText(to)) + ")";
    std::string text(trace_.text(type));
    for (size_t at = 0; (at = text.find(was, at)) != std::string::npos; at += is.size()) {
      text.replace(at, was.size(), is);
    }
    return builder_->Intern(text);
  }

  const Trace& trace_;
  const DType from_;
  const DType to_;
  std::vector<bool> is_changed_;  // by node
  TraceBuilder* builder_ = nullptr;
  Retyped retyped_;
  bool changed_ = false;  // of the current node
};

}  // namespace

bool IsNetworkType(DType dtype) { return std::ranges::count(kNetworkTypes, dtype) != 0; }

Result<Retyped> RetypeTrace(const Trace& trace, DType from, DType to, const Limits& limits) {
  return Retyper(trace, from, to).Run(limits);
}

}  // namespace etude
