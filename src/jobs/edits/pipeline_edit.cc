#include "src/jobs/edits/pipeline_edit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "src/jobs/edits/comm_edits.h"
#include "src/jobs/edits/layer_memory.h"
#include "src/report/text/format.h"
#include "src/run/activity.h"
#include "src/synth/plan_settings.h"
#include "src/transform/edit/contraction.h"
#include "src/transform/layers/step_items.h"

namespace etude {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostStages = 1 << 16;
constexpr int64_t kMostMicroBatches = 1 << 20;
constexpr uint64_t kMostPipelineNodes = 30'000'000;  // of all ranks: about 10 GB
constexpr std::string_view kReplicas = "data_parallel";

// Nodes of a part of the step that a stage runs.
struct PassNodes {
  std::vector<RunnableNode> nodes;
  std::vector<std::vector<uint32_t>> deps;  // on earlier ones
  std::vector<bool> is_last;                // no other node waits for it
  std::vector<Nanos> times;                 // on the host
  uint32_t segment = 0;                     // first node of the last segment
};

// Part and stages of a node of a recorded rank.
struct NodeWork {
  StepPart part = StepPart::kForward;
  std::span<const PlaceShare> shares;
  Nanos time;  // on the host
};

// Finds the parts and stages of a rank's nodes. Nodes that are not recorded, such as time between
// operators, belong to the first node that waits for them.
std::vector<NodeWork> FindWorks(const Trace& trace, const RunnableRank& rank,
                                const StageSplit& split) {
  constexpr uint32_t kNone = UINT32_MAX;
  const Launches launches(trace);
  const size_t count = rank.nodes.size();
  std::vector<NodeWork> works(count);
  std::vector<bool> known(count);
  std::vector<uint32_t> next(count, kNone);
  for (uint32_t i = 0; i < count; ++i) {
    for (const uint32_t dep : rank.DepsOf(i)) next[dep] = std::min(next[dep], i);
    const NodeId origin = rank.nodes[i].origin;
    if (!origin || !rank.nodes[i].start) continue;
    const bool is_launched = trace.place(origin) == Place::kDevice;
    const auto time = is_launched ? launches.time(origin) : trace.start(origin);
    works[i] = {.part = split.parts[origin.index()],
                .shares = split.SharesOf(origin),
                .time = time.value_or(Nanos{})};
    known[i] = true;
  }
  for (size_t i = count; i-- > 0;) {
    if (known[i] || next[i] == kNone || !known[next[i]]) continue;
    works[i] = works[next[i]];
    known[i] = true;
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (known[i]) continue;
    const auto deps = rank.DepsOf(i);
    if (!deps.empty()) {
      works[i] = works[deps.back()];
    } else {
      works[i].shares = split.shares.front();
    }
  }
  return works;
}

// Multiplies the work of a node.
void Multiply(double factor, RunnableNode& node) {
  const auto times = [&](uint64_t work) {
    return std::max<uint64_t>(
        static_cast<uint64_t>(std::llround(static_cast<double>(work) * factor)), 1);
  };
  if (node.duration) {
    node.duration = Nanos{std::llround(static_cast<double>(node.duration->count) * factor)};
  }
  if (node.ops != 0) node.ops = times(node.ops);
  if (node.bytes != 0) node.bytes = times(node.bytes);
}

// Returns the factor for the time of a node in a segment of a stage; nullopt if it does not run
// there. Work of several places runs once, in the first segment with one of them.
std::optional<double> FactorOf(std::span<const PlaceShare> shares, const Stage& stage,
                               size_t segment) {
  const auto runs = [&](const std::vector<uint32_t>& places) {
    return std::ranges::any_of(shares, [&](const PlaceShare& share) {
      return std::ranges::find(places, share.place) != places.end();
    });
  };
  if (!runs(stage.segments[segment])) return std::nullopt;
  if (shares.size() == 1) return 1;
  const auto before = std::span(stage.segments).first(segment);
  if (std::ranges::any_of(before, runs)) return std::nullopt;
  if (shares.front().share >= 1) return 1;
  double factor = 0;
  for (const std::vector<uint32_t>& places : stage.segments) {
    for (const PlaceShare& share : shares) {
      factor += share.share * static_cast<double>(std::ranges::count(places, share.place));
    }
  }
  return factor;
}

// Returns the nodes of a part of the step that a stage runs in a segment.
PassNodes NodesOf(const RunnableRank& rank, std::span<const NodeWork> works, const Stage& stage,
                  size_t segment, StepPart part) {
  PassNodes pass;
  Contraction contraction;
  std::vector<uint32_t> number(rank.nodes.size());
  for (uint32_t i = 0; i < rank.nodes.size(); ++i) {
    std::optional<double> factor;
    if (works[i].part == part) factor = FactorOf(works[i].shares, stage, segment);
    const auto deps = contraction.Add(rank.DepsOf(i), factor.has_value());
    if (!factor) continue;
    number[i] = static_cast<uint32_t>(pass.nodes.size());
    std::vector<uint32_t>& own = pass.deps.emplace_back();
    for (const uint32_t dep : deps) {
      own.push_back(number[dep]);
      pass.is_last[number[dep]] = false;
    }
    RunnableNode node = rank.nodes[i];
    node.start.reset();
    if (*factor != 1) Multiply(*factor, node);
    pass.nodes.push_back(node);
    pass.is_last.push_back(true);
    pass.times.push_back(works[i].time);
  }
  return pass;
}

// The program of one stage.
struct PipelineStage {
  RunnableRank rank;
  std::vector<GradientBucket> buckets;
  uint64_t messages = 0;   // sends
  uint64_t additions = 0;  // of gradients to those of earlier micro-batches
  uint64_t lacking = 0;    // additions that are left out
  uint64_t copies = 0;     // between gradients and buckets
};

// Settings of the program of one stage.
struct StagePlan {
  const PipelinePlan& pipeline;
  const StageSplit& split;
  uint32_t stage = 0;
  int64_t replicas = 1;
  const BucketSizes& sizes;
  const std::optional<CopyRate>& rate;  // nullopt: additions and copies are left out
};

// Builds the program of one stage. `recorded` is made of `trace`.
class StageMaker {
 public:
  StageMaker(const Trace& trace, const RunnableRank& recorded, const StagePlan& plan)
      : trace_(trace), recorded_(recorded), plan_(plan), stage_(plan.split.stages[plan.stage]) {
    RunnableRank& rank = made_.rank;
    rank.names = recorded.names;
    rank.on_device = recorded.on_device;
    if (plan.stage == 0) {
      rank.notes = recorded.notes;
      rank.host_time = recorded.host_time;
    }
  }

