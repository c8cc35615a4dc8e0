#include "src/jobs/edits/layer_memory.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "src/jobs/edits/repeated_memory.h"
#include "src/run/step/recorded_step.h"

namespace etude {
namespace {

using Order = RepeatedStep::Order;

constexpr uint32_t kOutside = 0;     // place of all that is in no layer
constexpr uint32_t kFirstLayer = 1;  // place

bool ReadsTensors(const Trace& trace, NodeId node) {
  bool reads = false;
  ForEachTensor(trace, trace.inputs(node), [&](TensorId) { reads = true; });
  return reads;
}

// Returns the passes of a step with layers: each repetition, and what comes before and after it.
RepeatedStep StepOfLayers(const RecordedStep& recorded, const LayerStack& stack, size_t layers) {
  const Trace& trace = recorded.trace();
  const auto recorded_layers = static_cast<uint32_t>(stack.layers);
  RepeatedStep step{.first_layer = kFirstLayer, .end_layer = kFirstLayer + recorded_layers};
  for (uint32_t place = 0; place < step.end_layer; ++place) {
    step.shares.push_back({{.place = place, .share = 1}});
  }
  std::map<NodeId, uint32_t> lists;  // shares of operators on lists
  for (const ListOperator& list : stack.lists) {
    lists[list.node] = static_cast<uint32_t>(step.shares.size());
    std::vector<PlaceShare>& shares = step.shares.emplace_back();
    shares.push_back({.place = kOutside, .share = 1 - list.share});
    for (uint32_t layer = 0; layer < recorded_layers; ++layer) {
      shares.push_back({.place = kFirstLayer + layer, .share = list.share / recorded_layers});
    }
  }
  for (const LayerRun& run : stack.runs) {
    const bool is_backward = run.layers.front() > run.layers.back();
    step.passes.push_back({});
    step.passes.push_back({.order = is_backward ? Order::kBackward : Order::kForward});
  }
  step.passes.push_back({});
  Nanos now;
  for (const NodeId node : recorded.nodes()) {
    now = trace.start(node).value_or(now);
    uint32_t pass = 0;
    uint32_t work = kOutside;
    for (uint32_t i = 0; i < stack.runs.size(); ++i) {
      const LayerRun& run = stack.runs[i];
      if (now < run.bounds.front()) break;
      const auto period = run.PeriodAt(trace.lane_id(node), now);
      pass = 2 * i + (period ? 1 : 2);
      if (!period) continue;
      work = kFirstLayer + static_cast<uint32_t>(run.layers[*period]);
      break;
    }
    // What an operator on lists calls for one element belongs to its layer, or to none.
    for (NodeId above = node; above && work == kOutside; above = trace.parent(above)) {
      if (const auto list = lists.find(above); list != lists.end()) work = list->second;
      if (ReadsTensors(trace, above)) break;
    }
    step.pass_of.push_back(pass);
    step.work_of.push_back(work);
  }
  RepeatedStep::Stage stage{
      .places = {kOutside}, .layers = static_cast<uint32_t>(layers), .runs = {}};
  for (uint32_t pass = 0; pass < step.passes.size(); ++pass) stage.runs.push_back({.pass = pass});
  step.stages = {std::move(stage)};
  return step;
}

// Returns the passes of the stages of a pipeline. The places of the split are layers if stages run
// some of them repeatedly, or not at all.
RepeatedStep StepOfStages(const RecordedStep& recorded, const StageSplit& split,
                          const PipelinePlan& plan) {
  RepeatedStep step;
  step.passes = {{.order = Order::kRecorded, .is_repeated = false},
                 {.order = Order::kForward, .is_repeated = true},
                 {.order = Order::kBackward, .is_repeated = true},
                 {.order = Order::kRecorded, .is_repeated = false}};
  step.shares = split.shares;
  step.micro_batches = plan.micro_batches;
  for (const NodeId node : recorded.nodes()) {
    step.pass_of.push_back(static_cast<uint32_t>(split.parts[node.index()]));
    step.work_of.push_back(split.works[node.index()]);
  }
  const auto places = static_cast<uint32_t>(split.gradients.size());
  bool is_by_layer = false;
  for (uint32_t i = 0; i < split.stages.size(); ++i) {
    is_by_layer =
        is_by_layer || split.stages[i].segments != std::vector<std::vector<uint32_t>>{{i}};
  }
  step.first_layer = is_by_layer ? 1 : places;
  step.end_layer = is_by_layer ? places - 1 : places;
  const auto run_of = [](StepPart part, int64_t micro_batch = 0) {
    return RepeatedStep::Run{.pass = static_cast<uint32_t>(part), .micro_batch = micro_batch};
  };
  for (size_t i = 0; i < split.stages.size(); ++i) {
    RepeatedStep::Stage& stage = step.stages.emplace_back();
    for (const std::vector<uint32_t>& segment : split.stages[i].segments) {
      for (const uint32_t place : segment) {
        const bool is_layer = place >= step.first_layer && place < step.end_layer;
        if (is_layer) ++stage.layers;
        if (!is_layer) stage.places.push_back(place);
      }
    }
    stage.runs.push_back(run_of(StepPart::kBefore));
    for (const StageStep& one : StageOrder(plan, static_cast<int64_t>(i))) {
      const bool is_forward = one.pass == StagePass::kForward;
      stage.runs.push_back(
          run_of(is_forward ? StepPart::kForward : StepPart::kBackward, one.micro_batch));
    }
    stage.runs.push_back(run_of(StepPart::kAfter));
  }
  return step;
}

std::vector<TensorPeaks> ByKind(const std::vector<DevicePeaks>& stages) {
  std::vector<TensorPeaks> found;
  for (const DevicePeaks& stage : stages) {
    TensorPeaks& peaks = found.emplace_back();
    for (const auto& [device, bytes] : stage) {
      Bytes& peak = peaks[std::string(device.substr(0, device.find(':')))];
      peak = std::max(peak, bytes);
    }
  }
  return found;
}

}  // namespace

std::optional<TensorPeaks> MemoryOfLayers(const Trace& trace, const LayerStack& stack,
                                          size_t layers) {
  const Result<RecordedStep> recorded = RecordedStep::Select(trace, "");
  if (!recorded) return std::nullopt;
  const auto peaks =
      FindRepeatedMemory(TensorLives(*recorded), StepOfLayers(*recorded, stack, layers));
  if (!peaks) return std::nullopt;
  return ByKind(*peaks).front();
}

std::optional<std::vector<TensorPeaks>> MemoryOfStages(const Trace& trace, const StageSplit& split,
                                                       const PipelinePlan& plan) {
  const Result<RecordedStep> recorded = RecordedStep::Select(trace, "");
  if (!recorded) return std::nullopt;
  const auto peaks =
      FindRepeatedMemory(TensorLives(*recorded), StepOfStages(*recorded, split, plan));
  if (!peaks) return std::nullopt;
  return ByKind(*peaks);
}

}  // namespace etude
