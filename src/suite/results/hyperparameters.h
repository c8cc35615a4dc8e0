#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

// Training settings of tasks, which users may override. Does not use libtorch.
namespace etude::suite {

// kSmoke trains a small task to its target on two cores in about a minute; kPaper is the published
// architecture and data set.
enum class Scale : uint8_t { kSmoke, kPaper };
// Returns "smoke" or "paper".
std::string_view Name(Scale scale);

// Precision of operators. Weights, sums of gradients and optimizer state are always float32
// (Micikevicius, 1710.03740). Below float32, PyTorch's autocast decides by operator.
enum class Precision : uint8_t { kFp32, kBf16, kFp16 };
// Returns "fp32", "bf16" or "fp16".
std::string_view Name(Precision precision);
std::optional<Precision> PrecisionFromName(std::string_view name);

// Optimizer settings of a parameter group. Formulas are PyTorch's (docs/suite.md).
struct OptimizerOptions {
  enum class Kind : uint8_t { kSgd, kAdam, kAdamW, kRmsprop };
  Kind kind = Kind::kSgd;
  double rate = 0.1;
  double momentum = 0;  // kSgd, kRmsprop
  bool nesterov = false;
  double weight_decay = 0;  // kAdamW: decoupled; otherwise added to the gradient
  double beta1 = 0.9;       // kAdam, kAdamW
  double beta2 = 0.999;
  double smoothing = 0.99;  // kRmsprop
  double epsilon = 1e-8;
};
// Returns "sgd", "adam", "adamw" or "rmsprop".
std::string_view Name(OptimizerOptions::Kind kind);
std::optional<OptimizerOptions::Kind> OptimizerKindFromName(std::string_view name);

// Learning rate over the steps: linear warm-up from 0, then constant, a half cosine that ends at
// the last step, the inverse square root of the steps, divided by `annealing` after each
// `anneal_every` steps, or constant for the share `linear_from` of the steps and then linear to 0
// at the last one.
struct RateSchedule {
  int64_t warmup_steps = 0;
  bool cosine = false;
  bool inverse_root = false;  // of the steps by those of the warm-up (Vaswani et al., 1706.03762)
  double annealing = 1;
  int64_t anneal_every = 0;  // 0: never
  double linear_from = 1;    // 1: never
};

// Training settings of a task, before overrides by the user.
struct Hyperparameters {
  int64_t batch = 1;                         // samples per step, over all ranks
  std::vector<OptimizerOptions> optimizers;  // by parameter group
  RateSchedule schedule;
  double largest_norm = 0;     // of an update's gradients; 0: no limit
  int64_t evaluate_every = 1;  // steps
  int64_t most_steps = 1;      // the target is missed if not reached by then
};

}  // namespace etude::suite
