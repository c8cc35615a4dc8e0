#include "src/synth/transformer/transformer_layer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/ceil_div.h"
#include "src/synth/layer_works.h"
#include "src/synth/transformer/expert_routing.h"
#include "src/synth/transformer/transformer_attention.h"

namespace etude {
namespace {

// Operations per element; functions such as exp and tanh count as one.
constexpr int64_t kRoutingFlops = 6;          // scale, maximum, subtract, exp, sum, divide
constexpr int64_t kRoutingBackwardFlops = 5;  // multiply, sum, subtract, multiply, scale
constexpr int64_t kGeluFlops = 9;
constexpr int64_t kGeluBackwardFlops = 18;
constexpr int64_t kSwigluFlops = 5;  // per output value
constexpr int64_t kSwigluBackwardFlops = 11;
constexpr int64_t kAdamFlops = 14;

constexpr int64_t kIndexBytes = 8;
constexpr int64_t kSingleBytes = 4;  // routing and the loss are in single precision

class LayerMaker {
 public:
  using In = LayerWorks::In;

  LayerMaker(const TransformerModel& model, const LayerPlan& plan, int64_t expert_rank = 0)
      : model_(model),
        plan_(plan),
        expert_rank_(expert_rank),
        forward_(model, plan),
        backward_(model, plan) {}

  LayerPasses Layer(int64_t layer) {
    const bool has_experts = HasExperts(model_, layer);
    if (has_experts) CountRows(layer);
    TransformerAttention attention(model_, plan_, forward_, backward_);
    const In attended = attention.Forward();
    has_experts ? ExpertsForward(attended) : DenseForward(attended);
    if (plan_.inference) return Finish();
    In gradient;
    if (plan_.recompute == Recompute::kFull) {
      gradient = backward_.Again(forward_, 0, forward_.works().size(), {});
      // From there on, only the layer's input is kept.
      for (size_t i = 1; i < forward_.works().size(); ++i) {
        backward_.works()[i].kept = std::exchange(forward_.works()[i].kept, Bytes{});
      }
      forward_.works().front().kept = Bytes{SharedSize() * forward_.element()};
    }
    gradient = has_experts ? ExpertsBackward(gradient) : DenseBackward(gradient);
    attention.Backward(gradient);
    return Finish();
  }

  LayerPasses Embedding() {
    const int64_t size = forward_.tokens() * model_.hidden;
    const int64_t element = forward_.element();
    const int64_t gradient = forward_.gradient();
    const int64_t indices = forward_.tokens() * kIndexBytes;
    In out = forward_.Add({.name = "embedding lookup",
                           .read = Bytes{indices + size * element},
                           .written = Bytes{size * element},
                           .kept = Bytes{indices}});
    out = forward_.SumTokens("embedding", out);
    if (model_.positions != 0) {
      forward_.Elementwise("positions", out, SharedSize(), 1,
                           {.read = 2 * SharedSize(), .written = SharedSize()});
    }
    if (plan_.inference) return Finish();
    if (model_.positions != 0) {
      backward_.VectorGradient("positions", {}, SharedSize(),
                               model_.sequence / plan_.context * model_.hidden);
    }
    const In all = backward_.GatherTokens("embedding gradient", {});
    // The rows selected by tokens are read, added to and written.
    backward_.Add({.name = "embedding weight gradient",
                   .inputs = all,
                   .gives_gradients = {"embedding"},
                   .flops = size,
                   .read = Bytes{indices + size * (element + gradient)},
                   .written = Bytes{size * gradient}});
    for (LayerWork& work : backward_.works()) work.for_weights = true;
    return Finish();
  }

