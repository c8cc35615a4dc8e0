#include "src/synth/job/pipeline_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace etude {
namespace {

std::string OrderText(const std::vector<StageStep>& order) {
  std::string text;
  for (const StageStep& step : order) {
    if (!text.empty()) text += ' ';
    text += "FBIW"[static_cast<size_t>(step.pass)];
    text += std::to_string(step.micro_batch);
    if (step.chunk != 0) text += static_cast<char>('a' + step.chunk);
  }
  return text;
}

std::vector<PipelinePlan> Plans() {
  std::vector<PipelinePlan> plans;
  for (int64_t stages = 1; stages <= 6; ++stages) {
    for (int64_t count = 1; count <= 13; ++count) {
      for (const PipelineSchedule schedule :
           {PipelineSchedule::kGpipe, PipelineSchedule::k1F1B, PipelineSchedule::kZeroBubble}) {
        plans.push_back({.schedule = schedule, .stages = stages, .micro_batches = count});
      }
      for (int64_t chunks = 2; chunks <= 4; ++chunks) {
        const PipelinePlan plan{.schedule = PipelineSchedule::kInterleaved,
                                .stages = stages,
                                .micro_batches = count,
                                .chunks = chunks};
        if (CheckPipeline(plan)) plans.push_back(plan);
      }
    }
  }
  return plans;
}

// Durations of steps, in time units.
struct StepCosts {
  int64_t forward = 1;
  int64_t input_gradient = 1;
  int64_t weight_gradient = 1;
};

struct TimedStep {
  int64_t stage = 0;
  StageStep step;
  int64_t begin = 0;
  int64_t end = 0;
};

// End times of steps.
class StepEnds {
 public:
  explicit StepEnds(const PipelinePlan& plan)
      : plan_(plan),
        ends_(static_cast<size_t>(3 * plan.stages * plan.chunks * plan.micro_batches)) {}