  PipelineStage Run(std::span<const NodeWork> works) {
    const PassNodes forward = AllOf(works, StepPart::kForward);
    const PassNodes backward = AllOf(works, StepPart::kBackward);
    if (plan_.replicas > 1 && !gradients_.empty()) FindBuckets();
    done_ = Add(AllOf(works, StepPart::kBefore), {}, std::nullopt);
    for (const StageStep& step : StageOrder(plan_.pipeline, plan_.stage)) {
      if (step.pass == StagePass::kForward) Forward(forward, step.micro_batch);
      if (step.pass == StagePass::kBackward && plan_.split.has_backward) {
        Backward(backward, step.micro_batch);
      }
    }
    if (!reduced_.empty()) WaitForReplicas();
    Add(AllOf(works, StepPart::kAfter), done_, std::nullopt);
    return std::move(made_);
  }

 private:
  using Deps = std::vector<uint32_t>;

  bool is_first() const { return plan_.stage == 0; }
  bool is_last() const { return plan_.stage + 1 == plan_.split.stages.size(); }

  void FindBuckets() {
    made_.buckets = BucketsOf(gradients_, plan_.sizes);
    std::ranges::sort(made_.buckets, {}, &GradientBucket::last);
    made_.rank.groups.push_back({.name = fmt::format("{}.{}", kReplicas, plan_.stage),
                                 .ranks = std::nullopt,
                                 .size = plan_.replicas});
  }

  // Returns the nodes of a part of the step in all segments, one segment after another. Those of
  // the backward pass are in reversed order, and have their gradients.
  PassNodes AllOf(std::span<const NodeWork> works, StepPart part) {
    PassNodes all;
    const bool is_backward = part == StepPart::kBackward;
    const size_t count = stage_.segments.size();
    for (size_t i = 0; i < count; ++i) {
      const size_t segment = is_backward ? count - 1 - i : i;
      const PassNodes nodes = NodesOf(recorded_, works, stage_, segment, part);
      if (is_backward) AddArrivals(stage_.segments[segment], nodes, all.nodes.size());
      AddSegment(nodes, all);
    }
    return all;
  }