  LayerPasses Head() {
    if (plan_.inference) return ChoiceOfTokens();
    const int64_t vocabulary = CeilDiv(model_.vocabulary, plan_.tensor);
    const MatrixProduct head{.rows = forward_.tokens(), .in = model_.hidden, .out = vocabulary};
    const int64_t tokens = forward_.tokens();
    const int64_t element = forward_.element();
    const int64_t logits = tokens * vocabulary;
    In out = forward_.GatherTokens("head", forward_.Norm("final norm", {}));
    out = forward_.Multiply("head", out, head, SharedSize());
    out = forward_.Elementwise("loss maximum", out, logits, 1, {.read = logits});
    out = SumLoss("loss maximum", out);
    out = forward_.Add({.name = "loss softmax",
                        .inputs = out,
                        .flops = 3 * logits,  // subtract, exp, sum
                        .read = Bytes{logits * element},
                        .written = Bytes{logits * kSingleBytes},
                        .kept = Bytes{logits * kSingleBytes}});
    out = SumLoss("loss sum", SumLoss("loss target", out));
    forward_.Add({.name = "loss",
                  .inputs = out,
                  .flops = 2 * tokens,
                  .read = Bytes{2 * tokens * kSingleBytes},
                  .written = Bytes{tokens * kSingleBytes}});
    In gradient = backward_.Add({.name = "loss backward",
                                 .flops = 2 * logits,  // divide, scale
                                 .read = Bytes{logits * kSingleBytes},
                                 .written = Bytes{logits * element}});
    const In before = gradient;
    gradient = backward_.InputGradient("head", before, head);
    backward_.WeightGradient("head", before, head, SharedSize() * element);
    gradient = backward_.SumTokens("head gradient", gradient);
    backward_.NormBackward("final norm", gradient, 0);
    return Finish();
  }

 private:
  LayerPasses Finish() {
    if (plan_.inference) {
      for (LayerWork& work : forward_.works()) work.kept = Bytes{};
    }
    return {.forward = std::move(forward_.works()), .backward = std::move(backward_.works())};
  }

  // For inference: the last token of each sequence, the logits of its successor and the max.
  LayerPasses ChoiceOfTokens() {
    const int64_t element = forward_.element();
    const int64_t rows = plan_.sequences;
    const int64_t last = std::min(rows, forward_.shared_tokens()) * model_.hidden;
    const int64_t size = rows * model_.hidden;
    In out;
    const bool shared = forward_.shares_tokens() || plan_.context > 1;
    if (shared || forward_.tokens() != rows) {
      out = forward_.Elementwise("last tokens", out, 0, 0, {.read = last, .written = last});
    }
    if (forward_.shares_tokens()) {
      out = forward_.Collective("last tokens all_gather", out, CollectiveType::kAllGather,
                                LayerAxis::kTensor, last * element);
    }
    if (plan_.context > 1) {
      out = forward_.Collective("last tokens context all_gather", out, CollectiveType::kAllGather,
                                LayerAxis::kContext, size * element);
    }
    const MatrixProduct head{
        .rows = rows, .in = model_.hidden, .out = CeilDiv(model_.vocabulary, plan_.tensor)};
    out = forward_.Norm("final norm", out, {.tokens = rows});
    out = forward_.Multiply("head", out, head, 0);
    if (plan_.tensor > 1) {
      out = forward_.Collective("logits all_gather", out, CollectiveType::kAllGather,
                                LayerAxis::kTensor, head.outputs() * element);
    }
    const int64_t logits = plan_.tensor * head.outputs();
    forward_.Add({.name = "choice",
                  .inputs = out,
                  .flops = logits,
                  .read = Bytes{logits * element},
                  .written = Bytes{rows * kIndexBytes}});
    return Finish();
  }

  int64_t SharedSize() const { return forward_.SharedSize(); }
  int64_t SharedBytes() const { return forward_.SharedBytes(); }

  // One value per token.
  In SumLoss(const std::string& name, In in) {
    if (plan_.tensor == 1) return in;
    return forward_.Collective(name + " all_reduce", std::move(in), CollectiveType::kAllReduce,
                               LayerAxis::kTensor, forward_.tokens() * kSingleBytes);
  }

  // ---- feed-forward

  int64_t UpFactor() const { return model_.gated ? 2 : 1; }
  MatrixProduct Up(int64_t ffn) const {
    return {.rows = forward_.tokens(),
            .in = model_.hidden,
            .out = UpFactor() * (ffn / plan_.tensor),
            .bias = model_.biases};
  }
  MatrixProduct Down(int64_t ffn) const {
    return {.rows = forward_.tokens(), .in = ffn / plan_.tensor, .out = model_.hidden};
  }
  // Adds the activation with `units` outputs; nothing if there are none.
  In Activate(const std::string& name, In in, int64_t units) {
    if (units == 0) return in;
    return forward_.Elementwise(
        name, std::move(in), units, model_.gated ? kSwigluFlops : kGeluFlops,
        {.read = UpFactor() * units, .written = units, .kept = UpFactor() * units});
  }
  In ActivateBackward(const std::string& name, In in, int64_t units) {
    if (units == 0) return in;
    return backward_.Elementwise(name, std::move(in), units,
                                 model_.gated ? kSwigluBackwardFlops : kGeluBackwardFlops,
                                 {.read = (UpFactor() + 1) * units, .written = UpFactor() * units});
  }

