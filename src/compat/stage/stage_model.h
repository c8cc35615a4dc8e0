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
  kDebug,  // an embedding and nothing else
};

// A training job as STAGE's flags describe it. All numbers are 1 or more.
struct StageOptions {
  Model model = Model::kGpt;
  int64_t dp = 1;
  int64_t tp = 1;
  int64_t cp = 1;  // --sp
  int64_t ep = 1;  // multiplies tp where there are no experts
  int64_t pp = 1;
  int64_t layers = 80;
  int64_t batch = 64;  // of all ranks
  int64_t micro_batch = 64;
  int64_t sequence = 1024;
  int64_t dmodel = 8192;
  int64_t dff = 28672;
  int64_t heads = 64;
  int64_t kv_heads = 8;
  int64_t vocabulary = 32000;
  int64_t experts = 8;
  int64_t top_experts = 2;
  bool tpsp = true;  // between its matrix products, tensor parallelism shares out the sequence
  bool weight_sharded = false;   // weights, gradients of layers over dp
  bool mixed_precision = false;  // sizes of inputs and outputs, place of the last layers
};

// Tensors that are alike in all but name and place.
struct Pattern {
  Op op = Op::kPlaceholder;
  Layout x1;  // as the operator expects its inputs
  Layout x2;
  Layout y;
  double operations = 0;
  double elements = 0;     // of y
  std::string shape_text;  // y's
};

inline constexpr uint32_t kNoTensor = std::numeric_limits<uint32_t>::max();

struct Tensor {
  std::string id;  // name@revision
  uint32_t pattern = 0;
  uint32_t x1 = kNoTensor;  // index of the tensor that is the first input
  uint32_t x2 = kNoTensor;
  int64_t stage = 0;            // of the pipeline
  std::vector<uint32_t> after;  // tensors that it waits for besides
};

// A training step as tensors, each made by one operator, in STAGE's order. Ranks of one pipeline
// stage do the same.
struct TensorModel {
  std::vector<Pattern> patterns;
  std::vector<Tensor> tensors;
  std::vector<Symbol> dimensions;  // kinds of parallelism besides the pipeline's
  SymbolValues values;
  int64_t stages = 1;
};

// kBadInput where STAGE stops or makes what it does not say.
Status CheckStageOptions(const StageOptions& options);

// The pipeline stage of output embedding and loss, as STAGE has it: not the last one where, without
// mixed precision, `pp` does not divide `layers`.
int64_t StageOfHead(const StageOptions& options);

// `options` have passed CheckStageOptions. kBadInput for numbers that no trace can hold.
Result<TensorModel> MakeTensorModel(const StageOptions& options);

}  // namespace etude::stage
