#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

// How tasks are trained: what the tasks say and what the user may say instead. No libtorch here.
namespace etude::suite {

// kSmoke learns a small task to its target on two cores in about a minute; kPaper is the published
// architecture on the published data set.
enum class Scale : uint8_t { kSmoke, kPaper };
// "smoke", "paper".
std::string_view Name(Scale scale);

// What operators compute in. Weights, their gradients' sums and the optimizers' state are float32
// in any case (Micikevicius, 1710.03740); below it, PyTorch's autocast decides operator by
// operator.
enum class Precision : uint8_t { kFp32, kBf16, kFp16 };
// "fp32", "bf16", "fp16".
std::string_view Name(Precision precision);
std::optional<Precision> PrecisionFromName(std::string_view name);

// How a group of parameters follows its gradients. Formulas are PyTorch's (docs/suite.md).
struct OptimizerOptions {
  enum class Kind : uint8_t { kSgd, kAdam, kAdamW, kRmsprop };
  Kind kind = Kind::kSgd;
  double rate = 0.1;
  double momentum = 0;  // kSgd, kRmsprop
  bool nesterov = false;
  double weight_decay = 0;  // of kAdamW decoupled, else added to the gradient
  double beta1 = 0.9;       // kAdam, kAdamW
  double beta2 = 0.999;
  double smoothing = 0.99;  // kRmsprop
  double epsilon = 1e-8;
};
// "sgd", "adam", "adamw", "rmsprop".
std::string_view Name(OptimizerOptions::Kind kind);
std::optional<OptimizerOptions::Kind> OptimizerKindFromName(std::string_view name);

// How the rate goes over the steps: up from 0 in a line, then constant, along a half cosine that
// ends at the last step, or divided by `annealing` after each `anneal_every` steps.
struct RateSchedule {
  int64_t warmup_steps = 0;
  bool cosine = false;
  double annealing = 1;
  int64_t anneal_every = 0;  // 0: never
};

// How a task is trained. The user may put other values in before it starts.
struct Hyperparameters {
  int64_t batch = 1;                         // samples a step, of all ranks together
  std::vector<OptimizerOptions> optimizers;  // by group of parameters
  RateSchedule schedule;
  double largest_norm = 0;     // of an update's gradients; 0: any
  int64_t evaluate_every = 1;  // steps
  int64_t most_steps = 1;      // without the target by then, it is missed
};

}  // namespace etude::suite