  // Adds the branch that every token goes through; `of` is the prefix of the names.
  In BranchForward(const std::string& of, In in, int64_t ffn) {
    In out = forward_.GatherTokens(of + "up", std::move(in));
    out = forward_.Multiply(of + "up", out, Up(ffn), SharedSize());
    out = Activate(of + "activation", out, Down(ffn).inputs());
    out = forward_.Multiply(of + "down", out, Down(ffn), Down(ffn).inputs());
    return forward_.SumTokens(of + "down", out);
  }
  In BranchBackward(const std::string& of, const In& in, int64_t ffn) {
    const In all = backward_.GatherTokens(of + "down gradient", in);
    In gradient = backward_.InputGradient(of + "down", all, Down(ffn));
    backward_.WeightGradient(of + "down", all, Down(ffn), 0);
    gradient = ActivateBackward(of + "activation backward", gradient, Down(ffn).inputs());
    const In before = gradient;
    gradient = backward_.InputGradient(of + "up", before, Up(ffn));
    backward_.WeightGradient(of + "up", before, Up(ffn), SharedBytes());
    return backward_.SumTokens(of + "up gradient", gradient);
  }

  void DenseForward(const In& in) {
    forward_.Residual("ffn residual", BranchForward("", forward_.Norm("ffn norm", in), model_.ffn),
                      1);
  }
  In DenseBackward(const In& in) {
    backward_.BiasGradient("down bias", in);
    return backward_.NormBackward("ffn norm", BranchBackward("", in, model_.ffn), 1);
  }

  // ---- experts

  // Tokens of all ranks prefer the same experts.
  void CountRows(int64_t layer) {
    const ExpertsModel& experts = *model_.experts;
    used_experts_ = LocalExperts();
    if (plan_.inference && !IsUneven(experts)) {
      // As many as are needed: few rows go to few experts.
      const auto chosen = static_cast<double>(forward_.shared_tokens() * experts.top_k);
      sent_rows_ = static_cast<int64_t>(std::ceil(experts.capacity_factor.value_or(1) * chosen));
      received_rows_ = sent_rows_;
      exchanged_rows_ = sent_rows_;
      used_experts_ = std::min(used_experts_, AllRows());
      return;
    }
    const std::vector<int64_t> rows = RowsOfExperts(experts, layer, forward_.shared_tokens());
    int64_t largest = 0;
    for (int64_t rank = 0; rank < plan_.expert; ++rank) {
      const auto first = rows.begin() + rank * LocalExperts();
      const auto last = first + LocalExperts();
      const int64_t own = std::accumulate(first, last, int64_t{0});
      sent_rows_ += own;
      largest = std::max(largest, own);
      if (rank != expert_rank_) continue;
      received_rows_ = plan_.expert * own;
      experts_alike_ = std::all_of(first, last, [&](int64_t other) { return other == *first; });
      if (plan_.inference) used_experts_ -= std::count(first, last, 0);
    }
    exchanged_rows_ = plan_.expert * largest;
  }
  int64_t BytesOf(int64_t rows) const { return rows * model_.hidden * forward_.element(); }
  int64_t SentBytes() const { return BytesOf(sent_rows_); }
  int64_t ReceivedBytes() const { return BytesOf(received_rows_); }
  // Total of the tensor-parallel ranks, which share each expert. If they do not share tokens, each
  // sends all rows to the ranks with its share of the experts.
  int64_t AllRows() const {
    return forward_.shares_tokens() ? plan_.tensor * received_rows_ : received_rows_;
  }
  MatrixProduct Router() const {
    return {.rows = forward_.shared_tokens(), .in = model_.hidden, .out = model_.experts->experts};
  }
  int64_t LocalExperts() const { return model_.experts->experts / plan_.expert; }
  MatrixProduct ExpertsUp() const {
    return {.rows = AllRows(),
            .in = model_.hidden,
            .out = UpFactor() * (model_.experts->ffn / plan_.tensor),
            .count = used_experts_,
            .alike = experts_alike_};
  }
  MatrixProduct ExpertsDown() const {
    return {.rows = AllRows(),
            .in = model_.experts->ffn / plan_.tensor,
            .out = model_.hidden,
            .count = used_experts_,
            .alike = experts_alike_};
  }
  // One size for all ranks: that of the rank that sends, or receives, most.
  In Exchange(LayerWorks& works, const std::string& name, In in) const {
    if (plan_.expert == 1) return in;
    return works.Collective(name + " all_to_all", std::move(in), CollectiveType::kAllToAll,
                            LayerAxis::kExpert, BytesOf(exchanged_rows_));
  }
  In GatherRows(LayerWorks& works, const std::string& name, In in) const {
    if (!forward_.shares_tokens() || received_rows_ == 0) return in;
    return works.Collective(name + " all_gather", std::move(in), CollectiveType::kAllGather,
                            LayerAxis::kTensor, ReceivedBytes());
  }
  In SumRows(LayerWorks& works, const std::string& name, In in) const {
    if (!forward_.shares_tokens() || received_rows_ == 0) return in;
    return works.Collective(name + " reduce_scatter", std::move(in), CollectiveType::kReduceScatter,
                            LayerAxis::kTensor, BytesOf(AllRows()));
  }

