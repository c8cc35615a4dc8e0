#include "src/synth/text/text_workload.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/units.h"
#include "src/synth/job/work_builder.h"

namespace etude {
namespace {

struct CommWord {
  std::string_view word;
  CollectiveType type;
};
constexpr CommWord kCommWords[] = {
    {"ALLREDUCE", CollectiveType::kAllReduce},
    {"ALLTOALL", CollectiveType::kAllToAll},
    {"ALLGATHER", CollectiveType::kAllGather},
    {"REDUCESCATTER", CollectiveType::kReduceScatter},
};
constexpr std::string_view kNoComm = "NONE";

// Phases of a layer that communicate.
struct CommPhases {
  bool forward = false;
  bool input_grad = false;
  bool weight_grad = false;
};

CommPhases PhasesOf(TextParallelism parallelism) {
  switch (parallelism) {
    case TextParallelism::kMicro:
    case TextParallelism::kData: return {.weight_grad = true};
    case TextParallelism::kModel: return {.forward = true, .input_grad = true};
    case TextParallelism::kDataModel:
    case TextParallelism::kModelData:
    case TextParallelism::kDlrm: return {.forward = true, .input_grad = true, .weight_grad = true};
  }
  return {};
}

class WorkloadMaker {
 public:
  WorkloadMaker(const TextModel& model, const TextWorkloadOptions& options)
      : model_(model), options_(options), phases_(PhasesOf(model.parallelism)) {}

  Result<TextWorkload> Run() {
    ETUDE_RETURN_IF_ERROR(Check());
    work_.trace().info().world_size = options_.ranks;
    updated_.resize(model_.layers.size());
    for (pass_ = 0; pass_ < options_.passes; ++pass_) AddPass();
    TextWorkload workload{.trace = {}, .ignored = ignored_};
    ETUDE_ASSIGN_OR_RETURN(workload.trace, work_.Finish());
    return workload;
  }

 private:
  using Ids = std::vector<NodeId>;

  Status CheckPhase(size_t i, const TextPhase& phase) const {
    const std::string layer = fmt::format("layer {} '{}'", i + 1, model_.layers[i].name);
    if (phase.time < 0 || phase.size < 0) {
      return BadInput(layer + ": found a negative time or size");
    }
    if (phase.time > INT64_MAX / kNanosPerMicro) return BadInput(layer + ": the time is too long");
    if (phase.comm == kNoComm || TypeOf(phase)) return {};
    return BadInput(
        fmt::format("{}: found the communication '{}', expected NONE, ALLREDUCE, ALLTOALL, "
                    "ALLGATHER or REDUCESCATTER",
                    layer, phase.comm));
  }

  Status Check() const {
    if (model_.layer_count != static_cast<int64_t>(model_.layers.size())) {
      return BadInput(fmt::format("found {} layers, expected {} as the second line says",
                                  model_.layers.size(), model_.layer_count));
    }
    const bool is_dlrm = model_.parallelism == TextParallelism::kDlrm;
    if (is_dlrm && (model_.last_bottom < 0 || model_.last_bottom >= model_.layer_count)) {
      return BadInput(fmt::format("found {} as last layer of the bottom, expected one of {} layers",
                                  model_.last_bottom, model_.layer_count));
    }
    for (size_t i = 0; i < model_.layers.size(); ++i) {
      const TextLayer& layer = model_.layers[i];
      for (const TextPhase* phase : {&layer.forward, &layer.input_grad, &layer.weight_grad}) {
        ETUDE_RETURN_IF_ERROR(CheckPhase(i, *phase));
      }
    }
    return {};
  }

  static std::optional<CollectiveType> TypeOf(const TextPhase& phase) {
    for (const CommWord& row : kCommWords) {
      if (row.word == phase.comm) return row.type;
    }
    return std::nullopt;
  }

  // Returns the union of two sets of nodes.
  static Ids Both(Ids a, const Ids& b) {
    for (const NodeId node : b) {
      if (std::ranges::find(a, node) == a.end()) a.push_back(node);
    }
    return a;
  }

  // Returns the nodes on which dependents of the phase depend: its own node, or `deps` if it has
  // none.
  Ids Compute(const TextLayer& layer, std::string_view phase, const TextPhase& of, Ids deps) {
    if (of.time == 0) return deps;
    return {work_.Add(NodeKind::kCompute, fmt::format("{} {}", layer.name, phase), deps,
                      Nanos{of.time * kNanosPerMicro})};
  }
  Ids Communicate(const TextLayer& layer, std::string_view phase, const TextPhase& of,
                  bool has_place, Ids deps) {
    const auto type = TypeOf(of);
    if (!type || of.size == 0) return deps;
    if (!has_place) {
      ++ignored_;
      return deps;
    }
    const NodeId node =
        work_.Add(NodeKind::kCollective, fmt::format("{} {} {}", layer.name, phase, Name(*type)),
                  deps, std::nullopt);
    work_.trace().SetComm(node, {.type = *type, .bytes = Bytes{of.size}});
    return {node};
  }

