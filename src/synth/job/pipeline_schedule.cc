#include "src/synth/job/pipeline_schedule.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

namespace etude {
namespace {

constexpr int64_t kMostSteps = 100'000'000;  // total of all stages

std::vector<StageStep> GpipeOrder(const PipelinePlan& plan) {
  std::vector<StageStep> order;
  for (int64_t i = 0; i < plan.micro_batches; ++i) order.push_back({.micro_batch = i});
  for (int64_t i = 0; i < plan.micro_batches; ++i) {
    order.push_back({.pass = StagePass::kBackward, .micro_batch = i});
  }
  return order;
}

// Starts as many micro-batches as there are stages from here to the last one. ZB-H1: gradients of
// weights lag behind those of inputs by the number of stages before this one; every stage then
// keeps activations of as many micro-batches as the first one.
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

std::optional<double> BubbleShare(const PipelinePlan& plan) {
  const auto share = [&](double busy) {
    const auto others = static_cast<double>(plan.stages - 1);
    return others / (busy + others);
  };
  const auto batches = static_cast<double>(plan.micro_batches);
  switch (plan.schedule) {
    case PipelineSchedule::kGpipe:
    case PipelineSchedule::k1F1B: return share(batches);
    case PipelineSchedule::kInterleaved: return share(batches * static_cast<double>(plan.chunks));
    case PipelineSchedule::kZeroBubble:
      if (plan.micro_batches < plan.stages) return std::nullopt;
      return share(3 * batches);
  }
  return std::nullopt;
}

}  // namespace etude
