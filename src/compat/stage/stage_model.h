#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/compat/stage/stage_collectives.h"
#include "src/compat/stage/stage_size.h"
#include "src/compat/stage/stage_tables.h"

namespace etude::stage {

enum class Model : uint8_t {
  kGpt,
  kLlama,  // grouped key and value heads, gated feed-forward
  kMoe,    // grouped key and value heads, experts
  kDebug,  // an embedding only
};

// A training job as described by STAGE's flags. All numbers are positive.
struct StageOptions {
  Model model = Model::kGpt;
  int64_t dp = 1;
  int64_t tp = 1;
  int64_t cp = 1;  // --sp
  int64_t ep = 1;  // multiplies tp in models without experts
  int64_t pp = 1;
  int64_t layers = 80;
  int64_t batch = 64;  // over all ranks
  int64_t micro_batch = 64;
  int64_t sequence = 1024;
  int64_t dmodel = 8192;
  int64_t dff = 28672;
  int64_t heads = 64;
  int64_t kv_heads = 8;
  int64_t vocabulary = 32000;
  int64_t experts = 8;
  int64_t top_experts = 2;
  bool tpsp = true;  // tensor parallelism splits the sequence between its matrix products
  bool weight_sharded = false;  // splits weights and gradients of layers over dp
  bool mixed_precision =
      false;  // affects sizes of inputs and outputs, and the stage of the last layers
};

// Properties shared by tensors that differ only in name and position.
struct Pattern {
  Op op = Op::kPlaceholder;
  Layout x1;  // layout that the operator expects
  Layout x2;
  Layout y;
  double operations = 0;
  double elements = 0;     // of y
  std::string shape_text;  // of y
};

inline constexpr uint32_t kNoTensor = std::numeric_limits<uint32_t>::max();

struct Tensor {
  std::string id;  // name@revision
  uint32_t pattern = 0;
  uint32_t x1 = kNoTensor;  // index of the first input
  uint32_t x2 = kNoTensor;
  int64_t stage = 0;            // pipeline stage
  std::vector<uint32_t> after;  // other tensors that it depends on
};

// A training step as tensors, each the result of one operator, in STAGE's order. Ranks of one
// pipeline stage do the same.
struct TensorModel {
  std::vector<Pattern> patterns;
  std::vector<Tensor> tensors;
  std::vector<Symbol> dimensions;  // kinds of parallelism other than pipelines
  SymbolValues values;
  int64_t stages = 1;
};

// Checks options. kBadInput where STAGE stops or contradicts its flags.
Status CheckStageOptions(const StageOptions& options);

// Returns STAGE's pipeline stage of output embedding and loss: not the last one if `pp` does not
// divide `layers` and mixed precision is off.
int64_t StageOfHead(const StageOptions& options);

// Makes the model of checked options. kBadInput for numbers beyond a trace's range.
Result<TensorModel> MakeTensorModel(const StageOptions& options);

}  // namespace etude::stage
