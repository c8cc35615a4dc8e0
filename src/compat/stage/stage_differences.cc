#include "src/compat/stage/stage_differences.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "src/compat/stage/formula.h"
#include "src/compat/stage/stage_graph.h"

namespace etude::stage {
namespace {

using enum Quantity;

bool HasRouting(const StageOptions& options) { return options.model == Model::kMoe; }

// Amounts by quantity.
class Amounts {
 public:
  void Add(Quantity quantity, int64_t amount) {
    int64_t& sum = sums_[static_cast<size_t>(quantity)];
    if (__builtin_add_overflow(sum, amount, &sum)) fits_ = false;
  }
  // STAGE's numbers are integral only if the degrees divide the dimensions.
  void Add(Quantity quantity, double amount) {
    constexpr double kMostExact = 9007199254740992;  // 2^53
    if (amount != std::trunc(amount)) is_whole_ = false;
    if (!(amount < kMostExact)) fits_ = false;
    if (is_whole_ && fits_) Add(quantity, static_cast<int64_t>(amount));
  }
  Status Check(std::string_view whose) const {
    if (!is_whole_) {
      return BadInput(
          "differences: found sizes of STAGE that are no whole numbers, expected degrees that "
          "divide "
          "the dimensions");
    }
    if (fits_) return {};
    return BadInput(fmt::format("differences: {} numbers are too large to be exact", whose));
  }
  int64_t operator[](Quantity quantity) const { return sums_[static_cast<size_t>(quantity)]; }