  void ExpertsForward(const In& in) {
    const ExpertsModel& experts = *model_.experts;
    const int64_t tokens = forward_.shared_tokens();
    const int64_t element = forward_.element();
    const int64_t choices = tokens * experts.top_k * kIndexBytes;
    const In normal = forward_.Norm("ffn norm", in);
    In out = forward_.Multiply("router", normal, Router(), SharedSize());
    out = forward_.Add({.name = "routing",
                        .inputs = out,
                        .flops = kRoutingFlops * Router().outputs(),
                        .read = Bytes{Router().outputs() * element},
                        .written = Bytes{Router().outputs() * kSingleBytes + choices},
                        .kept = Bytes{Router().outputs() * kSingleBytes + choices}});
    out = forward_.Add({.name = "dispatch",
                        .inputs = out,
                        .read = Bytes{SentBytes() + choices},
                        .written = Bytes{SentBytes()}});
    out = GatherRows(forward_, "dispatch", Exchange(forward_, "dispatch", out));
    if (received_rows_ > 0) {
      out = forward_.Multiply("experts up", out, ExpertsUp(), received_rows_ * model_.hidden);
      out = Activate("experts activation", out, ExpertsDown().inputs());
      out = forward_.Multiply("experts down", out, ExpertsDown(), ExpertsDown().inputs());
    }
    out = Exchange(forward_, "combine", SumRows(forward_, "combine", out));
    // The rows, weighted and summed.
    out = forward_.Add({.name = "combine",
                        .inputs = out,
                        .flops = 2 * sent_rows_ * model_.hidden,
                        .read = Bytes{SentBytes() + choices},
                        .written = Bytes{SharedBytes()},
                        .kept = Bytes{SentBytes()}});
    // Each rank has the results of its share of the experts.
    if (!forward_.shares_tokens()) out = forward_.SumTokens("combine", out);
    if (experts.shared_ffn != 0) {
      out.push_back(BranchForward("shared ", normal, experts.shared_ffn).front());
    }
    const auto branches = static_cast<int64_t>(out.size());
    forward_.Residual("ffn residual", std::move(out), branches);
  }