  static void AddSegment(const PassNodes& nodes, PassNodes& all) {
    if (nodes.nodes.empty()) return;
    const auto first = static_cast<uint32_t>(all.nodes.size());
    std::vector<uint32_t> before;  // the last nodes so far
    for (uint32_t i = all.segment; i < first; ++i) {
      if (all.is_last[i]) before.push_back(i);
      all.is_last[i] = false;
    }
    all.segment = first;
    for (const std::vector<uint32_t>& deps : nodes.deps) {
      std::vector<uint32_t>& own = all.deps.emplace_back(deps.empty() ? before : deps);
      if (deps.empty()) continue;
      for (uint32_t& dep : own) dep += first;
    }
    all.nodes.insert(all.nodes.end(), nodes.nodes.begin(), nodes.nodes.end());
    all.is_last.insert(all.is_last.end(), nodes.is_last.begin(), nodes.is_last.end());
  }

  // Adds the gradients of a segment of the backward pass, whose `nodes` follow `first` others, and
  // finds after which of them each arrives.
  void AddArrivals(const std::vector<uint32_t>& places, const PassNodes& nodes, size_t first) {
    std::vector<std::pair<Nanos, size_t>> order;
    for (size_t i = 0; i < nodes.nodes.size(); ++i) order.emplace_back(nodes.times[i], i);
    std::ranges::sort(order);
    size_t last = first;
    for (size_t i = places.size(); i-- > 0;) {
      for (const RecordedGradient& gradient : plan_.split.gradients[places[i]]) {
        const Nanos end = EndOf(trace_, gradient.node).value_or(Nanos{});
        const auto next =
            std::ranges::upper_bound(order, end, {}, &std::pair<Nanos, size_t>::first);
        const size_t before = next == order.begin() ? 0 : std::prev(next)->second + 1;
        last = std::max(last, first + before);
        arrivals_[last].push_back(gradients_.size());
        gradients_.push_back(gradient);
      }
    }
  }

  void Forward(const PassNodes& pass, int64_t micro_batch) {
    Deps ready = done_;
    if (!is_first()) Receive(micro_batch, /*backward=*/false, ready);
    before_ = std::exchange(done_, Add(pass, ready, std::nullopt));
    if (!is_last()) Send(micro_batch, /*backward=*/false);
  }

  void Backward(const PassNodes& pass, int64_t micro_batch) {
    Deps ready = done_;
    if (!is_last()) Receive(micro_batch, /*backward=*/true, ready);
    before_ = std::exchange(done_, Add(pass, ready, micro_batch));
    Deps sent;
    if (!is_first()) sent = Send(micro_batch, /*backward=*/true);
    ReduceFilled(sent);
  }

  // Adds the nodes of a pass after `ready`, and returns the last ones. With the number of a
  // micro-batch, also adds what belongs to its gradients.
  Deps Add(const PassNodes& pass, Deps ready, std::optional<int64_t> micro_batch) {
    const auto add_gradients = [&](size_t nodes, Deps after) {
      const auto arrived = arrivals_.find(nodes);
      if (!micro_batch || arrived == arrivals_.end()) return after;
      for (const size_t gradient : arrived->second) AddGradient(gradient, *micro_batch, after);
      return after;
    };
    ready = add_gradients(0, std::move(ready));
    if (pass.nodes.empty()) return ready;
    std::vector<Deps> numbers;  // by node: what follows it waits for these
    Deps last;
    for (size_t i = 0; i < pass.nodes.size(); ++i) {
      Deps deps;
      for (const uint32_t dep : pass.deps[i]) {
        deps.insert(deps.end(), numbers[dep].begin(), numbers[dep].end());
      }
      if (pass.deps[i].empty()) deps = ready;
      const uint32_t number = Append(pass.nodes[i], std::move(deps));
      const Deps& own = numbers.emplace_back(add_gradients(i + 1, {number}));
      if (pass.is_last[i]) last.insert(last.end(), own.begin(), own.end());
    }
    return last;
  }