  std::optional<int64_t>& At(int64_t stage, const StageStep& step) {
    return ends_[Index(Kind(step.pass), stage, step.micro_batch, step.chunk)];
  }
  // Returns when the step's inputs are ready; nullopt: not yet.
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

// Returns all steps of all stages in order of time. Each begins as soon as its stage is free and
// its inputs are ready; communication takes no time.
std::vector<TimedStep> TimePipeline(const PipelinePlan& plan, const StepCosts& costs = {}) {
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

int64_t Makespan(const PipelinePlan& plan, const StepCosts& costs) {
  int64_t end = 0;
  for (const TimedStep& step : TimePipeline(plan, costs)) end = std::max(end, step.end);
  return end;
}

// Each stage runs every pass of every micro-batch and chunk once, in an order consistent with the
// other stages' orders, and nothing before its inputs.
TEST(PipelineSchedule, DependenciesHold) {
  for (const PipelinePlan& plan : Plans()) {
    std::map<std::tuple<int64_t, int64_t, int64_t, StagePass>, TimedStep> steps;
    for (const TimedStep& step : TimePipeline(plan)) {
      EXPECT_TRUE(steps
                      .emplace(std::tuple(step.stage, step.step.micro_batch, step.step.chunk,
                                          step.step.pass),
                               step)
                      .second);
    }
    const bool split = plan.schedule == PipelineSchedule::kZeroBubble;
    ASSERT_EQ(steps.size(),
              static_cast<size_t>(plan.stages * plan.micro_batches * plan.chunks * (split ? 3 : 2)))
        << "some stages wait for ever";
    const StagePass backward = split ? StagePass::kInputGradient : StagePass::kBackward;
    for (const auto& [key, step] : steps) {
      const auto& [stage, micro_batch, chunk, pass] = key;
      const auto end_of = [&, micro_batch = micro_batch](int64_t place, StagePass of) {
        return steps.at({place % plan.stages, micro_batch, place / plan.stages, of}).end;
      };
      const int64_t place = chunk * plan.stages + stage;
      const int64_t last = plan.stages * plan.chunks - 1;
      if (pass == StagePass::kForward && place > 0) {
        EXPECT_GE(step.begin, end_of(place - 1, StagePass::kForward));
      }
      if (pass == backward) {
        EXPECT_GE(step.begin, end_of(place, StagePass::kForward));
        if (place < last) {
          EXPECT_GE(step.begin, end_of(place + 1, backward));
        }
      }
      if (pass == StagePass::kWeightGradient) {
        EXPECT_GE(step.begin, end_of(place, backward));
      }
    }
  }
}

// Waiting time in addition to the m micro-batches' own time, with f = 1, b = 1, w = 1: (p - 1)(f +
// b + w) for GPipe and 1F1B (Huang et al. 2019; Narayanan et al. 2021, section 2.2.1), a v-th of it
// with v chunks, which take a v-th of the time (section 2.2.2), and (p - 1)(f + b - w) for ZB-H1
// (Qi et al. 2023, section 2.3).
TEST(PipelineSchedule, BubblesAreThePublishedOnes) {
  for (const PipelinePlan& plan : Plans()) {
    const int64_t bubble = Makespan(plan, {}) - 3 * plan.micro_batches * plan.chunks;
    if (plan.schedule != PipelineSchedule::kZeroBubble) {
      EXPECT_EQ(bubble, 3 * (plan.stages - 1))
          << plan.stages << " stages, " << plan.micro_batches << " micro-batches, " << plan.chunks;
    } else if (plan.micro_batches >= plan.stages) {
      EXPECT_EQ(bubble, plan.stages - 1)
          << plan.stages << " stages, " << plan.micro_batches << " micro-batches";
    }
  }
  EXPECT_EQ(Makespan({.schedule = PipelineSchedule::k1F1B, .stages = 4, .micro_batches = 8},
                     {.forward = 2, .input_gradient = 3, .weight_gradient = 1}),
            (8 + 3) * 6);
  EXPECT_EQ(Makespan({.schedule = PipelineSchedule::kInterleaved,
                      .stages = 4,
                      .micro_batches = 8,
                      .chunks = 2},
                     {.forward = 2, .input_gradient = 3, .weight_gradient = 1}),
            (8 * 2 + 3) * 6);
}

// BubbleShare equals the bubble of the simulated orders.
TEST(PipelineSchedule, BubbleShareIsThatOfTheOrder) {
  // 1F1B: (p - 1) / (m + p - 1), Narayanan et al. 2021: 3 / 11.
  EXPECT_DOUBLE_EQ(*BubbleShare({.stages = 4, .micro_batches = 8}), 3.0 / 11);
  EXPECT_DOUBLE_EQ(*BubbleShare({.stages = 1, .micro_batches = 8}), 0);
  for (const PipelinePlan& plan : Plans()) {
    const std::optional<double> share = BubbleShare(plan);
    const bool known =
        plan.schedule != PipelineSchedule::kZeroBubble || plan.micro_batches >= plan.stages;
    ASSERT_EQ(share.has_value(), known);
    if (!share) continue;
    const auto span = static_cast<double>(Makespan(plan, {}));
    const auto busy = static_cast<double>(3 * plan.micro_batches * plan.chunks);
    EXPECT_NEAR(*share, (span - busy) / span, 1e-12)
        << plan.stages << " stages, " << plan.micro_batches << " micro-batches, " << plan.chunks;
  }
}

// Max number of micro-batches with activations on a stage: m with GPipe, p - stage with 1F1B, p
// with ZB-H1.
TEST(PipelineSchedule, ActivationsInFlight) {
  for (const PipelinePlan& plan : Plans()) {
    if (plan.schedule == PipelineSchedule::kInterleaved) continue;
    for (int64_t stage = 0; stage < plan.stages; ++stage) {
      int64_t live = 0;
      int64_t most = 0;
      for (const StageStep& step : StageOrder(plan, stage)) {
        if (step.pass == StagePass::kForward) most = std::max(most, ++live);
        if (step.pass == StagePass::kBackward || step.pass == StagePass::kWeightGradient) --live;
      }
      EXPECT_EQ(live, 0);
      int64_t expected = plan.micro_batches;
      if (plan.schedule == PipelineSchedule::k1F1B) expected = plan.stages - stage;
      if (plan.schedule == PipelineSchedule::kZeroBubble) expected = plan.stages;
      EXPECT_EQ(most, std::min(expected, plan.micro_batches));
    }
  }
}

TEST(PipelineSchedule, ByHand) {
  const auto text = [](PipelineSchedule schedule, int64_t chunks, int64_t stage) {
    return OrderText(StageOrder(
        {.schedule = schedule, .stages = 2, .micro_batches = 4, .chunks = chunks}, stage));
  };
  EXPECT_EQ(text(PipelineSchedule::kGpipe, 1, 0), "F0 F1 F2 F3 B0 B1 B2 B3");
  EXPECT_EQ(text(PipelineSchedule::k1F1B, 1, 0), "F0 F1 B0 F2 B1 F3 B2 B3");
  EXPECT_EQ(text(PipelineSchedule::k1F1B, 1, 1), "F0 B0 F1 B1 F2 B2 F3 B3");
  EXPECT_EQ(text(PipelineSchedule::kZeroBubble, 1, 0), "F0 F1 I0 W0 F2 I1 W1 F3 I2 W2 I3 W3");
  EXPECT_EQ(text(PipelineSchedule::kZeroBubble, 1, 1), "F0 I0 F1 I1 W0 F2 I2 W1 F3 I3 W2 W3");
  // Figure 4 of Narayanan et al. 2021, with two stages: 'b' is the second chunk.
  EXPECT_EQ(text(PipelineSchedule::kInterleaved, 2, 1),
            "F0 F1 F0b B0b F1b B1b F2 B0 F3 B1 F2b B2b F3b B3b B2 B3");
  EXPECT_EQ(text(PipelineSchedule::kInterleaved, 2, 0),
            "F0 F1 F0b F1b F2 B0b F3 B1b F2b B0 F3b B1 B2b B3b B2 B3");
}

TEST(PipelineSchedule, PlansThatThereAreNot) {
  const auto error = [](const PipelinePlan& plan) {
    const Fits status = CheckPipeline(plan);
    return status ? "" : status.error().message;
  };
  EXPECT_EQ(error({.stages = 0}),
            "found 0 stages, 1 micro-batches and 1 chunks, expected one of each or more");
  EXPECT_EQ(error({.stages = 2, .chunks = 2}),
            "found 2 chunks on each stage, expected one unless interleaved");
  EXPECT_EQ(error({.schedule = PipelineSchedule::kInterleaved,
                   .stages = 4,
                   .micro_batches = 6,
                   .chunks = 2}),
            "interleaved: found 6 micro-batches, expected a multiple of the 4 stages");
  EXPECT_FALSE(CheckPipeline({.stages = INT64_MAX, .micro_batches = INT64_MAX}));
}

}  // namespace
}  // namespace etude