  In ExpertsBackward(const In& in) {
    const ExpertsModel& experts = *model_.experts;
    const int64_t tokens = forward_.shared_tokens();
    const int64_t choices = tokens * experts.top_k * kIndexBytes;
    // Gradients of the rows, and of their weights.
    const In combined = backward_.Add({.name = "combine backward",
                                       .inputs = in,
                                       .flops = 3 * sent_rows_ * model_.hidden,
                                       .read = Bytes{SharedBytes() + SentBytes() + choices},
                                       .written = Bytes{SentBytes() + sent_rows_ * kSingleBytes}});
    In gradient = Exchange(backward_, "combine gradient", combined);
    const In rows = GatherRows(backward_, "combine gradient", gradient);
    // Without rows the gradients of the weights are zeros, which are written.
    const bool any = received_rows_ > 0;
    if (any) gradient = backward_.InputGradient("experts down", rows, ExpertsDown());
    backward_.WeightGradient("experts down", rows, ExpertsDown(), 0);
    if (any) {
      gradient = ActivateBackward("experts activation backward", gradient, ExpertsDown().inputs());
    }
    const In before = gradient;
    if (any) gradient = backward_.InputGradient("experts up", before, ExpertsUp());
    backward_.WeightGradient("experts up", before, ExpertsUp(), ReceivedBytes());
    gradient = SumRows(backward_, "dispatch gradient", gradient);
    gradient = Exchange(backward_, "dispatch gradient", gradient);
    In out = backward_.Add({.name = "dispatch backward",
                            .inputs = gradient,
                            .flops = sent_rows_ * model_.hidden,
                            .read = Bytes{SentBytes() + choices},
                            .written = Bytes{SharedBytes()}});
    const In routed =
        backward_.Add({.name = "routing backward",
                       .inputs = combined,
                       .flops = kRoutingBackwardFlops * Router().outputs(),
                       .read = Bytes{Router().outputs() * kSingleBytes + sent_rows_ * kSingleBytes},
                       .written = Bytes{Router().outputs() * backward_.element()}});
    out.push_back(backward_.InputGradient("router", routed, Router()).front());
    backward_.WeightGradient("router", routed, Router(), 0);
    if (experts.shared_ffn != 0) {
      out.push_back(BranchBackward("shared ", in, experts.shared_ffn).front());
    }
    // In addition to the first branch's: the gradients of the others and of the residual.
    const auto addends = static_cast<int64_t>(out.size());
    return backward_.NormBackward("ffn norm", std::move(out), addends);
  }

