#include "src/compat/stage/stage_corrections.h"

#include <array>

namespace etude::stage {
namespace {

using enum Quantity;

constexpr std::string_view kOperations = "operations";
constexpr std::string_view kBytes = "bytes";

constexpr auto kQuantityRows = std::to_array<QuantityRow>({
    {kMatrices, "matrices", "matrix products", kOperations},
    {kAttention, "attention", "attention", kOperations},
    {kNorms, "norms", "norms", kOperations},
    {kElementwise, "elementwise", "element by element", kOperations},
    {kEmbedding, "embedding", "embedding", kOperations},
    {kHeadProducts, "head", "head", kOperations},
    {kLoss, "loss", "loss", kOperations},
    {kOptimizer, "optimizer", "optimizer", kOperations},
    {kTensorAllReduce, "tp_all_reduce", "all_reduce tp", kBytes},
    {kTensorAllGather, "tp_all_gather", "all_gather tp", kBytes},
    {kTensorReduceScatter, "tp_reduce_scatter", "reduce_scatter tp", kBytes},
    {kContextAllReduce, "cp_all_reduce", "all_reduce cp", kBytes},
    {kContextAllGather, "cp_all_gather", "all_gather cp", kBytes},
    {kContextReduceScatter, "cp_reduce_scatter", "reduce_scatter cp", kBytes},
    {kReplicaAllReduce, "dp_all_reduce", "all_reduce dp", kBytes},
    {kReplicaAllGather, "dp_all_gather", "all_gather dp", kBytes},
    {kReplicaReduceScatter, "dp_reduce_scatter", "reduce_scatter dp", kBytes},
    {kExpertAllToAll, "ep_all_to_all", "all_to_all ep", kBytes},
    {kExpertAllGather, "ep_all_gather", "all_gather ep", kBytes},
    {kMessages, "messages", "messages", "messages"},
    {kMessageBytes, "message_bytes", "messages' bytes", kBytes},
});
static_assert(kQuantityRows.size() == kQuantityCount);

constexpr auto kCauses = std::to_array<Cause>({
    {"1", "elements for bytes"},
    {"2", "multiply-accumulates for operations"},
    {"3", "attention without S²"},
    {"4", "embedding as dense products"},
    {"5", "loss of D values a token, not V"},
    {"6", "embedding and head not shared as their layers are"},
    {"7", "gradients reduced in each micro-batch"},
    {"8", "a chain's collectives have its first one's size"},
    {"9", "ep divides the experts' tokens twice"},
    {"10", "router D × k, gathered in each micro-batch"},
    {"11", "ranks of ep repeat the rest of the layer"},
    {"12", "experts are not gated"},
    {"13", "head on an earlier stage"},
    {"15", "gradients of keys and values of H heads"},
    {"17", "no weights of norms, Adam as one operation"},
    {"a", "copies are not operations"},
    {"b", "norms: 4 forward and 9 backward, not 5 and 5"},
    {"c", "a norm before the head"},
    {"d", "sharded weights: by all replicas, not dp alone"},
    {"e", "one reduction by all replicas, not dp, then cp"},
    {"f", "keys and values gathered again for backward"},
    {"g", "activation functions"},
    {"h", "rotary positions"},
    {"i", "gate and up are one product"},
    {"j", "routing's softmax and weights"},
    {"k", "tp sums gradients of what it has whole"},
    {"l", "experts have room for whole rows"},
    {"m", "a share of the vocabulary is whole rows"},
});

// Jobs to which a correction applies: at least one flag of each line, or no flag of a line for all.
enum : uint16_t {
  kGptJob = 1,
  kLlamaJob = 2,
  kMoeJob = 4,
  kDenseJob = kGptJob | kLlamaJob,
  kAnyModel = kDenseJob | kMoeJob,
  kWholeWeights = 8,
  kSharedWeights = 16,
  kAnyWeights = kWholeWeights | kSharedWeights,
  kSharedTokens = 32,
  kWholeTokens = 64,
  kAnyTokens = kSharedTokens | kWholeTokens,
};

struct CorrectionRow {
  Quantity quantity;
  std::string_view cause;
  uint16_t jobs;
  std::string_view formula;
};

// clang-format off
constexpr auto kCorrectionRows = std::to_array<CorrectionRow>({
    {kMatrices, "11", kMoeJob, "-M*L*(1 - 1/e)*(3*q + 3)*D*U/t"},
    {kMatrices, "9", kMoeJob, "M*L*(1 - 1/e)*6*F*U*k/(e*t)"},
    {kMatrices, "10", kMoeJob, "M*L*(3*E*u/e - (1 + 2/e)*k*u)"},
    {kMatrices, "12", kMoeJob, "M*L*3*F*U*k/(e*t)"},
    {kMatrices, "2", kGptJob, "M*L*((3*q + 3)*D + 6*F)*U/t"},
    {kMatrices, "2", kLlamaJob, "M*L*((3*q + 3)*D + 9*F)*U/t"},
    {kMatrices, "2", kMoeJob, "M*L*((3*q + 3)*D*U/(e*t) + 9*F*U*k/(e*t) + 3*E*u/e)"},
    {kMatrices, "l", kMoeJob, "M*L*18*F*D*(C - n*k/t)"},

    {kAttention, "11", kMoeJob, "-M*L*(1 - 1/e)*21*U/t"},
    {kAttention, "3", kAnyModel, "M*L*(14*(D/H + 1)*P + 2*U/(e*t) - 21*U/(e*t))"},

    {kNorms, "11", kMoeJob, "-M*L*(1 - 1/e)*22*u"},
    {kNorms, "b", kAnyModel, "M*L*2*(4 + 9 - 5 - 5)*u/e"},
    {kNorms, "c", kAnyModel, "M*(4 + 9)*u/e"},

    {kElementwise, "11", kMoeJob, "-M*L*(1 - 1/e)*2*u"},
    {kElementwise, "a", kGptJob, "-M*L*(2 + 6*K/H)*U/t"},
    {kElementwise, "a", kLlamaJob, "-M*L*(2 + 8*K/H)*U/t"},
    {kElementwise, "a", kMoeJob, "-M*L*((2 + 8*K/H)*U/t + 2*U*k/(e*e*t) + 2*N*R/e + 3*R/D + 3*R/e + 2*u/e)"},
    {kElementwise, "i", kLlamaJob, "-M*L*U"},
    {kElementwise, "g", kGptJob, "M*L*(9 + 18)*F*U/(D*t)"},
    {kElementwise, "g", kLlamaJob, "M*L*(5 + 11 - 3)*F*U/(D*t)"},
    {kElementwise, "g", kMoeJob, "M*L*(5 + 11)*F*R/(D*e)"},
    {kElementwise, "h", kAnyModel, "M*L*2*3*(1 + K/H)*U/(e*t)"},
    {kElementwise, "j", kMoeJob, "M*L*((6 + 5)*E*u/(D*e) + 6*R/e - 3*R/e - [N>1]*2*R/e)"},
    {kElementwise, "l", kMoeJob, "M*L*((5 + 11)*F + 6*D)*(C - n*k/t)"},

    {kEmbedding, "4", kAnyModel, "M*(U/e - 3*V*U/t)"},

    {kHeadProducts, "11", kMoeJob, "-M*(1 - 1/e)*3*V*U/t"},
    {kHeadProducts, "2", kAnyModel, "M*3*V*U/(e*t)"},
    {kHeadProducts, "m", kAnyModel, "M*6*D*n*(up(V/t) - V/t)"},

    {kLoss, "5", kAnyModel, "M*(6*n*up(V/t) + 2*n - 10*u)"},

    {kOptimizer, "6", kAnyModel | kWholeWeights, "4*(Vo - Ve)"},
    {kOptimizer, "10", kMoeJob | kWholeWeights, "2*L*(Wr - Wd)"},
    {kOptimizer, "12", kMoeJob | kWholeWeights, "2*L*(Wg - We)"},
    {kOptimizer, "17", kAnyModel | kWholeWeights, "2*(2*L + 1)*D + (14 - 2)*(L*(Wn + Wg) + 2*Vo + D)"},
    {kOptimizer, "d", kSharedWeights, "2*L*(up(Wd/r) + up(We/s) - (Wd + We)/d)"},
    {kOptimizer, "6", kSharedWeights, "4*(up(Vo/r) - Ve)"},
    {kOptimizer, "10", kMoeJob | kSharedWeights, "2*L*(up(Wr/r) - up(Wd/r))"},
    {kOptimizer, "12", kMoeJob | kSharedWeights, "2*L*(up(Wg/s) - up(We/s))"},
    {kOptimizer, "17", kSharedWeights, "14*(L*(up(Wn/r) + up(Wg/s)) + up(Vo/r) + up((Vo + D)/r)) - 2*(L*(up(Wr/r) + up(Wg/s)) + 2*up(Vo/r))"},

    {kTensorAllReduce, "6", kSharedTokens, "-[t>1]*2*Ve"},
    {kTensorAllReduce, "6", kWholeTokens, "-[t>1]*M*U*V/D + [t>1]*M*U"},
    {kTensorAllReduce, "1", kWholeTokens, "[t>1]*M*(4*L + 2)*(w - 1)*U"},
    {kTensorAllReduce, "5", kAnyModel, "[t>1]*M*3*4*n"},
    {kTensorAllReduce, "17", kSharedTokens | kWholeWeights, "[t>1]*g*(2*L + 1)*D"},
    {kTensorAllReduce, "17", kSharedTokens | kSharedWeights, "[t>1]*(1 + [r>1]*(M - 1))*g*(2*L + 1)*D"},
    {kTensorAllReduce, "k", kMoeJob | kWholeWeights, "[t>1]*g*L*D*E"},
    {kTensorAllReduce, "k", kMoeJob | kSharedWeights, "[t>1]*(1 + [r>1]*(M - 1))*g*L*D*E"},

    {kTensorAllGather, "6", kWholeTokens, "-[t>1]*M*U/t"},
    {kTensorAllGather, "11", kMoeJob, "-[t>1]*M*L*(1 - 1/e)*3*U/t"},
    {kTensorAllGather, "9", kMoeJob, "[t>1]*M*L*(1 - 1/e)*3*U*k/(e*t)"},
    {kTensorAllGather, "6", kSharedTokens, "[t>1]*M*3*u/e"},
    {kTensorAllGather, "1", kDenseJob | kSharedTokens, "[t>1]*M*(6*L + 3)*(w - 1)*u"},
    {kTensorAllGather, "1", kMoeJob, "[t>1]*M*(3*L*(1 + k) + 3)*(w - 1)*u/e"},
    {kTensorAllGather, "l", kMoeJob, "[t>1]*M*L*3*w*D*(C - n*k/t)"},

    {kTensorReduceScatter, "11", kMoeJob, "-[t>1]*M*L*(1 - 1/e)*2*U"},
    {kTensorReduceScatter, "9", kMoeJob, "[t>1]*M*L*(1 - 1/e)*2*U*k/e"},
    {kTensorReduceScatter, "6", kSharedTokens, "[t>1]*M*2*U/e"},
    {kTensorReduceScatter, "1", kDenseJob | kSharedTokens, "[t>1]*M*(4*L + 2)*(w - 1)*U"},
    {kTensorReduceScatter, "1", kMoeJob, "[t>1]*M*(2*L*(1 + k) + 2)*(w - 1)*U/e"},
    {kTensorReduceScatter, "l", kMoeJob, "[t>1]*M*L*2*w*t*D*(C - n*k/t)"},

    {kContextAllReduce, "7", kWholeWeights, "-[c>1]*(M - 1)*L*(Wd + We)"},
    {kContextAllReduce, "8", kSharedWeights, "-[c>1]*M*L*(1 - 1/d)*(Wd + We)"},
    {kContextAllReduce, "e", kWholeWeights, "-[c>1]*(L*(Wd + We) + 2*Ve)"},
    {kContextAllReduce, "e", kSharedWeights, "-[c>1]*(M*L*(Wd + We)/d + 2*Ve)"},

    {kContextAllGather, "11", kMoeJob, "-[c>1]*M*L*(1 - 1/e)*2*K/H*U/t"},
    {kContextAllGather, "f", kAnyModel, "[c>1]*M*L*2*K/H*U/(e*t)"},
    {kContextAllGather, "1", kAnyModel, "[c>1]*M*L*4*(w - 1)*K/H*U/(e*t)"},

    {kContextReduceScatter, "15", kLlamaJob | kMoeJob, "-[c>1]*M*L*2*c*(1 - K/H)*U/t"},
    {kContextReduceScatter, "11", kMoeJob, "-[c>1]*M*L*(1 - 1/e)*2*c*K/H*U/t"},
    {kContextReduceScatter, "1", kAnyModel, "[c>1]*M*L*2*c*(w - 1)*K/H*U/(e*t)"},

    {kReplicaAllReduce, "7", kWholeWeights, "-[d>1]*(M - 1)*L*(Wd + We)"},
    {kReplicaAllReduce, "e", kWholeWeights, "([r>1] - [d>1])*(L*Wd + 2*Ve) + ([s>1] - [d>1])*L*We"},
    {kReplicaAllReduce, "6", kWholeWeights, "[r>1]*2*(Vo - Ve)"},
    {kReplicaAllReduce, "10", kMoeJob | kWholeWeights, "[r>1]*L*(Wr - Wd)"},
    {kReplicaAllReduce, "12", kMoeJob | kWholeWeights, "[s>1]*L*(Wg - We)"},
    {kReplicaAllReduce, "17", kWholeWeights, "[r>1]*(2*L + 1)*D"},
    {kReplicaAllReduce, "1", kWholeWeights, "(g - 1)*([r>1]*(L*Wn + 2*Vo + D) + [s>1]*L*Wg)"},
    {kReplicaAllReduce, "6", kSharedWeights, "-[d>1]*2*Ve"},

    {kReplicaAllGather, "d", kSharedWeights, "2*M*L*([r>1]*up(Wd/r) + [s>1]*up(We/s) - [d>1]*(Wd + We)/d)"},
    {kReplicaAllGather, "6", kSharedWeights, "[r>1]*2*M*2*up(Vo/r)"},
    {kReplicaAllGather, "10", kMoeJob | kSharedWeights, "[r>1]*2*M*L*(up(Wr/r) - up(Wd/r))"},
    {kReplicaAllGather, "12", kMoeJob | kSharedWeights, "[s>1]*2*M*L*(up(Wg/s) - up(We/s))"},
    {kReplicaAllGather, "17", kSharedWeights, "[r>1]*2*M*(L*(up(Wn/r) - up(Wr/r)) + up((Vo + D)/r) - up(Vo/r))"},
    {kReplicaAllGather, "1", kSharedWeights, "(w - 1)*2*M*([r>1]*(L*up(Wn/r) + up(Vo/r) + up((Vo + D)/r)) + [s>1]*L*up(Wg/s))"},

    {kReplicaReduceScatter, "d", kSharedWeights, "M*L*([r>1]*r*up(Wd/r) + [s>1]*s*up(We/s) - [d>1]*(Wd + We))"},
    {kReplicaReduceScatter, "6", kSharedWeights, "[r>1]*M*2*r*up(Vo/r)"},
    {kReplicaReduceScatter, "10", kMoeJob | kSharedWeights, "[r>1]*M*L*r*(up(Wr/r) - up(Wd/r))"},
    {kReplicaReduceScatter, "12", kMoeJob | kSharedWeights, "[s>1]*M*L*s*(up(Wg/s) - up(We/s))"},
    {kReplicaReduceScatter, "17", kSharedWeights, "[r>1]*M*r*(L*(up(Wn/r) - up(Wr/r)) + up((Vo + D)/r) - up(Vo/r))"},
    {kReplicaReduceScatter, "1", kSharedWeights, "(g - 1)*M*([r>1]*r*(L*up(Wn/r) + up(Vo/r) + up((Vo + D)/r)) + [s>1]*s*L*up(Wg/s))"},

    {kExpertAllToAll, "1", kMoeJob, "[e>1]*M*L*4*(w - 1)*U*k/(e*t)"},
    {kExpertAllToAll, "l", kMoeJob, "[e>1]*M*L*4*w*D*(C - n*k/t)"},

    {kExpertAllGather, "11", kMoeJob, "-[e>1]*M*L*2*U/(e*t)"},
    {kExpertAllGather, "10", kMoeJob, "-[e>1]*M*L*D*k/e"},

    {kMessages, "13", kAnyModel, "-m*M*2"},

    {kMessageBytes, "13", kAnyModel, "-m*M*(u + U/t)"},
    {kMessageBytes, "11", kMoeJob, "-M*2*(p - 1)*(1 - 1/e)*u"},
    {kMessageBytes, "1", kAnyModel, "M*2*(p - 1)*(w - 1)*u/e"},
});

// clang-format on

struct DefinitionRow {
  uint16_t jobs;
  Definition definition;
};

// clang-format off
constexpr auto kDefinitionRows = std::to_array<DefinitionRow>({
    {kAnyModel, {"U", "B*S*D/(d*c)", "elements of a micro-batch's activations"}},
    {kSharedTokens, {"u", "U/t", "the same between the products"}},
    {kWholeTokens, {"u", "U", "the same between the products"}},
    {kAnyModel, {"q", "1 + 2*K/H", "queries, keys and values for each query"}},
    {kAnyModel, {"n", "B*S/(d*c*e)", "tokens of a rank"}},
    {kAnyModel, {"P", "B*H*S*(S + 1)/(2*d*c*e*t)", "pairs of a query and a key that a rank looks at"}},
    {kMoeJob, {"N", "E/e", "experts of a rank"}},
    {kMoeJob, {"R", "U*k/t", "elements of the rows that a rank of STAGE routes"}},
    {kMoeJob, {"C", "E*up(n*k/(t*E))", "rows that a rank routes"}},
    {kAnyModel, {"r", "d*c*e", "replicas of weights"}},
    {kAnyModel, {"s", "d*c", "replicas of experts"}},
    {kSharedTokens, {"Ve", "V*D", "weights of STAGE's embedding, and of its head"}},
    {kWholeTokens, {"Ve", "V*D/t", "weights of STAGE's embedding, and of its head"}},
    {kAnyModel, {"Vo", "D*up(V/t)", "weights of the embedding, and of the head"}},
    {kGptJob, {"Wd", "2*D*(F + 2*D)/t", "weights of STAGE's layer, without experts"}},
    {kLlamaJob, {"Wd", "D*(3*F + (q + 1)*D)/t", "weights of STAGE's layer, without experts"}},
    {kMoeJob, {"Wd", "(q + 1)*D*D/t + D*k/e", "weights of STAGE's layer, without experts"}},
    {kDenseJob, {"We", "0", "weights of STAGE's experts"}},
    {kMoeJob, {"We", "2*N*D*F/t", "weights of STAGE's experts"}},
    {kDenseJob, {"Wr", "Wd", "the layer's with a right router"}},
    {kMoeJob, {"Wr", "(q + 1)*D*D/t + D*E", "the layer's with a right router"}},
    {kAnyModel, {"Wn", "Wr + 2*D", "and with norms"}},
    {kDenseJob, {"Wg", "0", "weights of gated experts"}},
    {kMoeJob, {"Wg", "3*N*D*F/t", "weights of gated experts"}},
});
// clang-format on

bool SharesAnyTokens(const StageOptions& options) {
  return options.model != Model::kGpt || options.tpsp;
}

// Lines without a flag in `jobs` are ignored.
bool HoldsFor(const StageOptions& options, uint16_t jobs) {
  const auto fits = [&](uint16_t line, uint16_t flag) {
    return (jobs & line) == 0 || (jobs & flag) != 0;
  };
  const uint16_t model = options.model == Model::kMoe     ? kMoeJob
                         : options.model == Model::kLlama ? kLlamaJob
                                                          : kGptJob;
  return fits(kAnyModel, model) &&
         fits(kAnyWeights, options.weight_sharded ? kSharedWeights : kWholeWeights) &&
         fits(kAnyTokens, SharesAnyTokens(options) ? kSharedTokens : kWholeTokens);
}

}  // namespace

std::span<const QuantityRow> QuantityRows() { return kQuantityRows; }

std::span<const Cause> Causes() { return kCauses; }

std::vector<Definition> DefinitionsOf(const StageOptions& options) {
  std::vector<Definition> definitions;
  for (const DefinitionRow& row : kDefinitionRows) {
    if (HoldsFor(options, row.jobs)) definitions.push_back(row.definition);
  }
  return definitions;
}

std::vector<Correction> CorrectionsOf(const StageOptions& options) {
  std::vector<Correction> corrections;
  for (const CorrectionRow& row : kCorrectionRows) {
    if (!HoldsFor(options, row.jobs)) continue;
    corrections.push_back({.quantity = row.quantity, .cause = row.cause, .formula = row.formula});
  }
  return corrections;
}

}  // namespace etude::stage
