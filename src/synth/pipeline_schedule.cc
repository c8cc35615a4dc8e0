#include "src/synth/pipeline_schedule.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <tuple>

#include <fmt/format.h>

namespace etude {
namespace {

constexpr int64_t kMostSteps = 100'000'000;  // of all stages

std::vector<StageStep> GpipeOrder(const PipelinePlan& plan) {
  std::vector<StageStep> order;
  for (int64_t i = 0; i < plan.micro_batches; ++i) order.push_back({.micro_batch = i});
  for (int64_t i = 0; i < plan.micro_batches; ++i) {
    order.push_back({.pass = StagePass::kBackward, .micro_batch = i});
  }
  return order;
}

// With as many micro-batches begun as there are stages from here to the last one. ZB-H1: the
// gradients of weights wait for so many later ones of inputs as there are stages before this one;
// then each stage has what one micro-batch keeps as often as the first one has.
std::vector<StageStep> OneByOneOrder(const PipelinePlan& plan, int64_t stage) {
  const bool split = plan.schedule == PipelineSchedule::kZeroBubble;
  const StagePass backward = split ? StagePass::kInputGradient : StagePass::kBackward;
  const int64_t count = plan.micro_batches;
  std::vector<StageStep> order;
  int64_t begun = 0;
  const auto forward = [&] {
    if (begun < count) order.push_back({.micro_batch = begun++});
  };
  while (begun < std::min(count, plan.stages - stage - 1)) forward();
  for (int64_t i = 0; i < count; ++i) {
    forward();
    order.push_back({.pass = backward, .micro_batch = i});
    if (split && i >= stage) {
      order.push_back({.pass = StagePass::kWeightGradient, .micro_batch = i - stage});
    }
  }
  if (split) {
    for (int64_t i = std::max<int64_t>(count - stage, 0); i < count; ++i) {
      order.push_back({.pass = StagePass::kWeightGradient, .micro_batch = i});
    }
  }
  return order;
}

// As many micro-batches as there are stages go through one chunk, then through the next one.
std::vector<StageStep> InterleavedOrder(const PipelinePlan& plan, int64_t stage) {
  const int64_t total = plan.micro_batches * plan.chunks;
  const int64_t round = plan.stages * plan.chunks;
  const auto step = [&](int64_t i, StagePass pass) {
    const int64_t chunk = i % round / plan.stages;
    return StageStep{.pass = pass,
                     .micro_batch = i / round * plan.stages + i % plan.stages,
                     .chunk = pass == StagePass::kForward ? chunk : plan.chunks - 1 - chunk};
  };
  const int64_t ahead =
      std::min(total, 2 * (plan.stages - stage - 1) + (plan.chunks - 1) * plan.stages);
  std::vector<StageStep> order;
  for (int64_t i = 0; i < ahead; ++i) order.push_back(step(i, StagePass::kForward));
  for (int64_t i = 0; i < total; ++i) {
    if (ahead + i < total) order.push_back(step(ahead + i, StagePass::kForward));
    order.push_back(step(i, StagePass::kBackward));
  }
  return order;
}

// When steps ended.
class StepEnds {
 public:
  explicit StepEnds(const PipelinePlan& plan)
      : plan_(plan),
        ends_(static_cast<size_t>(3 * plan.stages * plan.chunks * plan.micro_batches)) {}

  std::optional<int64_t>& At(int64_t stage, const StageStep& step) {
    return ends_[Index(Kind(step.pass), stage, step.micro_batch, step.chunk)];
  }
  // When what the step waits for was there; nullopt: not yet.
  std::optional<int64_t> ReadyAt(int64_t stage, const StageStep& step) const {
    const int64_t place = step.chunk * plan_.stages + stage;
    switch (step.pass) {
      case StagePass::kForward:
        return place == 0 ? 0 : ends_[Index(0, place - 1, step.micro_batch)];
      case StagePass::kBackward:
      case StagePass::kInputGradient: {
        const bool last = place + 1 == plan_.stages * plan_.chunks;
        return ends_[last ? Index(0, place, step.micro_batch)
                          : Index(1, place + 1, step.micro_batch)];
      }
      case StagePass::kWeightGradient: return ends_[Index(1, place, step.micro_batch)];
    }
    return std::nullopt;
  }

