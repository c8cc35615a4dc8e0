#include "src/suite/trainer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <numbers>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "src/base/container/hash.h"
#include "src/base/text/format_count.h"
#include "src/suite/checkpoint.h"
#include "src/suite/guarded.h"
#include "src/suite/nn/functional.h"
#include "src/torch/replay_recording.h"

namespace etude::suite {
namespace {

// Mixed into seeds, so that random sequences differ.
constexpr uint64_t kOrderSalt = 1;
constexpr uint64_t kStepSalt = 2;
constexpr uint64_t kEvaluationSalt = 3;
constexpr uint64_t kSparseSalt = 4;

bool UsesCsr(const Trainer::Options& options) {
  return options.sparse && options.sparse->kernels == SparseOptions::Kernels::kCsr;
}

Status CheckSparseKernels(Task& task, const Trainer::Options& options) {
  if (!UsesCsr(options)) return {};
  if (options.precision != Precision::kFp32) {
    return MakeError(ErrorCode::kUsage, "--sparse-kernels csr requires --precision fp32");
  }
  if (!task.weights().device().is_cpu()) {
    return MakeError(ErrorCode::kUsage, "--sparse-kernels csr requires --device cpu");
  }
  if (!CsrWeight::IsAvailable()) {
    return Unavailable("--sparse-kernels csr requires a build of PyTorch with MKL");
  }
  return {};
}

}  // namespace

Trainer::Trainer(Task& task, const Options& options)
    : task_(&task),
      options_(options),
      order_(task.samples(), options.hyperparameters.batch, HashMix(options.seed, kOrderSalt)),
      scale_(options.precision, options.loss_scale) {
  for (size_t group = 0; group < options.hyperparameters.optimizers.size(); ++group) {
    optimizers_.emplace_back(task.weights(), static_cast<int>(group),
                             options.hyperparameters.optimizers[group]);
  }
  if (options.sparse) {
    sparse_.emplace(task.weights(), *options.sparse, options.hyperparameters.most_steps,
                    HashMix(options.seed, kSparseSalt));
  }
}

Result<std::unique_ptr<Trainer>> Trainer::Make(Task& task, const Options& options) {
  const int64_t ranks = options.ranks == nullptr ? 1 : options.ranks->size();
  if (options.hyperparameters.batch < ranks) {
    return MakeError(
        ErrorCode::kUsage,
        fmt::format("found a batch of {} for {} ranks, expected at least one sample per rank",
                    options.hyperparameters.batch, ranks));
  }
  if (options.hyperparameters.batch > task.samples()) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("found a batch of {}, expected at most the {} training samples",
                                 options.hyperparameters.batch, task.samples()));
  }
  ETUDE_RETURN_IF_ERROR(CheckSparseKernels(task, options));
  return Guarded("setting up", [&]() -> Result<std::unique_ptr<Trainer>> {
    auto trainer = std::unique_ptr<Trainer>(new Trainer(task, options));
    if (UsesCsr(options) && trainer->sparse_->CountInCsr() == 0) {
      return MakeError(ErrorCode::kUsage,
                       "--sparse-kernels csr: the model has no linear layer with masked weights");
    }
    if (options.ranks != nullptr) {
      std::vector<at::Tensor> all;
      for (const Weights::Entry& entry : task.weights().entries()) all.push_back(entry.value);
      options.ranks->Broadcast(all);
    }
    return trainer;
  });
}

Result<double> Trainer::Step() {
  return Guarded(fmt::format("step {}", step_), [&] { return RunStep(); });
}

Result<double> Trainer::RunStep() {
  const int64_t rank = options_.ranks == nullptr ? 0 : options_.ranks->rank();
  const int64_t ranks = options_.ranks == nullptr ? 1 : options_.ranks->size();
  const std::span<const int64_t> whole = order_.BatchOf(step_);
  Batch batch{.step = step_, .update = 0, .samples = ShareOf(whole, rank, ranks)};
  const double share =
      static_cast<double>(batch.samples.size()) / static_cast<double>(whole.size());
  SeedTorch(
      HashMix(HashMix(options_.seed, kStepSalt), static_cast<uint64_t>(step_ * ranks + rank)));
  task_->weights().set_training(true);
  double loss = 0;
  for (; batch.update < task_->updates_per_step(); ++batch.update) {
    ETUDE_ASSIGN_OR_RETURN(const double of_update, RunUpdate(batch, share));
    loss += of_update;
  }
  ++step_;
  return loss / static_cast<double>(task_->updates_per_step());
}

