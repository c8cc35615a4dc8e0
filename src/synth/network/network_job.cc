#include "src/synth/network/network_job.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/ceil_div.h"
#include "src/synth/job/step_program.h"
#include "src/synth/network/network_memory.h"
#include "src/synth/network/replica_buckets.h"

namespace etude {
namespace {

constexpr size_t kAllReplicas = 0;  // StepGroup, and Replicas of ReplicaBuckets

class NetworkProgram {
 public:
  using In = StepProgram::In;

  NetworkProgram(const Network& network, const NetworkPlan& plan)
      : network_(network),
        layers_(network.model.layers),
        plan_(plan),
        costs_(network, plan.images, plan.phase),
        memory_(FindNetworkMemory(network, costs_, plan.phase)),
        program_(1),
        buckets_(program_,
                 {.zero_stage = plan.zero_stage,
                  .bucket = plan.bucket,
                  .weight = ElementBytes(network.model.weights).value_or(0),
                  .gradient = ElementBytes(network.model.gradients).value_or(0)},
                 {{.group = kAllReplicas, .ranks = plan.data, .of = ""}}) {
    AddUnits();
  }

  std::vector<StepWork> Run() {
    for (int64_t i = 0; i < plan_.micro_batches; ++i) {
      if (plan_.phase == NetworkPhase::kInference) {
        for (int64_t step = 0; step < plan_.steps; ++step) {
          program_.Begin({.step = step, .phase = Phase::kForward, .micro_batch = i});
          Infer(i * plan_.steps + step);
        }
      } else {
        Train(i);
      }
    }
    if (plan_.phase == NetworkPhase::kTraining) Update();
    return std::move(program_.works());
  }

 private:
  // Weights of neighbouring layers that are gathered and reduced together.
  struct Unit {
    std::string name;
    int64_t weights = 0;
  };
  // Gradients of a layer's output, as they arrive from its users.
  struct Gradient {
    In works;
    int64_t addends = 0;
    bool of_slices = false;  // all slices together are one addend
  };

  // Assigns units. A unit begins with a layer that has weights; others belong to the previous unit.
  void AddUnits() {
    for (size_t i = 0; i < layers_.size(); ++i) {
      parameters_.push_back(ParametersOf(layers_[i], network_.InputsOf(i)));
      if (units_.empty() || (parameters_[i] != 0 && units_.back().weights != 0 &&
                             layers_[i].unit != units_.back().name)) {
        units_.push_back({});
      }
      if (parameters_[i] != 0) units_.back().name = layers_[i].unit;
      units_.back().weights += parameters_[i];
      unit_of_.push_back(units_.size() - 1);
    }
  }

  size_t Push(std::string name, const NetworkWork& work, In data) {
    return program_.Compute({.name = std::move(name),
                             .data = std::move(data),
                             .flops = work.flops,
                             .matrix_flops = work.matrix_flops,
                             .type = network_.model.weights,
                             .product = work.product,
                             .memory = work.read + work.written});
  }
  size_t Compute(std::string_view what, std::string_view part, const NetworkWork& work, In data) {
    std::ranges::sort(data);
    data.erase(std::ranges::unique(data).begin(), data.end());
    return Push(fmt::format("{}{}{} #{}", what, part.empty() ? "" : " ", part, pass_), work,
                std::move(data));
  }

  // ---- forward

  void Train(int64_t micro_batch) {
    pass_ = micro_batch;
    program_.Begin({.phase = Phase::kForward, .micro_batch = micro_batch});
    In image;
    In noise;
    if (network_.model.denoises) {
      noise = {Compute("noise", "", costs_.Noise(), {})};
      Hold(noise, costs_.NeedsOf(layers_.size() - 1).other);
      image = {Compute("noisy image", "", costs_.AddNoise(), noise)};
      Hold(image, memory_.made[0]);
    }
    Backward(Forward(image, noise), micro_batch == plan_.micro_batches - 1);
  }

  void Infer(int64_t pass) {
    pass_ = pass;
    // The image that noise is removed from: a new one at each step.
    const Bytes sample = network_.model.denoises ? costs_.ResultBytes(0) : Bytes{};
    if (pass % plan_.steps == 0) pending_ = sample;
    const In predicted = Forward(sample_, {});
    if (network_.model.denoises) {
      sample_ = {Compute("denoise", "", costs_.Denoise(), predicted)};
      Hold(sample_, sample);
      Free(sample);
    }
  }