 private:
  static int64_t Kind(StagePass pass) {
    switch (pass) {
      case StagePass::kForward: return 0;
      case StagePass::kBackward:
      case StagePass::kInputGradient: return 1;
      case StagePass::kWeightGradient: return 2;
    }
    return 0;
  }
  size_t Index(int64_t kind, int64_t place, int64_t micro_batch) const {
    return static_cast<size_t>((kind * plan_.stages * plan_.chunks + place) * plan_.micro_batches +
                               micro_batch);
  }
  size_t Index(int64_t kind, int64_t stage, int64_t micro_batch, int64_t chunk) const {
    return Index(kind, chunk * plan_.stages + stage, micro_batch);
  }

  const PipelinePlan& plan_;
  std::vector<std::optional<int64_t>> ends_;  // by kind, place in the network and micro-batch
};

int64_t CostOf(StagePass pass, const StepCosts& costs) {
  switch (pass) {
    case StagePass::kForward: return costs.forward;
    case StagePass::kBackward: return costs.input_gradient + costs.weight_gradient;
    case StagePass::kInputGradient: return costs.input_gradient;
    case StagePass::kWeightGradient: return costs.weight_gradient;
  }
  return 0;
}

}  // namespace

Fits CheckPipeline(const PipelinePlan& plan) {
  if (plan.stages < 1 || plan.micro_batches < 1 || plan.chunks < 1) {
    return MakeMisfit(
        {"plan.pp", "plan.micro_batches", "plan.chunks"},
        fmt::format("found {} stages, {} micro-batches and {} chunks, expected one of "
                    "each or more",
                    plan.stages, plan.micro_batches, plan.chunks));
  }
  const double steps = 3.0 * static_cast<double>(plan.stages) *
                       static_cast<double>(plan.micro_batches) * static_cast<double>(plan.chunks);
  if (steps > static_cast<double>(kMostSteps)) {
    return MakeMisfit(
        {"plan.micro_batches", "plan.pp"},
        fmt::format("found {:.0f} steps of all stages, expected up to {}", steps, kMostSteps));
  }
  if (plan.schedule != PipelineSchedule::kInterleaved) {
    if (plan.chunks == 1) return {};
    return MakeMisfit(
        {"plan.chunks", "plan.schedule"},
        fmt::format("found {} chunks on each stage, expected one unless interleaved", plan.chunks));
  }
  if (plan.stages < 2 || plan.chunks < 2) {
    return MakeMisfit(
        {plan.stages < 2 ? "plan.pp" : "plan.chunks", "plan.schedule"},
        fmt::format("interleaved: found {} stages and {} chunks, expected two of each "
                    "or more",
                    plan.stages, plan.chunks));
  }
  if (plan.micro_batches % plan.stages != 0) {
    return MakeMisfit({"plan.micro_batches", "plan.pp", "plan.schedule"},
                      fmt::format("interleaved: found {} micro-batches, expected a multiple of the "
                                  "{} stages",
                                  plan.micro_batches, plan.stages));
  }
  return {};
}

std::vector<StageStep> StageOrder(const PipelinePlan& plan, int64_t stage) {
  switch (plan.schedule) {
    case PipelineSchedule::kGpipe: return GpipeOrder(plan);
    case PipelineSchedule::k1F1B:
    case PipelineSchedule::kZeroBubble: return OneByOneOrder(plan, stage);
    case PipelineSchedule::kInterleaved: return InterleavedOrder(plan, stage);
  }
  return {};
}

std::vector<TimedStep> TimePipeline(const PipelinePlan& plan, const StepCosts& costs) {
  std::vector<std::vector<StageStep>> orders;
  for (int64_t stage = 0; stage < plan.stages; ++stage) orders.push_back(StageOrder(plan, stage));
  std::vector<size_t> next(orders.size());
  std::vector<int64_t> free_at(orders.size());
  StepEnds ends(plan);
  std::vector<TimedStep> timed;
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t i = 0; i < orders.size(); ++i) {
      const auto stage = static_cast<int64_t>(i);
      for (; next[i] < orders[i].size(); ++next[i]) {
        const StageStep& step = orders[i][next[i]];
        const std::optional<int64_t> ready = ends.ReadyAt(stage, step);
        if (!ready) break;
        const int64_t begin = std::max(*ready, free_at[i]);
        free_at[i] = begin + CostOf(step.pass, costs);
        ends.At(stage, step) = free_at[i];
        timed.push_back({.stage = stage, .step = step, .begin = begin, .end = free_at[i]});
        moved = true;
      }
    }
  }
  std::ranges::stable_sort(timed, [](const TimedStep& a, const TimedStep& b) {
    return std::tie(a.begin, a.end, a.stage) < std::tie(b.begin, b.end, b.stage);
  });
  return timed;
}

}  // namespace etude
