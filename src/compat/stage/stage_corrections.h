#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "src/compat/stage/stage_model.h"

// Why a step as STAGE makes it moves and computes other amounts than a right one: facts of
// docs/models/stage.md.
namespace etude::stage {

// What is counted: of one rank of each pipeline stage, summed over the stages.
enum class Quantity : uint8_t {
  kMatrices,  // operations in matrix products of layers
  kAttention,
  kNorms,
  kElementwise,
  kEmbedding,
  kHeadProducts,
  kLoss,
  kOptimizer,
  kTensorAllReduce,  // bytes that a rank puts in
  kTensorAllGather,
  kTensorReduceScatter,
  kContextAllReduce,
  kContextAllGather,
  kContextReduceScatter,
  kReplicaAllReduce,
  kReplicaAllGather,
  kReplicaReduceScatter,
  kExpertAllToAll,
  kExpertAllGather,
  kMessages,      // that a rank sends
  kMessageBytes,  // of them
};
inline constexpr size_t kQuantityCount = static_cast<size_t>(Quantity::kMessageBytes) + 1;

struct QuantityRow {
  Quantity quantity;
  std::string_view key;   // in JSON
  std::string_view name;  // for people
  std::string_view unit;  // "operations", "bytes" or "messages"; STAGE's own may be another
};
// By Quantity.
std::span<const QuantityRow> QuantityRows();

// Why there is a difference. `id`: the row of docs/models/stage.md: a number is an error or a
// simplification of STAGE, a letter something that our model has, or counts, of its own.
struct Cause {
  std::string_view id;
  std::string_view text;
};
std::span<const Cause> Causes();

// What a name in the formulas of corrections stands for. It is made of those before it and of the
// job's parameters, which are called as in docs/models/stage.md: w and g are the bytes of an
// element of weights and of gradients, m is 1 where the head is on another stage than the last.
struct Definition {
  std::string_view name;
  std::string_view formula;
  std::string_view text;
};

// What is added to STAGE's amount of a quantity.
struct Correction {
  Quantity quantity;
  std::string_view cause;
  std::string_view formula;  // for EvaluateFormula
};

// Those that hold for jobs like this one. Corrections are in the order in which they are to be
// read: each is about what the ones before have left.
std::vector<Definition> DefinitionsOf(const StageOptions& options);
std::vector<Correction> CorrectionsOf(const StageOptions& options);

}  // namespace etude::stage