  // Adds the forward pass and returns the loss; for inference the loss's input.
  In Forward(const In& image, const In& target) {
    std::vector<In> results(layers_.size());
    std::optional<size_t> unit;
    In weights;
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (unit != unit_of_[i]) {
        if (unit) Free(Gathered(*unit));
        weights = GatherWeights(unit_of_[i]);
      }
      unit = unit_of_[i];
      In data;
      if (i == 0) data = image;
      for (const size_t input : layers_[i].inputs) Append(results[input], data);
      const bool is_loss = i + 1 == layers_.size();
      if (is_loss && plan_.phase == NetworkPhase::kInference) return data;
      if (is_loss) Append(target, data);
      if (parameters_[i] != 0) Append(weights, data);
      const NetworkWorks works = costs_.Of(i);
      const bool held_before = i == 0 && network_.model.denoises;
      if (!held_before) pending_ = pending_ + memory_.made[i];
      if (works.forward) {
        data = {Compute(layers_[i].name, "", *works.forward, std::move(data))};
        Hold(data, std::exchange(pending_, Bytes{}));
        Free(memory_.freed_forward[i]);
      }
      results[i] = std::move(data);
    }
    Free(Gathered(*unit));
    return results.back();
  }

  // ---- memory

  // Holds memory from the begin of a work until another one is done.
  void Hold(const In& work, Bytes bytes) {
    Bytes& held = program_.works()[work.back()].held;
    held = held + bytes;
  }
  // Frees memory after the last computation.
  void Free(Bytes bytes) {
    if (bytes.count == 0) return;
    Bytes& freed = program_.works()[*program_.last_compute()].freed;
    freed = freed + bytes;
  }
  Bytes Gathered(size_t unit) const { return buckets_.Gathered(std::array{units_[unit].weights}); }

  In GatherWeights(size_t unit) {
    In gathered;
    buckets_.GatherWeights(fmt::format("{} weights all_gather #{}", units_[unit].name, pass_),
                           std::array{units_[unit].weights}, gathered);
    return gathered;
  }
  static void Append(const In& from, In& to) { to.insert(to.end(), from.begin(), from.end()); }

  // ---- backward

  void Backward(const In& loss, bool last) {
    program_.Begin({.phase = Phase::kBackward, .micro_batch = pass_});
    buckets_.BeginMicroBatch(last);
    std::vector<Gradient> gradients(layers_.size());
    gradients.back() = {.works = loss, .addends = 1};
    std::optional<size_t> unit;
    In weights;
    for (size_t i = layers_.size(); i-- > 0;) {
      if (unit != unit_of_[i]) {
        if (unit) EndUnit(*unit);
        weights = GatherWeights(unit_of_[i]);
      }
      unit = unit_of_[i];
      if (costs_.NeedsGradient(i)) LayerBackward(i, weights, last, gradients);
    }
    EndUnit(*unit);
    buckets_.EndMicroBatch();
  }
  void EndUnit(size_t unit) {
    Free(Gathered(unit));
    buckets_.EndUnit();
  }

  void LayerBackward(size_t i, const In& weights, bool last, std::vector<Gradient>& gradients) {
    const NetworkLayer& layer = layers_[i];
    const int64_t addends = gradients[i].addends + (gradients[i].of_slices ? 1 : 0);
    In in = std::move(gradients[i].works);
    if (addends > 1) {
      in = {Compute(layer.name, "gradient sum", costs_.GradientSum(i, addends), std::move(in))};
    }
    const NetworkWorks works = costs_.Of(i, pass_ > 0 && buckets_.Keeps(kAllReplicas));
    In of_inputs = in;
    In of_weights;
    const bool is_product = layer.kind == LayerKind::kConv || layer.kind == LayerKind::kLinear;
    if (works.input_gradient) {
      In data = in;
      if (parameters_[i] != 0) Append(weights, data);
      of_inputs = {Compute(layer.name, is_product ? "input gradient" : "backward",
                           *works.input_gradient, std::move(data))};
      of_weights = of_inputs;
    }
    if (works.weight_gradient) {
      of_weights = {Compute(layer.name, "weight gradient", *works.weight_gradient, in)};
    }
    for (const size_t input : layer.inputs) {
      if (!costs_.NeedsGradient(input)) continue;
      const bool passes =
          layer.kind == LayerKind::kAdd && network_.shapes[input] == network_.shapes[i];
      Append(passes ? in : of_inputs, gradients[input].works);
      const bool is_slice = layer.kind == LayerKind::kSlice;
      gradients[input].addends += is_slice ? 0 : 1;
      gradients[input].of_slices = gradients[input].of_slices || is_slice;
    }
    Free(memory_.freed_backward[i]);
    if (parameters_[i] == 0 || !buckets_.Reduces(last)) return;
    const int64_t biases = is_product && layer.bias ? layer.shape.channels : 0;
    buckets_.Add(kAllReplicas, biases, of_weights);
    buckets_.Add(kAllReplicas, parameters_[i] - biases, of_weights);
  }