  void AddPass() {
    work_.BeginPart(ProgramPart{.step = pass_, .phase = Phase::kForward});
    if (model_.parallelism == TextParallelism::kMicro) return AddMicro();
    const bool is_dlrm = model_.parallelism == TextParallelism::kDlrm;
    const auto last_bottom = static_cast<size_t>(model_.last_bottom);
    Ids embeddings;
    Ids output;
    for (size_t i = 0; i < model_.layers.size(); ++i) {
      const TextLayer& layer = model_.layers[i];
      Ids deps = Both(output, updated_[i]);
      // The top needs the embeddings, which the first layer exchanges meanwhile.
      if (is_dlrm && i == last_bottom + 1) deps = Both(deps, embeddings);
      const Ids computed = Compute(layer, "forward", layer.forward, deps);
      const Ids sent = Communicate(layer, "forward", layer.forward, phases_.forward, computed);
      output = is_dlrm ? computed : sent;
      if (is_dlrm && i == 0) embeddings = sent;
      // An exchange without dependents still belongs to the pass.
      if (is_dlrm && i != 0 && sent != computed) output = sent;
    }
    if (is_dlrm && last_bottom + 1 == model_.layers.size()) output = Both(output, embeddings);
    AddBackward(output);
  }

  void AddMicro() {
    work_.BeginPart(ProgramPart{.step = pass_, .phase = Phase::kBackward});
    for (const TextLayer& layer : model_.layers) {
      last_ = Communicate(layer, "weight gradient", layer.weight_grad, true, last_);
    }
  }

  void AddBackward(Ids gradient) {
    work_.BeginPart(ProgramPart{.step = pass_, .phase = Phase::kBackward});
    const bool is_dlrm = model_.parallelism == TextParallelism::kDlrm;
    const bool is_data = model_.parallelism == TextParallelism::kData || is_dlrm;
    const auto last_bottom = static_cast<size_t>(model_.last_bottom);
    Ids embeddings;  // exchanged gradients of the embeddings
    bool exchanged = false;
    for (size_t i = model_.layers.size(); i-- > 0;) {
      const TextLayer& layer = model_.layers[i];
      if (is_dlrm && i == 0 && exchanged) gradient = Both(gradient, embeddings);
      Ids weights;
      // Weights come first if nothing waits for the input gradients to be sent, otherwise inputs.
      if (is_data) {
        weights = Compute(layer, "weight gradient", layer.weight_grad, gradient);
        if (i != 0) gradient = Compute(layer, "input gradient", layer.input_grad, weights);
        if (is_dlrm && i != 0) {
          gradient = Communicate(layer, "input gradient", layer.input_grad, true, gradient);
        }
      } else {
        const Ids computed = Compute(layer, "input gradient", layer.input_grad, gradient);
        const Ids sent = Communicate(layer, "input gradient", layer.input_grad,
                                     phases_.input_grad && i != 0, computed);
        weights = Compute(layer, "weight gradient", layer.weight_grad, computed);
        gradient = Both(sent, weights);
      }
      if (!is_dlrm && is_data && i != 0) {
        Communicate(layer, "input gradient", layer.input_grad, false, gradient);
      }
      updated_[i] =
          Communicate(layer, "weight gradient", layer.weight_grad, phases_.weight_grad, weights);
      if (is_dlrm && (i == last_bottom + 1 || (i == 0 && !exchanged))) {
        const TextLayer& first = model_.layers.front();
        embeddings = Communicate(first, "input gradient", first.input_grad, true, gradient);
        exchanged = true;
      }
    }
  }

  const TextModel& model_;
  const TextWorkloadOptions& options_;
  const CommPhases phases_;
  WorkBuilder work_;
  int64_t pass_ = 0;
  std::vector<Ids> updated_;  // by layer: weights of the last pass
  Ids last_;                  // of kMicro
  uint64_t ignored_ = 0;
};

}  // namespace

Result<TextWorkload> MakeTextWorkload(const TextModel& model, const TextWorkloadOptions& options) {
  return WorkloadMaker(model, options).Run();
}

}  // namespace etude