Result<double> Trainer::RunUpdate(const Batch& batch, double share) {
  const int group = task_->GroupOf(batch.update);
  Optimizer& optimizer = optimizers_[static_cast<size_t>(group)];
  for (Optimizer& each : optimizers_) each.Clear();
  const bool updates_masks = sparse_ && sparse_->IsDue(step_) && IsFirstOfGroup(batch.update);
  if (sparse_) sparse_->PrepareGradients(group, updates_masks);
  at::Tensor loss;
  {
    const PrecisionGuard precision(options_.precision, task_->weights().device());
    ETUDE_ASSIGN_OR_RETURN(loss, task_->Loss(batch));
  }
  if (scale_.factor() == 1) {
    loss.backward();
  } else {
    loss.mul(scale_.factor()).backward();
  }
  if (options_.ranks != nullptr) options_.ranks->AverageGradients(optimizer.parameters(), share);
  if (scale_.factor() != 1) {
    const at::NoGradGuard no_gradients;
    for (const at::Tensor& parameter : optimizer.parameters()) {
      if (parameter.grad().defined()) parameter.grad().mul_(1 / scale_.factor());
    }
  }
  if (sparse_ && !updates_masks) sparse_->MaskGradients(group);
  // The norm is computed only if needed, because it reads all gradients.
  bool accepted = true;
  if (options_.hyperparameters.largest_norm > 0 || scale_.used()) {
    accepted = scale_.Accept(optimizer.ClipNorm(options_.hyperparameters.largest_norm));
  }
  if (accepted && !options_.frozen) {
    if (updates_masks) {
      sparse_->Update(step_, group, optimizer);
    } else {
      optimizer.Step(RateFactor());
      if (sparse_) sparse_->MaskWeights(group);
    }
    task_->Updated(batch);
  }
  return loss.item<double>();
}

Result<double> Trainer::StepWithWork(const RunContext& context) {
  // Copies in half precision hide which weights an operator reads.
  if (!sparse_ || options_.precision != Precision::kFp32) return Step();
  double loss = 0;
  const auto step = [&](int64_t index) -> Status {
    const StepMark mark(index);
    ETUDE_ASSIGN_OR_RETURN(loss, Step());
    return {};
  };
  ETUDE_ASSIGN_OR_RETURN(const std::optional<Trace> trace, RecordSteps(1, step, "", context));
  if (trace) work_ = ForwardWork(*trace, sparse_->Densities());
  return loss;
}

bool Trainer::IsFirstOfGroup(int64_t update) const {
  for (int64_t earlier = 0; earlier < update; ++earlier) {
    if (task_->GroupOf(earlier) == task_->GroupOf(update)) return false;
  }
  return true;
}

double Trainer::RateFactor() const {
  const RateSchedule& schedule = options_.hyperparameters.schedule;
  const auto step = static_cast<double>(step_);
  const auto warmup = static_cast<double>(schedule.warmup_steps);
  if (step < warmup) return (step + 1) / warmup;
  if (schedule.anneal_every > 0) {
    return std::pow(schedule.annealing, -static_cast<double>(step_ / schedule.anneal_every));
  }
  const auto most = static_cast<double>(options_.hyperparameters.most_steps);
  if (schedule.linear_from < 1) {
    const double rest = std::max(1.0, most * (1 - schedule.linear_from));
    return std::clamp((most - step) / rest, 0.0, 1.0);
  }
  if (schedule.inverse_root) return std::sqrt(std::max(warmup, 1.0) / (step + 1));
  if (!schedule.cosine) return 1;
  const double rest = std::max(1.0, most - warmup);
  return (1 + std::cos(std::numbers::pi * std::min(1.0, (step - warmup) / rest))) / 2;
}

Result<double> Trainer::Evaluate() {
  return Guarded(
      fmt::format("evaluation after {}", FormatCount(static_cast<uint64_t>(step_), "step")),
      [&]() -> Result<double> {
        const at::NoGradGuard no_gradients;
        task_->weights().set_training(false);
        SeedTorch(HashMix(options_.seed, kEvaluationSalt));
        // Ranks have running means of their own shares; the first one's are the model's.
        if (options_.ranks != nullptr) {
          std::vector<at::Tensor> buffers;
          for (const Weights::Entry& entry : task_->weights().entries()) {
            if (!entry.is_parameter) buffers.push_back(entry.value);
          }
          options_.ranks->Broadcast(buffers);
        }
        double quality = 0;
        {
          const PrecisionGuard precision(options_.precision, task_->weights().device());
          ETUDE_ASSIGN_OR_RETURN(quality, task_->Evaluate());
        }
        return options_.ranks == nullptr ? quality : options_.ranks->Agree(quality);
      });
}