  // Adds what follows the arrival of a gradient. `after` are the nodes before, and become those
  // that the pass continues after.
  void AddGradient(size_t index, int64_t micro_batch, Deps& after) {
    const RecordedGradient& gradient = gradients_[index];
    if (micro_batch > 0 && !IsAdded(gradient)) {
      if (plan_.rate) after = {AppendCopy("aten::add_", gradient, 3, after)};
      ++(plan_.rate ? made_.additions : made_.lacking);
    }
    if (made_.buckets.empty() || micro_batch + 1 != plan_.pipeline.micro_batches) return;
    if (plan_.rate) {
      after = {AppendCopy(kIntoBucket, gradient, 2, after)};
      ++made_.copies;
    }
    for (const GradientBucket& bucket : made_.buckets) {
      if (bucket.last == index) filled_.emplace_back(bucket.bytes, after);
    }
    // Other stages first send the gradient that the stage before waits for.
    if (is_first()) ReduceFilled({});
  }

  // Adds the all-reduces of filled buckets, which also wait for `others`.
  void ReduceFilled(const Deps& others) {
    for (auto& [bytes, deps] : filled_) {
      deps.insert(deps.end(), others.begin(), others.end());
      if (!reduced_.empty()) deps.push_back(reduced_.back());
      RunnableNode node;
      node.kind = NodeKind::kCollective;
      node.name = NameOf("all_reduce");
      node.type = CollectiveType::kAllReduce;
      node.duration = Nanos{};
      node.group = 0;
      node.group_size = plan_.replicas;
      node.bytes_in = bytes.count;
      reduced_.push_back(Append(node, std::move(deps)));
    }
    filled_.clear();
  }

  // Returns whether the recorded step adds a gradient to one from before.
  bool IsAdded(const RecordedGradient& gradient) const {
    return std::ranges::any_of(trace_.children(gradient.node), [&](NodeId child) {
      size_t tensors = 0;
      ForEachStorage(trace_, trace_.inputs(child), [&](Storage) { ++tensors; });
      return IsCall(trace_, child) && tensors > 1;
    });
  }

  // After the last micro-batch: waits for the reductions, and copies the gradients back.
  void WaitForReplicas() {
    if (!plan_.rate) {
      done_.insert(done_.end(), reduced_.begin(), reduced_.end());
      return;
    }
    std::map<DType, size_t> next;  // index of the first gradient of a type that is not copied yet
    for (size_t i = 0; i < made_.buckets.size(); ++i) {
      const GradientBucket& bucket = made_.buckets[i];
      for (size_t& at = next[bucket.dtype]; at <= bucket.last; ++at) {
        if (gradients_[at].dtype != bucket.dtype) continue;
        done_.push_back(reduced_[i]);
        done_ = {AppendCopy(kFromBucket, gradients_[at], 2, done_)};
        ++made_.copies;
      }
    }
  }

  // Adds an element-wise operator that reads and writes `times` times the bytes of a gradient.
  uint32_t AppendCopy(std::string_view name, const RecordedGradient& gradient, int64_t times,
                      Deps deps) {
    const int64_t bytes = times * gradient.bytes.count;
    RunnableNode node;
    node.kind = NodeKind::kOperator;
    node.name = NameOf(name);
    node.lane = recorded_.nodes.front().lane;
    node.duration = plan_.rate->TimeOf(bytes);
    if (recorded_.nodes.front().ops != 0) {
      node.ops = 1;
      node.bytes = static_cast<uint64_t>(bytes);
    }
    return Append(node, std::move(deps));
  }

  // Adds the receives of a pass, one per tensor. They may begin once the step before has begun.
  void Receive(int64_t micro_batch, bool backward, Deps& ready) {
    ForEachMessage(micro_batch, backward, /*sends=*/false,
                   [&](const RunnableNode& node) { ready.push_back(Append(node, before_)); });
  }
  Deps Send(int64_t micro_batch, bool backward) {
    Deps sent;
    ForEachMessage(micro_batch, backward, /*sends=*/true, [&](const RunnableNode& node) {
      sent.push_back(Append(node, done_));
      ++made_.messages;
    });
    return sent;
  }