 private:
  std::array<int64_t, kQuantityCount> sums_{};
  bool fits_ = true;
  bool is_whole_ = true;
};

// ---- STAGE's job

// Returns the role of a tensor from its name: "mb0.transformer.1.mha.qkv@0" -> "mha.qkv".
std::string_view RoleOf(std::string_view id) {
  std::string_view role = id.substr(0, id.find('@'));
  const auto drop = [&](std::string_view prefix) {
    if (!role.starts_with(prefix)) return false;
    size_t at = prefix.size();
    while (at < role.size() && role[at] >= '0' && role[at] <= '9') ++at;
    if (at < role.size() && role[at] == '.') role.remove_prefix(at + 1);
    return true;
  };
  drop("mb");
  drop("transformer.");
  return role;
}

Quantity QuantityOf(const Tensor& tensor, const Pattern& pattern) {
  // Merged gradients and updated weights belong to no micro-batch.
  if (!tensor.id.starts_with("mb")) return kOptimizer;
  const std::string_view role = RoleOf(tensor.id);
  if (role.starts_with("in_emb.")) return kEmbedding;
  if (role.starts_with("out_emb.")) return kHeadProducts;
  if (role.starts_with("loss.")) return kLoss;
  if (role.starts_with("input_norm.") || role.starts_with("post_attn_norm.") || role == "moe.dx") {
    return kNorms;
  }
  if (pattern.op == Op::kCustom) return kAttention;
  // Products without summation are elementwise.
  if (pattern.op == Op::kEinsum && !pattern.y.partial.empty()) return kMatrices;
  return kElementwise;
}

Result<Quantity> QuantityOf(const Collective& collective) {
  struct Row {
    CollectiveType type;
    Symbol over;
    Quantity quantity;
  };
  using enum CollectiveType;
  constexpr Row kCollectives[] = {{kAllReduce, Symbol::kTp, kTensorAllReduce},
                                  {kAllGather, Symbol::kTp, kTensorAllGather},
                                  {kReduceScatter, Symbol::kTp, kTensorReduceScatter},
                                  {kAllReduce, Symbol::kCp, kContextAllReduce},
                                  {kAllGather, Symbol::kCp, kContextAllGather},
                                  {kReduceScatter, Symbol::kCp, kContextReduceScatter},
                                  {kAllReduce, Symbol::kDp, kReplicaAllReduce},
                                  {kAllGather, Symbol::kDp, kReplicaAllGather},
                                  {kReduceScatter, Symbol::kDp, kReplicaReduceScatter},
                                  {kAllToAll, Symbol::kEp, kExpertAllToAll},
                                  {kAllGather, Symbol::kEp, kExpertAllGather}};
  for (const Row& row : kCollectives) {
    if (row.type == collective.type && row.over == collective.over) return row.quantity;
  }
  return MakeError(ErrorCode::kInternal, fmt::format("differences: a collective of STAGE, {}",
                                                     etude::Name(collective.type)));
}

Result<Amounts> AmountsOfStage(const StageOptions& options) {
  ETUDE_ASSIGN_OR_RETURN(const TensorModel model, MakeTensorModel(options));
  ETUDE_ASSIGN_OR_RETURN(const std::vector<StageGraph> graphs, MakeStageGraphs(model));
  Amounts amounts;
  for (const StageGraph& graph : graphs) {
    for (const GraphNode& node : graph.nodes) {
      const Tensor& tensor = model.tensors[graph.tensors[node.tensor].tensor];
      const Pattern& pattern = model.patterns[tensor.pattern];
      switch (node.kind) {
        case GraphNode::Kind::kCompute:
          amounts.Add(QuantityOf(tensor, pattern), pattern.operations);
          break;
        case GraphNode::Kind::kCollectiveX1:
        case GraphNode::Kind::kCollectiveX2: {
          ETUDE_ASSIGN_OR_RETURN(const Quantity quantity, QuantityOf(node.collective));
          amounts.Add(quantity, node.size);
          break;
        }
        case GraphNode::Kind::kSend:
          amounts.Add(kMessages, int64_t{1});
          amounts.Add(kMessageBytes, node.size);
          break;
        case GraphNode::Kind::kRecv: break;
      }
    }
  }
  ETUDE_RETURN_IF_ERROR(amounts.Check("STAGE's"));
  return amounts;
}

// ---- our job

// Names of a layer's computations, without the suffixes of a product's passes.
constexpr std::string_view kPassEndings[] = {" input gradient", " weight gradient", " backward"};
struct WorkRow {
  std::string_view name;
  Quantity quantity;
};
constexpr WorkRow kLayerWorks[] = {
    {"qkv", kMatrices},
    {"projection", kMatrices},
    {"up", kMatrices},
    {"down", kMatrices},
    {"router", kMatrices},
    {"experts up", kMatrices},
    {"experts down", kMatrices},
    {"attention", kAttention},
    {"attention norm", kNorms},
    {"ffn norm", kNorms},
    {"rotary", kElementwise},
    {"attention residual", kElementwise},
    {"ffn residual", kElementwise},
    {"activation", kElementwise},
    {"experts activation", kElementwise},
    {"routing", kElementwise},
    {"dispatch", kElementwise},
    {"combine", kElementwise},
};
constexpr WorkRow kHeadWorks[] = {
    {"head", kHeadProducts}, {"final norm", kNorms},  {"loss", kLoss},
    {"loss maximum", kLoss}, {"loss softmax", kLoss},
};

// Returns the quantity of a computation such as "layer 3 qkv input gradient #0".
Result<Quantity> QuantityOfWork(std::string_view name) {
  const auto look = [&](std::string_view work, std::span<const WorkRow> rows) -> Result<Quantity> {
    work = work.substr(0, work.rfind(" #"));
    for (const std::string_view ending : kPassEndings) {
      if (work.ends_with(ending)) {
        work.remove_suffix(ending.size());
        break;
      }
    }
    for (const WorkRow& row : rows) {
      if (row.name == work) return row.quantity;
    }
    return MakeError(ErrorCode::kInternal, fmt::format("differences: a computation '{}'", name));
  };
  if (name == "optimizer") return kOptimizer;
  constexpr std::string_view kHeadUnit = "head ";
  constexpr std::string_view kLayerUnit = "layer ";
  if (name.starts_with("embedding ")) return kEmbedding;
  if (name.starts_with(kHeadUnit)) return look(name.substr(kHeadUnit.size()), kHeadWorks);
  if (!name.starts_with(kLayerUnit)) return look(name, {});
  return look(name.substr(name.find(' ', kLayerUnit.size()) + 1), kLayerWorks);
}

Result<Quantity> QuantityOf(CollectiveType type, ParallelGroup group) {
  const auto over = [&]() -> std::optional<Symbol> {
    switch (group) {
      case ParallelGroup::kTensor: return Symbol::kTp;
      case ParallelGroup::kContext: return Symbol::kCp;
      case ParallelGroup::kExpert: return Symbol::kEp;
      case ParallelGroup::kReplicas:
      case ParallelGroup::kExpertReplicas: return Symbol::kDp;
      case ParallelGroup::kEnds:
      case ParallelGroup::kNorm: return std::nullopt;
    }
    return std::nullopt;
  }();
  if (over) return QuantityOf(Collective{.type = type, .over = *over});
  return MakeError(ErrorCode::kInternal, "differences: a collective of stages");
}

Result<Amounts> AmountsOfOurs(const Counterpart& ours) {
  Amounts amounts;
  for (int64_t stage = 0; stage < ours.plan.pipeline.stages; ++stage) {
    for (const StepWork& work : StageProgram(ours.model, ours.plan, stage)) {
      if (work.collective != CollectiveType::kUnknown) {
        ETUDE_ASSIGN_OR_RETURN(const Quantity quantity,
                               QuantityOf(work.collective, static_cast<ParallelGroup>(work.group)));
        amounts.Add(quantity, work.bytes.count);
      } else if (work.communicates()) {
        if (!work.sends) continue;
        amounts.Add(kMessages, int64_t{1});
        amounts.Add(kMessageBytes, work.bytes.count);
      } else {
        ETUDE_ASSIGN_OR_RETURN(const Quantity quantity, QuantityOfWork(work.name));
        amounts.Add(quantity, work.flops);
      }
    }
  }
  ETUDE_RETURN_IF_ERROR(amounts.Check("our"));
  return amounts;
}

// ---- comparison

// Returns the job's parameters and the definitions derived from them; adds them to `values`.
Result<std::vector<NamedValue>> NamesOf(const StageOptions& options, const Counterpart& ours,
                                        FormulaNames& values) {
  struct Parameter {
    std::string_view name;
    int64_t value;
    std::string_view text;
  };
  std::vector<Parameter> parameters = {
      {"B", options.micro_batch, "sequences of a micro-batch, of all ranks"},
      {"M", options.batch / options.micro_batch, "micro-batches"},
      {"S", options.sequence, "tokens of a sequence"},
      {"D", options.dmodel, "hidden units"},
      {"F", options.dff, "units of the feed-forward part"},
      {"H", options.heads, "heads"},
      {"K", ours.model.kv_heads, "heads of keys and values"},
      {"V", options.vocabulary, "words"},
      {"L", options.layers, "layers"},
      {"d", options.dp, "--dp"},
      {"t", ours.plan.layer.tensor, HasRouting(options) ? "--tp" : "--tp times --ep"},
      {"c", options.cp, "--sp"},
      {"e", ours.plan.layer.expert, "ranks that share a layer's experts"},
      {"p", options.pp, "--pp"},
      {"w", ElementBytes(ours.model.weights).value_or(0), "bytes of a weight or activation"},
      {"g", ElementBytes(ours.model.gradients).value_or(0), "bytes of a weight's gradient"},
      {"m", StageOfHead(options) == options.pp - 1 ? 0 : 1,
       "1: head on another stage than the last"},
  };
  if (HasRouting(options)) {
    parameters.push_back({"E", options.experts, "experts of a layer"});
    parameters.push_back({"k", options.top_experts, "experts of a token"});
  }
  std::vector<NamedValue> names;
  for (const Parameter& one : parameters) {
    values.emplace(one.name, Fraction{.over = one.value});
    names.push_back(
        {{.name = one.name, .formula = "", .text = one.text}, std::to_string(one.value)});
  }
  for (const Definition& definition : DefinitionsOf(options)) {
    ETUDE_ASSIGN_OR_RETURN(const Fraction value, EvaluateFormula(definition.formula, values));
    values.emplace(definition.name, value);
    names.push_back({definition, Text(value)});
  }
  return names;
}

}  // namespace

int64_t Difference::rest() const {
  int64_t rest = ours - stage;
  for (const EvaluatedCorrection& one : corrections) rest -= one.amount;
  return rest;
}

Result<Counterpart> CounterpartOf(const StageOptions& options) {
  const bool routes = HasRouting(options);
  if (options.model == Model::kDebug) {
    return BadInput("differences: expected another model than 'debug', which is no transformer");
  }
  const auto divides = [](std::string_view what, int64_t size, std::string_view by,
                          int64_t count) -> Status {
    if (size % count == 0) return {};
    return BadInput(
        fmt::format("differences: {} {}: expected a multiple of {} {}", what, size, by, count));
  };
  const int64_t experts = routes ? options.ep : 1;
  ETUDE_RETURN_IF_ERROR(divides("--dmodel", options.dmodel, "--head", options.heads));
  ETUDE_RETURN_IF_ERROR(divides("--micro_batch", options.micro_batch,
                                routes ? "--dp times --ep" : "--dp", options.dp * experts));
  Counterpart ours;
  TransformerModel& model = ours.model;
  model.layers = options.layers;
  model.hidden = options.dmodel;
  model.heads = options.heads;
  model.kv_heads = options.model == Model::kGpt ? options.heads : options.kv_heads;
  model.head_size = options.dmodel / options.heads;
  model.ffn = options.dff;
  model.gated = options.model != Model::kGpt;
  model.vocabulary = options.vocabulary;
  model.sequence = options.sequence;
  if (routes) {
    model.experts =
        ExpertsModel{.experts = options.experts, .top_k = options.top_experts, .ffn = options.dff};
  }
  if (!options.mixed_precision) model.weights = DType::kFloat32;
  TransformerPlan& plan = ours.plan;
  plan.layer.tensor = routes ? options.tp : options.tp * options.ep;
  plan.layer.sequence_parallel = options.model != Model::kGpt || options.tpsp;
  plan.layer.context = options.cp;
  plan.layer.expert = experts;
  plan.layer.sequences = options.micro_batch / (options.dp * experts);
  plan.data = options.dp * experts;
  plan.pipeline.stages = options.pp;
  plan.pipeline.micro_batches = options.batch / options.micro_batch;
  plan.zero_stage = options.weight_sharded ? 3 : 0;
  const Fits fits = CheckTransformerPlan(model, plan);
  if (!fits) return MakeError(fits.error().code, "differences: " + fits.error().message);
  return ours;
}

Result<StageDifferences> FindStageDifferences(const StageOptions& options) {
  ETUDE_RETURN_IF_ERROR(CheckStageOptions(options));
  StageDifferences found;
  ETUDE_ASSIGN_OR_RETURN(found.counterpart, CounterpartOf(options));
  ETUDE_ASSIGN_OR_RETURN(const Amounts stage, AmountsOfStage(options));
  ETUDE_ASSIGN_OR_RETURN(const Amounts ours, AmountsOfOurs(found.counterpart));
  FormulaNames names;
  ETUDE_ASSIGN_OR_RETURN(found.names, NamesOf(options, found.counterpart, names));
  const std::vector<Correction> corrections = CorrectionsOf(options);
  for (const QuantityRow& row : QuantityRows()) {
    Difference difference{
        .quantity = row.quantity, .stage = stage[row.quantity], .ours = ours[row.quantity]};
    for (const Correction& correction : corrections) {
      if (correction.quantity != row.quantity) continue;
      ETUDE_ASSIGN_OR_RETURN(const Fraction value, EvaluateFormula(correction.formula, names));
      ETUDE_ASSIGN_OR_RETURN(const int64_t amount, WholeNumber(value));
      if (amount == 0) continue;
      difference.corrections.push_back({.correction = correction, .amount = amount});
    }
    if (difference.stage == 0 && difference.ours == 0 && difference.corrections.empty()) continue;
    found.quantities.push_back(std::move(difference));
  }
  return found;
}

}  // namespace etude::stage