Result<std::vector<Figure>> Trainer::Figures() {
  return Guarded("the figures at the end", [&]() -> Result<std::vector<Figure>> {
    const at::NoGradGuard no_gradients;
    task_->weights().set_training(false);
    SeedTorch(HashMix(options_.seed, kEvaluationSalt));
    const PrecisionGuard precision(options_.precision, task_->weights().device());
    ETUDE_ASSIGN_OR_RETURN(std::vector<Figure> figures, task_->Figures());
    if (sparse_) {
      figures.push_back({"density", static_cast<double>(sparse_->CountActive()) /
                                        static_cast<double>(sparse_->size())});
      if (UsesCsr(options_)) {
        figures.push_back(
            {"share of weights in CSR layers",
             static_cast<double>(sparse_->CountInCsr()) / static_cast<double>(sparse_->size())});
      }
      if (work_ && work_->dense > 0) {
        figures.push_back({"theoretical FLOP, forward", work_->sparse / work_->dense});
        figures.push_back({"theoretical FLOP, training",
                           TrainingShare(*work_, step_, sparse_->DenseBackwardPasses(step_))});
      }
    }
    return figures;
  });
}

Result<double> Trainer::Baseline() {
  return Guarded("the baseline", [&]() -> Result<double> {
    const at::NoGradGuard no_gradients;
    SeedTorch(HashMix(options_.seed, kEvaluationSalt));
    return task_->Baseline();
  });
}

Status Trainer::CompareRanks() {
  if (options_.ranks == nullptr) return {};
  return Guarded("comparing ranks", [&]() -> Status {
    uint64_t own = 0;
    for (const Weights::Entry& entry : task_->weights().entries()) {
      if (!entry.is_parameter) continue;
      const at::Tensor host = entry.value.detach().cpu().contiguous();
      own = HashBytes({static_cast<const char*>(host.const_data_ptr()), host.nbytes()}, own);
    }
    ETUDE_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                           options_.ranks->Gather(std::to_string(own)));
    for (size_t rank = 1; rank < all.size(); ++rank) {
      if (all[rank] == all[0]) continue;
      return MakeError(ErrorCode::kInternal,
                       fmt::format("after {} the weights of rank {} differ from those of rank 0",
                                   FormatCount(static_cast<uint64_t>(step_), "step"), rank));
    }
    return {};
  });
}

Result<Underflow> Trainer::CountLost() {
  return Guarded("gradients", [&]() -> Result<Underflow> {
    Underflow all;
    for (const Optimizer& optimizer : optimizers_) {
      const Underflow own = CountUnderflow(optimizer.parameters(), optimizer.clip_factor());
      all.values += own.values;
      all.lost += own.lost;
    }
    return all;
  });
}

Result<Trainer::NamedTensors> Trainer::CollectState() {
  return Guarded("the model's state", [&]() -> Result<NamedTensors> { return State(); });
}

Trainer::NamedTensors Trainer::State() {
  NamedTensors state;
  for (const Weights::Entry& entry : task_->weights().entries()) {
    state.emplace_back("weights." + entry.name, entry.value);
  }
  for (size_t group = 0; group < optimizers_.size(); ++group) {
    for (auto& [name, tensor] : optimizers_[group].State()) {
      state.emplace_back(fmt::format("optimizer{}.{}", group, name), tensor);
    }
  }
  if (sparse_) {
    for (auto& [name, tensor] : sparse_->State()) state.emplace_back("mask." + name, tensor);
  }
  return state;
}

Status Trainer::Save(const std::string& path, std::map<std::string, std::string> facts) {
  facts["step"] = std::to_string(step_);
  facts["loss_scale"] = fmt::format("{}", scale_.factor());
  facts["loss_scale_good_steps"] = std::to_string(scale_.good_steps());
  facts["loss_scale_skipped"] = std::to_string(scale_.skipped());
  ETUDE_ASSIGN_OR_RETURN(NamedTensors tensors, CollectState());
  return WriteCheckpoint(path, {std::move(tensors), std::move(facts)});
}

Result<std::map<std::string, std::string>> Trainer::Load(const std::string& path,
                                                         const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const NamedTensors tensors, CollectState());
  ETUDE_ASSIGN_OR_RETURN(auto facts, ReadCheckpoint(path, tensors, context));
  if (sparse_) {
    ETUDE_RETURN_IF_ERROR(Guarded("masks", [&]() -> Status {
      sparse_->TakeUpMasks();
      return {};
    }));
  }
  const auto whole = [&](const char* name) -> Result<int64_t> {
    const auto found = facts.find(name);
    int64_t value = 0;
    const std::string text = found == facts.end() ? "" : found->second;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || end.ec != std::errc() || end.ptr != text.data() + text.size()) {
      return BadInput(fmt::format("{}: {}: found '{}', expected a whole number", path, name, text));
    }
    return value;
  };
  ETUDE_ASSIGN_OR_RETURN(step_, whole("step"));
  ETUDE_ASSIGN_OR_RETURN(const int64_t good_steps, whole("loss_scale_good_steps"));
  ETUDE_ASSIGN_OR_RETURN(const int64_t skipped, whole("loss_scale_skipped"));
  scale_.Restore(std::strtod(facts["loss_scale"].c_str(), nullptr), good_steps, skipped);
  return facts;
}

}  // namespace etude::suite