  template <typename Fn>
  void ForEachMessage(int64_t micro_batch, bool backward, bool sends, Fn fn) {
    const bool to_next = backward != sends;
    const int64_t stage = plan_.stage;
    const int64_t sender = sends ? stage : stage + (backward ? 1 : -1);
    const int64_t stages = plan_.pipeline.stages;
    const auto boundary = static_cast<size_t>(to_next ? stage : stage - 1);
    for (const StageTensor& tensor : plan_.split.stages[boundary].sent) {
      if (backward && !tensor.has_gradient) continue;
      RunnableNode node;
      node.kind = sends ? NodeKind::kSend : NodeKind::kRecv;
      node.name = NameOf(fmt::format("{} {} #{}", sends ? "send" : "receive",
                                     backward ? "gradient" : "activations", micro_batch));
      node.duration = Nanos{};
      node.peer = stage + (to_next ? 1 : -1);
      node.tag = 2 * (micro_batch * stages + sender) + (backward ? 1 : 0);
      node.bytes_in = tensor.bytes.count;
      fn(node);
    }
  }

  uint32_t Append(const RunnableNode& node, Deps deps) {
    std::ranges::sort(deps);
    deps.erase(std::unique(deps.begin(), deps.end()), deps.end());
    RunnableRank& rank = made_.rank;
    rank.nodes.push_back(node);
    rank.deps.insert(rank.deps.end(), deps.begin(), deps.end());
    rank.dep_ends.push_back(rank.deps.size());
    return static_cast<uint32_t>(rank.nodes.size() - 1);
  }

  uint32_t NameOf(std::string_view name) {
    std::vector<std::string>& names = made_.rank.names;
    const auto [known, is_new] =
        names_.emplace(std::string(name), static_cast<uint32_t>(names.size()));
    if (is_new) names.emplace_back(name);
    return known->second;
  }

  const Trace& trace_;
  const RunnableRank& recorded_;
  const StagePlan& plan_;
  const Stage& stage_;
  std::vector<RecordedGradient> gradients_;  // in the order of arrival
  PipelineStage made_;
  std::map<std::string, uint32_t> names_;           // added ones
  std::map<size_t, std::vector<size_t>> arrivals_;  // gradients by number of nodes before
  Deps done_;                                       // last nodes of the step so far
  Deps before_;                                     // those before its last pass
  std::vector<std::pair<Bytes, Deps>> filled_;      // buckets to be reduced
  Deps reduced_;                                    // all-reduces by bucket
};

std::string PipelineText(const PipelineOptions& options) {
  std::string text;
  const auto add = [&](const std::string& word) { text += (text.empty() ? "" : " ") + word; };
  if (options.stages) add(fmt::format("--pp {}", *options.stages));
  if (options.micro_batches) add(fmt::format("--micro-batches {}", *options.micro_batches));
  if (!options.schedule.empty()) add("--schedule " + options.schedule);
  return text;
}

}  // namespace

Result<PipelineEdit> PipelineEdit::Make(const PipelineOptions& options) {
  PipelineEdit made;
  if (options.empty()) return made;
  if (!options.stages) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("{}: requires --pp for recorded jobs",
                                 options.micro_batches ? "--micro-batches" : "--schedule"));
  }
  ETUDE_RETURN_IF_ERROR(CheckNumber("--pp", *options.stages, kMostStages));
  const int64_t micro_batches = options.micro_batches.value_or(1);
  ETUDE_RETURN_IF_ERROR(CheckNumber("--micro-batches", micro_batches, kMostMicroBatches));
  made.schedule_ = options.schedule.empty() ? "1f1b" : options.schedule;
  const auto words = ScheduleWords();
  const auto word =
      std::ranges::find(words, made.schedule_, [](const auto& one) { return one.first; });
  const bool is_known = word != words.end() && (word->second == PipelineSchedule::kGpipe ||
                                                word->second == PipelineSchedule::k1F1B);
  if (!is_known) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("--schedule: found '{}', expected gpipe or 1f1b for recorded jobs",
                                 made.schedule_));
  }
  made.is_wanted_ = true;
  made.edit_ = PipelineText(options);
  made.plan_ = {
      .schedule = word->second, .stages = *options.stages, .micro_batches = micro_batches};
  return made;
}

Status PipelineEdit::Divide(const Trace& trace, std::optional<int64_t> layers, int64_t replicas,
                            const BucketSizes& sizes) {
  layers_ = layers;
  replicas_ = replicas;
  sizes_ = sizes;
  if (const Fits fits = CheckPipeline(plan_); !fits) {
    return BadInput("--pp: " + fits.error().message);
  }
  std::optional<size_t> wanted;
  if (layers) wanted = static_cast<size_t>(*layers);
  Result<StageSplit> split = SplitStages(trace, static_cast<size_t>(plan_.stages), wanted);
  if (!split) return RefusedEdit("--pp", split.error());
  split_ = *std::move(split);
  bool has_device = false;
  ForEachNode(trace,
              [&](NodeId node) { has_device = has_device || trace.place(node) == Place::kDevice; });
  if (!has_device) rate_ = FindCopyRate(trace);
  return {};
}