  const TransformerModel& model_;
  const LayerPlan& plan_;
  const int64_t expert_rank_;
  // Tokens for experts: sent by the rank, received by it, and received by the busiest rank.
  int64_t sent_rows_ = 0;
  int64_t received_rows_ = 0;
  int64_t exchanged_rows_ = 0;
  int64_t used_experts_ = 0;   // the rank's experts whose weights are used
  bool experts_alike_ = true;  // they receive equally many rows
  LayerWorks forward_;
  LayerWorks backward_;
};

Fits Splits(std::vector<std::string> keys, std::string_view what, int64_t size,
            std::string_view ways, int64_t count) {
  if (size % count == 0) return {};
  return MakeMisfit(std::move(keys), fmt::format("{}: found {}, expected a multiple of the {} {}",
                                                 what, size, count, ways));
}

Fits CheckContext(const TransformerModel& model, const LayerPlan& plan) {
  if (plan.context == 1) return {};
  if (plan.context_kind == ContextKind::kAllToAll) {
    ETUDE_RETURN_IF_MISFIT(Splits({"plan.cp", "model.sequence"}, "sequence",
                                  PassTokens(model, plan), "context-parallel ranks", plan.context));
    constexpr std::string_view kRanks =
        "tensor- times context-parallel ranks, which share heads by all-to-all";
    ETUDE_RETURN_IF_MISFIT(Splits({"plan.cp", "plan.tp", "model.heads"}, "heads", model.heads,
                                  kRanks, plan.tensor * plan.context));
    return Splits({"plan.cp", "plan.tp", "model.kv_heads"}, "kv_heads", model.kv_heads, kRanks,
                  plan.tensor * plan.context);
  }
  if (plan.context_kind == ContextKind::kRing && plan.attention == AttentionKind::kUnfused) {
    return MakeMisfit({"plan.attention", "plan.context"},
                      "ring: found unfused attention, expected fused attention");
  }
  // Each rank has an early and a late piece.
  return Splits({"plan.cp", "model.sequence"}, "sequence", PassTokens(model, plan),
                "pieces of the context-parallel ranks, two each", 2 * plan.context);
}

Fits CheckInference(const InferencePass& pass, int64_t context) {
  constexpr int64_t kMost = int64_t{1} << 24;
  if (pass.tokens < 1 || pass.tokens > kMost) {
    return MakeMisfit(
        {"model.sequence"},
        fmt::format("tokens of a sequence: found {}, expected 1 to {}", pass.tokens, kMost));
  }
  if (pass.cached < 0 || pass.cached > kMost) {
    return MakeMisfit(
        {"plan.cached"},
        fmt::format("tokens in the cache: found {}, expected 0 to {}", pass.cached, kMost));
  }
  if (pass.cached > 0 && context > 1) {
    return MakeMisfit(
        {"plan.cp", "plan.cached"},
        fmt::format("context-parallel ranks: found {} and cached tokens, expected no cached tokens",
                    context));
  }
  if (!ElementBytes(pass.cache)) {
    return MakeMisfit(
        {"plan.cache_type"},
        fmt::format("type of the cache: found '{}', expected an element type of known "
                    "size",
                    TypeText(pass.cache)));
  }
  return {};
}

}  // namespace

Fits CheckLayerPlan(const TransformerModel& model, const LayerPlan& plan) {
  constexpr int64_t kMost = int64_t{1} << 24;
  for (const auto& [key, name, value] :
       {std::tuple("plan.tp", "tensor-parallel ranks", plan.tensor),
        std::tuple("plan.cp", "context-parallel ranks", plan.context),
        std::tuple("plan.ep", "expert-parallel ranks", plan.expert),
        std::tuple("plan.sequences", "sequences of a micro-batch", plan.sequences)}) {
    if (value < 1 || value > kMost) {
      return MakeMisfit({key}, fmt::format("{}: found {}, expected 1 to {}", name, value, kMost));
    }
  }
  ETUDE_RETURN_IF_MISFIT(Splits({"plan.tp", "model.heads"}, "heads", model.heads,
                                "tensor-parallel ranks", plan.tensor));
  ETUDE_RETURN_IF_MISFIT(Splits({"plan.tp", "model.kv_heads", "model.heads"}, "kv_heads",
                                model.kv_heads, "tensor-parallel ranks", plan.tensor));
  ETUDE_RETURN_IF_MISFIT(
      Splits({"plan.tp", "model.ffn"}, "ffn", model.ffn, "tensor-parallel ranks", plan.tensor));
  if (plan.inference) ETUDE_RETURN_IF_MISFIT(CheckInference(*plan.inference, plan.context));
  ETUDE_RETURN_IF_MISFIT(CheckContext(model, plan));
  if (plan.tensor > 1 && plan.sequence_parallel) {
    ETUDE_RETURN_IF_MISFIT(Splits({"plan.tp", "plan.cp", "plan.sequences", "model.sequence"},
                                  "tokens of a micro-batch on a rank",
                                  plan.sequences * (PassTokens(model, plan) / plan.context),
                                  "tensor-parallel ranks", plan.tensor));
  }
  double widest = static_cast<double>(std::max(model.ffn * 2, model.vocabulary));
  if (model.experts) {
    const ExpertsModel& experts = *model.experts;
    if (plan.tensor > 1 && !plan.sequence_parallel && !plan.inference) {
      return MakeMisfit({"plan.sequence_parallel", "plan.tp"},
                        "experts: found tensor-parallel ranks without sequence parallelism, "
                        "expected sequence parallelism, so that each token is sent once");
    }
    ETUDE_RETURN_IF_MISFIT(Splits({"plan.ep", "experts.experts"}, "experts", experts.experts,
                                  "expert-parallel ranks", plan.expert));
    ETUDE_RETURN_IF_MISFIT(Splits({"plan.tp", "experts.ffn"}, "ffn of experts", experts.ffn,
                                  "tensor-parallel ranks", plan.tensor));
    ETUDE_RETURN_IF_MISFIT(Splits({"plan.tp", "experts.shared_ffn"}, "shared_ffn",
                                  experts.shared_ffn, "tensor-parallel ranks", plan.tensor));
    widest = std::max(
        {widest, 2.0 * static_cast<double>(experts.shared_ffn),
         static_cast<double>(experts.experts) * (4.0 + 4.0 * static_cast<double>(experts.ffn))});
  } else if (plan.expert != 1) {
    return MakeMisfit({"plan.ep"},
                      fmt::format("found {} expert-parallel ranks and no experts", plan.expert));
  }
  const double tokens =
      static_cast<double>(plan.sequences) * static_cast<double>(PassTokens(model, plan));
  const double attention = static_cast<double>(model.heads) *
                           static_cast<double>(std::max(model.head_size, model.value_size()));
  if (model.latent) {
    // Products with the narrow vectors, against those with the hidden units.
    const LatentAttention& latent = *model.latent;
    widest += static_cast<double>(latent.query_rank + latent.kv_rank + latent.rope_size) *
              (1 + 2 * attention / static_cast<double>(model.hidden));
  }
  const double flops = tokens * (4 * static_cast<double>(model.hidden) * (widest + 4 * attention) +
                                 32 * static_cast<double>(SeenTokens(model, plan)) * attention);
  if (flops > std::ldexp(1, 60)) {
    return MakeMisfit({"plan.sequences", "model"},
                      fmt::format("found work of {:.1e} operations in a layer and micro-batch, "
                                  "expected fewer than {:.1e}",
                                  flops, std::ldexp(1, 60)));
  }
  return {};
}

int64_t PassTokens(const TransformerModel& model, const LayerPlan& plan) {
  return plan.inference ? plan.inference->tokens : model.sequence;
}

int64_t SeenTokens(const TransformerModel& model, const LayerPlan& plan) {
  return PassTokens(model, plan) + (plan.inference ? plan.inference->cached : 0);
}

int64_t StateElements(const TransformerModel& model, const LayerPlan& plan) {
  return LayerWorks(model, plan).shared_tokens() * model.hidden;
}

Bytes CacheBytesPerToken(const TransformerModel& model, DType cache) {
  return Bytes{2 * model.layers * model.kv_heads * model.head_size *
               ElementBytes(cache).value_or(0)};
}

LayerPasses TransformerLayer(const TransformerModel& model, const LayerPlan& plan, int64_t layer,
                             int64_t expert_rank) {
  return LayerMaker(model, plan, expert_rank).Layer(layer);
}

LayerPasses TransformerEmbedding(const TransformerModel& model, const LayerPlan& plan) {
  return LayerMaker(model, plan).Embedding();
}

LayerPasses TransformerHead(const TransformerModel& model, const LayerPlan& plan) {
  return LayerMaker(model, plan).Head();
}

int64_t ElementsOnRank(const TransformerWeight& weight, const LayerPlan& plan) {
  switch (weight.split) {
    case WeightSplit::kNone: return weight.elements();
    case WeightSplit::kTensor: return CeilDiv(weight.rows, plan.tensor) * weight.columns;
    case WeightSplit::kExperts:
      return weight.rows / plan.tensor * weight.columns * (weight.count / plan.expert);
  }
  return 0;
}

LayerWork OptimizerWork(const TransformerModel& model, int64_t parameters) {
  const int64_t weight = ElementBytes(model.weights).value_or(0);
  const int64_t gradient = ElementBytes(model.gradients).value_or(0);
  const int64_t state = ElementBytes(model.optimizer).value_or(0);
  const bool copies = model.weights != model.optimizer;
  // Two moments and the optimizer's copy of the weights, which are copied into those of the model.
  return {.name = "optimizer",
          .flops = kAdamFlops * parameters,
          .read = Bytes{parameters * (gradient + 3 * state)},
          .written = Bytes{parameters * (3 * state + (copies ? weight : 0))}};
}

LayerWork NormWork(const TransformerModel& model, int64_t parameters) {
  return {.name = "gradient norm",
          .flops = 2 * parameters,
          .read = Bytes{parameters * ElementBytes(model.gradients).value_or(0)},
          .written = Bytes{kSingleBytes}};
}

ModelStates StatesOnRank(const TransformerModel& model, int64_t parameters, int zero_stage,
                         int64_t ranks) {
  const auto size = [&](DType type, int shared_from) {
    const int64_t elements = zero_stage >= shared_from ? CeilDiv(parameters, ranks) : parameters;
    return Bytes{elements * ElementBytes(type).value_or(0)};
  };
  const Bytes state = size(model.optimizer, 1);
  const int64_t count = model.weights != model.optimizer ? 3 : 2;
  return {.weights = size(model.weights, 3),
          .gradients = size(model.gradients, 2),
          .optimizer = Bytes{count * state.count}};
}

}  // namespace etude