  void Update() {
    program_.Begin({.phase = Phase::kBackward});
    In reduced = buckets_.EndBackward();
    program_.Begin({.phase = Phase::kOptimizer});
    const int64_t updated = buckets_.updated();
    const NetworkWork update = UpdateWork(network_.model, plan_.optimizer, updated);
    const size_t optimizer = Push("optimizer", update, std::move(reduced));
    buckets_.GatherUpdated(optimizer);
    if (!network_.model.denoises) return;
    const NetworkWork average = AverageWork(network_.model, updated);
    Push("average of weights", average, {optimizer});
  }

  const Network& network_;
  const std::vector<NetworkLayer>& layers_;
  const NetworkPlan& plan_;
  const NetworkCosts costs_;
  const NetworkMemory memory_;
  StepProgram program_;
  ReplicaBuckets buckets_;
  std::vector<int64_t> parameters_;  // by layer
  std::vector<Unit> units_;
  std::vector<size_t> unit_of_;  // by layer
  In sample_;
  Bytes pending_;  // in use from the next computation on
  int64_t pass_ = 0;
};

}  // namespace

StepStates StatesOfNetwork(const Network& network, const NetworkPlan& plan) {
  const int64_t parameters = network.parameters();
  const int64_t weight = ElementBytes(network.model.weights).value_or(0);
  if (plan.phase == NetworkPhase::kInference) return {.weights = Bytes{parameters * weight}};
  // Share of a replica from this stage of ZeRO on.
  const auto share = [&](int64_t stage) {
    return plan.zero_stage >= stage ? CeilDiv(parameters, plan.data) : parameters;
  };
  return {.weights = Bytes{share(3) * weight},
          .gradients = Bytes{share(2) * ElementBytes(network.model.gradients).value_or(0)},
          .optimizer = Bytes{share(1) * OptimizerBytes(network.model, plan.optimizer).count}};
}

Status CheckNetworkPlan(const Network& network, const NetworkPlan& plan) {
  constexpr int64_t kMost = int64_t{1} << 24;
  constexpr double kMostNodes = 5e7;
  for (const auto& [name, value] :
       {std::pair("data-parallel ranks", plan.data), std::pair("micro-batches", plan.micro_batches),
        std::pair("steps of sampling", plan.steps)}) {
    if (value < 1 || value > kMost) {
      return BadInput(fmt::format("{}: found {}, expected 1 to {}", name, value, kMost));
    }
  }
  if (plan.zero_stage < 0 || plan.zero_stage > 3) {
    return BadInput(fmt::format("ZeRO stage: found {}, expected 0 to 3", plan.zero_stage));
  }
  if (plan.bucket.count < 1) {
    return BadInput(fmt::format("bucket: found {} bytes, expected one or more", plan.bucket.count));
  }
  ETUDE_RETURN_IF_ERROR(CheckNetworkWork(network, plan.images));
  const NetworkLayer& loss = network.model.layers.back();
  const Shape& predicted = network.shapes[loss.inputs.front()];
  if (network.model.denoises &&
      (loss.kind != LayerKind::kSquaredError || predicted != network.shapes.front())) {
    return BadInput(
        fmt::format("loss: found {} of {} × {} × {}, expected squared_error of the "
                    "noise, which has the image's shape: {} × {} × {}",
                    Name(loss.kind), predicted.channels, predicted.height, predicted.width,
                    network.shapes.front().channels, network.shapes.front().height,
                    network.shapes.front().width));
  }
  if (plan.steps > 1 && (plan.phase != NetworkPhase::kInference || !network.model.denoises)) {
    return BadInput("steps: expected one, unless phase is sampling");
  }
  constexpr double kNodesOfLayer = 4;
  const double nodes = static_cast<double>(network.model.layers.size() + 3) * kNodesOfLayer *
                       static_cast<double>(plan.micro_batches) * static_cast<double>(plan.steps);
  if (nodes > kMostNodes) {
    return BadInput(fmt::format("found about {:.1e} nodes for each rank, expected up to {:.1e}",
                                nodes, kMostNodes));
  }
  return {};
}

Result<StepJob> MakeNetworkJob(const Network& network, const NetworkPlan& plan) {
  ETUDE_RETURN_IF_ERROR(CheckNetworkPlan(network, plan));
  // All places of the last axis have their own programs: here there is one place.
  ETUDE_ASSIGN_OR_RETURN(
      Mesh mesh, Mesh::Make({{.name = "dp", .size = plan.data}, {.name = "pp", .size = 1}}));
  std::vector<std::vector<StepWork>> programs;
  programs.push_back(NetworkProgram(network, plan).Run());
  StepJob job(std::move(mesh), {{.axes = AxisSet{1}}}, std::move(programs));
  job.SetStates({StatesOfNetwork(network, plan)});
  return job;
}

}  // namespace etude
