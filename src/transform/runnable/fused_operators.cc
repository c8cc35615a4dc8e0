#include "src/transform/runnable/fused_operators.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "src/trace/words/operator_name.h"
#include "src/transform/operators/operator_class.h"
#include "src/transform/operators/operator_cost.h"
#include "src/transform/runnable/rank_edit.h"
#include "src/transform/runnable/rank_operators.h"

namespace etude {
namespace {

// Work of one operator on a thread or stream.
struct OperatorWork {
  NodeId op;                    // kNone: unknown
  std::vector<uint32_t> nodes;  // of the rank
};

class Fuser {
 public:
  Fuser(const Trace& trace, std::span<const std::string> names, RunnableRank& rank)
      : trace_(trace), names_(names), rank_(rank), operators_(trace), edit_(rank) {}

  Result<uint64_t> Run() {
    for (const std::string& name : names_) {
      if (IsMatrixOperator(BaseOperatorName(name))) {
        return BadInput(fmt::format("found '{}', expected element-wise operators", name));
      }
    }
    std::map<uint32_t, std::vector<OperatorWork>> lanes;
    for (uint32_t i = 0; i < rank_.nodes.size(); ++i) {
      const RunnableNode& node = rank_.nodes[i];
      if (IsCommunication(node.kind) || node.kind == NodeKind::kLabel) continue;
      const NodeId op = Named(operators_.OperatorOf(node));
      std::vector<OperatorWork>& works = lanes[node.lane];
      if (works.empty() || !op || works.back().op != op) works.push_back({.op = op});
      works.back().nodes.push_back(i);
    }
    uint64_t fused = 0;
    for (const auto& [lane, works] : lanes) {
      for (size_t i = 0; i + names_.size() <= works.size();) {
        const std::span chain = std::span(works).subspan(i, names_.size());
        if (!IsChain(chain)) {
          CountFollower(std::span(works).subspan(i));
          ++i;
          continue;
        }
        Fuse(chain);
        ++fused;
        i += names_.size();
      }
    }
    if (fused == 0) return NoChain();
    ETUDE_RETURN_IF_ERROR(edit_.Finish());
    return fused;
  }

 private:
  bool IsNamed(NodeId op, std::string_view name) const {
    return MeansOperator(name, trace_.name(op), false);
  }

  // Returns the outermost operator around `op` that has one of the names; `op` without any.
  NodeId Named(NodeId op) const {
    NodeId named = op;
    for (NodeId at = op; at; at = trace_.parent(at)) {
      if (trace_.kind(at) != NodeKind::kOperator) continue;
      if (std::ranges::any_of(names_, [&](const std::string& name) { return IsNamed(at, name); })) {
        named = at;
      }
    }
    return named;
  }

  bool IsChain(std::span<const OperatorWork> chain) const {
    for (size_t i = 0; i < chain.size(); ++i) {
      if (!chain[i].op || !IsNamed(chain[i].op, names_[i]) || HasProduct(chain[i])) return false;
      if (i != 0 && !Continues(chain[i].op, chain[i - 1].op)) return false;
    }
    return true;
  }

  // Returns whether an operator calls a matrix product.
  bool HasProduct(const OperatorWork& work) const {
    return std::ranges::any_of(work.nodes, [&](uint32_t node) {
      const NodeId op = operators_.OperatorOf(rank_.nodes[node]);
      return op && IsMatrixOperator(BaseOperatorName(trace_.name(op)));
    });
  }

  // Returns the elements of an operator's first result; nullopt if unknown.
  std::optional<int64_t> ElementsOf(NodeId op) const {
    std::optional<int64_t> elements;
    ForEachTensor(trace_, trace_.outputs(op), [&](TensorId id) {
      if (!elements) elements = trace_.tensor(id).numel;
    });
    return elements;
  }

  // Returns whether an input of `reader` is a result of `writer`, and both results have as many
  // elements.
  bool Continues(NodeId reader, NodeId writer) const {
    const auto elements = ElementsOf(reader);
    if (!elements || elements != ElementsOf(writer)) return false;
    std::set<uint64_t> written;
    ForEachTensor(trace_, trace_.outputs(writer), [&](TensorId id) {
      if (trace_.tensor(id).storage != 0) written.insert(trace_.tensor(id).storage);
    });
    bool reads = false;
    ForEachTensor(trace_, trace_.inputs(reader), [&](TensorId id) {
      reads = reads || written.contains(trace_.tensor(id).storage);
    });
    return reads;
  }

  void Fuse(std::span<const OperatorWork> chain) {
    std::optional<Nanos> longest = Nanos{};
    for (const OperatorWork& work : chain) {
      std::optional<Nanos> total = Nanos{};
      for (const uint32_t node : work.nodes) {
        const auto time = edit_.node(node).duration;
        total = total && time ? std::optional(*total + *time) : std::nullopt;
        edit_.Remove(node);
      }
      longest = longest && total ? std::optional(std::max(*longest, *total)) : std::nullopt;
    }
    const uint32_t kept = chain.front().nodes.front();
    edit_.Keep(kept);
    edit_.node(kept).duration = longest;
    edit_.node(kept).name = edit_.NameOf(fmt::format("{}", fmt::join(names_, "+")));
  }

  // Counts what follows an operator with the first name.
  void CountFollower(std::span<const OperatorWork> works) {
    if (works.size() < 2 || !works[0].op || !works[1].op || HasProduct(works[1])) return;
    if (!IsNamed(works[0].op, names_[0]) || !Continues(works[1].op, works[0].op)) return;
    ++followers_[std::string(BaseOperatorName(trace_.name(works[1].op)))];
  }

  tl::unexpected<Error> NoChain() const {
    const auto most =
        std::ranges::max_element(followers_, {}, [](const auto& row) { return row.second; });
    return BadInput(fmt::format(
        "found no {} in this order, each with the result of the one before; {}",
        fmt::join(names_, ", "),
        most == followers_.end()
            ? fmt::format("no element-wise operator reads the result of '{}' next", names_[0])
            : fmt::format("nearest possible: --fuse {},{}", names_[0], most->first)));
  }

  const Trace& trace_;
  std::span<const std::string> names_;
  RunnableRank& rank_;
  RankOperators operators_;
  RankEdit edit_;
  std::map<std::string, uint64_t> followers_;
};

}  // namespace

Result<uint64_t> FuseOperators(const Trace& trace, std::span<const std::string> names,
                               RunnableRank& rank) {
  return Fuser(trace, names, rank).Run();
}

}  // namespace etude