Status PipelineEdit::EditRank(const Trace& trace, RunnableRank& rank) {
  const std::vector<NodeWork> works = FindWorks(trace, rank, split_);
  const auto nodes = static_cast<double>(rank.nodes.size());
  double all = nodes * static_cast<double>(plan_.micro_batches * replicas_);
  if (layers_)
    all *= std::max(1.0, static_cast<double>(*layers_) / static_cast<double>(split_.stack.layers));
  if (all > static_cast<double>(kMostPipelineNodes)) {
    return BadInput(fmt::format(
        "--pp: found {} for {} of {}, expected at most {} in all",
        FormatCount(rank.nodes.size(), "node"),
        FormatCount(static_cast<uint64_t>(plan_.micro_batches), "micro-batch", "micro-batches"),
        FormatCount(static_cast<uint64_t>(replicas_), "replica"), FormatCount(kMostPipelineNodes)));
  }
  if (finds_memory_) memory_ = MemoryOfStages(trace, split_, plan_);
  for (uint32_t stage = 0; stage < split_.stages.size(); ++stage) {
    PipelineStage program = StageMaker(trace, rank,
                                       {.pipeline = plan_,
                                        .split = split_,
                                        .stage = stage,
                                        .replicas = replicas_,
                                        .sizes = sizes_,
                                        .rate = rate_})
                                .Run(works);
    stages_.push_back(std::move(program.rank));
    buckets_.push_back(std::move(program.buckets));
    messages_ += program.messages;
    additions_ += program.additions;
    copies_ += program.copies;
    lacking_ += program.lacking;
  }
  rank.world_size = plan_.stages * replicas_;
  return {};
}

std::optional<TensorPeaks> PipelineEdit::peaks() const {
  if (!memory_) return std::nullopt;
  TensorPeaks all;
  for (const TensorPeaks& stage : *memory_) TakeMax(stage, all);
  return all;
}

std::vector<RunnableRank> PipelineEdit::TakeRanks() {
  std::vector<RunnableRank> ranks;
  for (int64_t stage = 0; stage < std::ssize(stages_); ++stage) {
    RunnableRank& program = stages_[static_cast<size_t>(stage)];
    for (RunnableGroup& group : program.groups) {
      group.ranks.emplace();
      for (int64_t i = 0; i < replicas_; ++i) group.ranks->push_back(stage * replicas_ + i);
    }
    for (int64_t replica = 0; replica < replicas_; ++replica) {
      RunnableRank& rank = ranks.emplace_back(program);
      if (replica > 0) {
        rank.notes = RunnableNotes();
        rank.host_time = Nanos{};
      }
      rank.rank = stage * replicas_ + replica;
      rank.world_size = plan_.stages * replicas_;
      for (RunnableNode& node : rank.nodes) {
        if (node.peer) node.peer = *node.peer * replicas_ + replica;
      }
    }
  }
  stages_.clear();
  return ranks;
}

AppliedEdit PipelineEdit::Applied() const {
  AppliedEdit edit{.edit = edit_, .certainty = Certainty::kExact, .nodes = messages_};
  const auto replicas = static_cast<uint64_t>(replicas_);
  size_t layers = 0;
  for (const Stage& stage : split_.stages) layers += stage.layers;
  const uint64_t batches = static_cast<uint64_t>(plan_.micro_batches) * replicas;
  edit.text =
      fmt::format("{}{}, {}; the recorded batch is {}",
                  layers == 0 ? "" : FormatCount(layers, "layer") + " in ",
                  FormatCount(split_.stages.size(), "stage"), schedule_,
                  batches == 1 ? std::string("the only micro-batch")
                               : fmt::format("one micro-batch, and the global batch is {} times it",
                                             FormatCount(batches)));
  Json boundaries = Json::array();
  int64_t bytes = 0;  // of a micro-batch
  for (size_t i = 0; i + 1 < split_.stages.size(); ++i) {
    Json& boundary = boundaries.emplace_back(Json::array());
    for (const StageTensor& tensor : split_.stages[i].sent) {
      boundary.push_back({{"bytes", tensor.bytes.count}, {"gradient", tensor.has_gradient}});
      bytes += tensor.bytes.count * (tensor.has_gradient ? 2 : 1);
    }
  }
  if (messages_ > 0) {
    edit.text +=
        fmt::format("; {} between stages, {} in all", FormatCount(messages_ * replicas, "message"),
                    FormatBytes(Bytes{bytes * plan_.micro_batches * replicas_}));
  }
  if (split_.copied > 0) {
    edit.text += fmt::format("; {} without weights also on the stages that read the results",
                             FormatCount(split_.copied, "operator"));
  }
  if (additions_ > 0) {
    edit.text += fmt::format(
        "; {} of gradients to those of earlier micro-batches, with times modelled by the recorded "
        "operators",
        FormatCount(additions_ * replicas, "addition"));
  }
  if (lacking_ > 0) {
    edit.text +=
        "; additions of gradients to those of earlier micro-batches take an unknown time and are "
        "not included";
    edit.certainty = Certainty::kModelled;
  }
  if (split_.divided > 0) {
    edit.text += fmt::format("; {} on lists of tensors divided by bytes",
                             FormatCount(split_.divided, "operator"));
    edit.certainty = Certainty::kModelled;
  }
  if (split_.repeated > 0) {
    edit.text += fmt::format(
        "; {} on results of several stages on each of them, without the communication that they "
        "require",
        FormatCount(split_.repeated, "operator"));
    edit.certainty = Certainty::kModelled;
  }
  Json stages = Json::array();
  for (size_t i = 0; i < split_.stages.size(); ++i) {
    const Stage& stage = split_.stages[i];
    Json& row = stages.emplace_back();
    row = {{"first_layer", stage.first_layer}, {"layers", stage.layers}};
    if (!memory_) continue;
    for (const auto& [device, peak] : (*memory_)[i]) row["memory_bytes"][device] = peak.count;
  }
  edit.details = {{"schedule", schedule_},
                  {"micro_batches", plan_.micro_batches},
                  {"stages", std::move(stages)},
                  {"boundaries", std::move(boundaries)},
                  {"messages", messages_ * replicas},
                  {"additions", additions_ * replicas},
                  {"copied_operators", split_.copied},
                  {"divided_operators", split_.divided},
                  {"repeated_operators", split_.repeated}};
  return edit;
}

AppliedEdit PipelineEdit::AppliedToLayers() const {
  const std::vector<std::string>& others = split_.stack.others;
  return {
      .edit = fmt::format("--layers {}", *layers_),
      .certainty = others.empty() ? Certainty::kExact : Certainty::kModelled,
      .nodes = 0,
      .text = fmt::format(
          "{} instead of {}, with the times of the recorded ones{}",
          FormatCount(static_cast<uint64_t>(*layers_), "layer"), FormatCount(split_.stack.layers),
          others.empty() ? std::string() : "; others that repeat as often stay: " + others.front()),
      .details = {{"layers", split_.stack.layers}, {"others", others}}};
}

AppliedEdit PipelineEdit::AppliedToReplicas(std::string name) const {
  AppliedEdit edit{.edit = std::move(name), .certainty = Certainty::kExact};
  int64_t bytes = 0;
  for (const std::vector<GradientBucket>& buckets : buckets_) {
    edit.nodes += buckets.size();
    for (const GradientBucket& bucket : buckets) bytes += bucket.bytes.count;
  }
  edit.details = {{"buckets", BucketsJson(buckets_)}, {"copies", copies_}};
  edit.text = fmt::format(
      "{} of gradients, {} in all, among {} of each stage, in the backward pass of the last "
      "micro-batch; the batch per rank stays; {}",
      FormatCount(edit.nodes, "all-reduce"), FormatBytes(Bytes{bytes}),
      FormatCount(static_cast<uint64_t>(replicas_), "replica"),
      copies_ == 0 ? std::string("copies between gradients and buckets are not added")
                   : FormatCount(copies_, "copy", "copies") +
                         " between gradients and buckets, with times modelled by the recorded "
                         "operators");
  edit.nodes += copies_;
  if (copies_ == 0 && replicas_ > 1) edit.certainty = Certainty::kModelled;
  return edit;
}

}  // namespace etude
