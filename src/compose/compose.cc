#include "src/compose/compose.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "src/base/text/format_count.h"
#include "src/compose/comm_scale.h"
#include "src/compose/memory_names.h"
#include "src/compose/part_plan.h"
#include "src/compose/resize.h"
#include "src/compose/retype.h"
#include "src/compose/source_trace.h"
#include "src/formats/read_trace.h"
#include "src/run/exclusive_times.h"
#include "src/run/step/tensor_shape.h"
#include "src/run/waits/program_order.h"
#include "src/run/waits/recorded_waits.h"
#include "src/trace/carried_stats.h"
#include "src/trace/trace_builder.h"
#include "src/trace/trace_copy.h"
#include "src/trace/words/comm_backend.h"
#include "src/trace/words/operator_name.h"

namespace etude {
namespace {

constexpr std::string_view kComposedMark = "ProfilerStep#0";

// PyTorch's RecordScope::FUNCTION: labels added by composing are not user ranges, which stand for
// modules in a trace without them.
constexpr uint8_t kFunctionScope = 0;

// A repetition of a part.
struct Turn {
  size_t part = 0;
  int64_t repetition = 0;
};

// Orders the repetitions: parts with `repeat` one after the other; those with weights spread
// evenly, the first of n repetitions at 1/2n of the step, the next at 3/2n.
std::vector<Turn> TurnsOf(const Recipe& recipe) {
  std::vector<Turn> turns;
  for (size_t i = 0; i < recipe.parts.size(); ++i) {
    for (int64_t k = 0; k < recipe.parts[i].repeat; ++k) turns.push_back({i, k});
  }
  if (!recipe.parts.front().weight) return turns;
  std::ranges::stable_sort(turns, [&](const Turn& a, const Turn& b) {
    return (2 * a.repetition + 1) * recipe.parts[b.part].repeat <
           (2 * b.repetition + 1) * recipe.parts[a.part].repeat;
  });
  return turns;
}

// A planned part.
struct Planned {
  PartPlan plan;
  MemoryNames::Made made;
};

// Resized or retyped traces, which replace the recipe's traces as sources of parts.
class Changes {
 public:
  Changes(const Recipe& recipe, std::span<const ComposeInput> inputs)
      : recipe_(recipe), inputs_(inputs.begin(), inputs.end()) {}

  const Recipe& recipe() const { return recipe_; }
  std::span<const ComposeInput> inputs() const { return inputs_; }

  Status Make(const Limits& limits) {
    const size_t own = recipe_.traces.size();
    for (RecipePart& part : recipe_.parts) {
      if (!part.resize && !part.retype) continue;
      const Change wanted{part.trace, part.resize, part.retype};
      const auto known = std::ranges::find(made_, wanted);
      const auto at = static_cast<size_t>(known - made_.begin());
      if (known == made_.end()) {
        const Status done = Add(part, wanted, limits);
        if (!done) return BadInput(part.place + ": " + done.error().message);
      }
      part.trace = own + at;
      part.changes = texts_[at];
    }
    return {};
  }

 private:
  using Change = std::tuple<size_t, std::optional<RecipeResize>, std::optional<RecipeRetype>>;

  Status Add(const RecipePart& part, const Change& wanted, const Limits& limits) {
    ComposeInput input = inputs_[part.trace];
    std::string text;
    if (part.resize) {
      const ComposeInput& other = inputs_[part.resize->with];
      ETUDE_ASSIGN_OR_RETURN(Resized resized,
                             ResizeTrace(*input.trace, *other.trace, part.resize->sizes, limits));
      text = fmt::format("size {}", part.resize->sizes.wanted);
      if (resized.kept > 0)
        text += " except for " + FormatCount(static_cast<uint64_t>(resized.kept), "number");
      input.trace = &traces_.emplace_back(std::move(resized.trace));
    }
    if (part.retype) {
      const auto& [from, to] = *part.retype;
      ETUDE_ASSIGN_OR_RETURN(Retyped retyped, RetypeTrace(*input.trace, from, to, limits));
      if (retyped.changed == 0) {
        return BadInput(
            fmt::format("dtype: found no tensor in {} of type {}", input.name, Name(from)));
      }
      text += fmt::format("{}{} as {}", text.empty() ? "" : ", ", Name(from), Name(to));
      input.trace = &traces_.emplace_back(std::move(retyped.trace));
    }
    made_.push_back(wanted);
    texts_.push_back(std::move(text));
    recipe_.traces.push_back(recipe_.traces[part.trace]);
    inputs_.push_back(std::move(input));
    return {};
  }

  Recipe recipe_;
  std::vector<ComposeInput> inputs_;
  std::deque<Trace> traces_;
  std::vector<Change> made_;
  std::vector<std::string> texts_;
};

class Composer {
 public:
  Composer(const Recipe& recipe, std::span<const ComposeInput> inputs, const Limits& limits)
      : recipe_(recipe), inputs_(inputs), limits_(limits), builder_(limits) {}

  Result<Composed> Run() {
    ETUDE_RETURN_IF_ERROR(Open());
    ETUDE_RETURN_IF_ERROR(Plan());
    ETUDE_RETURN_IF_ERROR(CheckSize());
    ETUDE_RETURN_IF_ERROR(AddFacts());
    AddRoots();
    for (const Turn& turn : TurnsOf(recipe_)) Add(turn);
    composition_.threads = inputs_.front().threads;
    for (const ComposeInput& input : inputs_) {
      if (input.threads != composition_.threads) composition_.threads.reset();
    }
    if (timed_) builder_.SetTimes(mark_, Nanos{}, now_, std::nullopt);
    KeepComposition(composition_, builder_);
    CarryStats(builder_);
    ETUDE_ASSIGN_OR_RETURN(Trace trace, builder_.Finish());
    return Composed{.trace = std::move(trace), .composition = std::move(composition_)};
  }

 private:
  // A trace of the recipe to be added to the composed one.
  struct Source {
    explicit Source(const Trace& trace, TraceBuilder& builder)
        : facts(trace), copy(trace, builder) {}
    SourceTrace facts;
    TraceCopy copy;
    std::string process;                         // of the trace, as named by its lanes
    NodeId main;                                 // root of the thread of the first operator
    LaneId main_lane;                            // lane of the first operator
    std::unordered_map<NodeId, uint64_t> roots;  // of other threads and processes, by their new ids
    int64_t stride = 1;  // above any number that identifies things in the trace
    // By node, for a composed trace without begin times: exclusive durations.
    std::vector<std::optional<Nanos>> own_times;
  };

  Source& source_of(size_t part) const { return *sources_[recipe_.parts[part].trace]; }

  Status Open() {
    for (const ComposeInput& input : inputs_) {
      const TraceInfo& info = input.trace->info();
      if (info.traits.is_profile) {
        return BadInput(input.name +
                        ": found only a profile, expected a host or linked trace; `etude link` "
                        "joins it with its host trace, " +
                        std::string(kRecordHint));
      }
      if (info.traits.exclusive_durations) {
        return BadInput(input.name +
                        ": found durations that exclude children, expected a host or linked trace; "
                        "`etude convert --to linked` writes one");
      }
      sources_.push_back(std::make_unique<Source>(*input.trace, builder_));
      FindStride(*sources_.back());
    }
    return {};
  }

  static void FindStride(Source& source) {
    const Trace& trace = source.facts.trace;
    const auto count = [&](auto value) {
      if (!value || !IsCountedUp(*value)) return;
      source.stride = std::max(source.stride, static_cast<int64_t>(*value) + 1);
    };
    ForEachNode(trace, [&](NodeId node) {
      count(trace.rf_id(node));
      count(trace.seq_id(node));
      count(trace.correlation(node));
      count(trace.external_id(node));
    });
  }

  Status Plan() {
    for (size_t i = 0; i < recipe_.parts.size(); ++i) {
      const RecipePart& part = recipe_.parts[i];
      const SourceTrace& source = source_of(i).facts;
      ETUDE_ASSIGN_OR_RETURN(PartPlan plan, PlanPart(source, part, inputs_[part.trace].name));
      plan.facts.trace = recipe_.traces[part.trace].name;
      plan.facts.changes = part.changes;
      timed_ = timed_ && plan.clock;
      composition_.parts.push_back(plan.facts);
      MemoryNames::Made made(source, plan);
      parts_.push_back({.plan = std::move(plan), .made = std::move(made)});
    }
    if (timed_) return {};
    for (const auto& source : sources_) source->own_times = SelfTimes(source->facts.trace);
    return {};
  }

  Status CheckSize() const {
    uint64_t nodes = 0;
    for (size_t i = 0; i < parts_.size(); ++i) {
      const auto repeat = static_cast<uint64_t>(recipe_.parts[i].repeat);
      const uint64_t each = parts_[i].plan.nodes.size() + 1;
      if (each > limits_.nodes / repeat || (nodes += each * repeat) > limits_.nodes) {
        return BadInput(
            fmt::format("'{}': {} repetitions give more than {} nodes in the step (limit 'nodes')",
                        recipe_.parts[i].name, repeat, limits_.nodes));
      }
    }
    return {};
  }

  Status AddFacts() {
    TraceInfo& info = builder_.info();
    const TraceInfo& first = sources_.front()->facts.trace.info();
    info.SetFormat(TraceFormat::kLinked);
    info.schema = first.schema;
    info.pid = source_of(0).facts.trace.info().pid;
    info.rank = first.rank;
    info.world_size = first.world_size;
    for (size_t i = 0; i < sources_.size(); ++i) {
      const TraceInfo& other = sources_[i]->facts.trace.info();
      if (other.rank != info.rank) info.rank.reset();
      if (other.world_size != info.world_size) info.world_size.reset();
      ETUDE_RETURN_IF_ERROR(AddGroups(i));
      sources_[i]->copy.AddStats();
      sources_[i]->copy.CountRenumbered();
    }
    return {};
  }

  // Operators find their groups by name.
  Status AddGroups(size_t source) {
    const Trace& trace = sources_[source]->facts.trace;
    for (const ProcessGroup& group : trace.process_groups()) {
      const ProcessGroup made = sources_[source]->copy.MakeGroup(group);
      const ProcessGroup* known = builder_.FindGroup(made.name);
      // Equal lists have equal ids.
      if (known != nullptr && known->ranks != made.ranks && !builder_.ints(known->ranks).empty() &&
          !builder_.ints(made.ranks).empty()) {
        return BadInput(
            fmt::format("{}: found process group '{}' with other ranks than in another trace, "
                        "expected traces of one job",
                        inputs_[source].name, trace.text(group.name)));
      }
      builder_.AddProcessGroup(made);
    }
    return {};
  }

  // Adds the roots. The traces' processes are merged, and so are the threads of each one's first
  // operator, on which all parts run. Other threads stay separate, as do nodes that ran in another
  // process than that of their trace.
  void AddRoots() {
    for (size_t i = 0; i < parts_.size(); ++i) {
      Source& source = source_of(i);
      const NodeId run = parts_[i].plan.runs.front();
      if (!source.main) {
        source.main = RootOf(source, run);
        source.main_lane = source.facts.trace.lane_id(run);
      }
      if (source.process.empty()) source.process = ProcessOf(source.facts.trace, run);
    }
    Source& first = source_of(0);
    const Trace& trace = first.facts.trace;
    process_name_ = builder_.Intern(first.process);
    NodeRow mark{.kind = NodeKind::kLabel, .place = Place::kHost};
    if (first.main) {
      const NodeId process = trace.parent(first.main);
      if (process) process_ = AddRoot(first, process, std::nullopt);
      mark.parent = AddRoot(first, first.main, process_);
    }
    const NodeId run = parts_.front().plan.runs.front();
    main_lane_ = mark.lane = InOneProcess(first, trace.lane_id(run));
    main_tid_ = mark.tid = trace.tid(run);
    mark.name = builder_.Intern(kComposedMark);
    mark.source_id = mark_id_ = next_id_++;
    mark_ = builder_.AddNode(mark);
  }

  static std::string ProcessOf(const Trace& trace, NodeId run) {
    if (trace.info().pid) return std::to_string(*trace.info().pid);
    const LaneId lane = trace.lane_id(run);
    return lane ? std::string(trace.text(trace.lane(lane).process)) : "";
  }

  // Returns the lane of a host node with the root `root`.
  LaneId HostLane(Source& source, LaneId lane, NodeId root) {
    const Trace& trace = source.facts.trace;
    const std::string_view process = lane ? trace.text(trace.lane(lane).process) : "";
    if (!process.empty() && process != source.process) return source.copy.LaneOf(lane);
    // Nodes below a thread in PyTorch's observer may have run on another one: Gloo's labels.
    const bool is_of_main = root && root == source.main;
    if (is_of_main && (!lane || !source.main_lane || lane == source.main_lane)) return main_lane_;
    return InOneProcess(source, lane);
  }

  LaneId InOneProcess(Source& source, LaneId lane) {
    const Trace& trace = source.facts.trace;
    if (!lane || !trace.lane(lane).process || !process_name_) return source.copy.LaneOf(lane);
    Lane copy = source.copy.MakeLane(trace.lane(lane));
    copy.process = process_name_;
    return builder_.InternLane(copy);
  }

  static NodeId RootOf(const Source& source, NodeId node) {
    const Trace& trace = source.facts.trace;
    while (node && !IsRoot(trace.kind(node))) node = trace.parent(node);
    return node;
  }

  uint64_t AddRoot(Source& source, NodeId root, std::optional<uint64_t> parent) {
    NodeRow row = source.copy.Row(root);
    row.source_id = next_id_++;
    row.start = row.duration = row.exclusive = std::nullopt;
    row.parent = parent;
    if (root != source.main) row.lane = HostLane(source, source.facts.trace.lane_id(root), root);
    source.copy.AddFacts(root, builder_.AddNode(row));
    return source.roots[root] = row.source_id;
  }

  void Add(const Turn& turn) {
    const Planned& part = parts_[turn.part];
    Source& source = source_of(turn.part);
    const Trace& trace = source.facts.trace;
    names_.Begin(recipe_.parts[turn.part].trace, part.made);
    factor_ = recipe_.parts[turn.part].scale_comm.value_or(1);
    const uint64_t label = AddLabel(turn);

    ids_.clear();
    for (const NodeId node : part.plan.nodes) {
      const uint64_t parent = ParentOf(source, part.plan, node, label);
      NodeRow row = RowOf(source, part.plan, node);
      row.source_id = next_id_++;
      row.parent = parent;
      ids_[node] = row.source_id;
      const NodeId added = builder_.AddNode(row);
      AddFactsOf(source, part.plan, node, added);
      added_.emplace_back(node, added);
    }
    for (const auto& [node, added] : added_) {
      const auto deps = trace.deps(node);
      const auto kinds = trace.dep_kinds(node);
      for (size_t i = 0; i < deps.size(); ++i) {
        const auto dep = ids_.find(deps[i]);
        if (dep != ids_.end()) builder_.AddDep(added, dep->second, kinds[i]);
      }
      const auto [first, last] = part.plan.waits.equal_range(node);
      for (auto wait = first; wait != last; ++wait) {
        builder_.AddDep(added, ids_.at(wait->second), DepKind::kSync);
      }
    }
    added_.clear();
    if (timed_) now_ = now_ + part.plan.clock->length();
    numbers_ = std::min(numbers_ + source.stride, kMostMoved);
  }

  // Adds the label "part forward, 2 of 3" around the part's nodes on the main thread. Names of
  // labels have meanings (steps, phases, modules) that labels of parts must not have.
  uint64_t AddLabel(const Turn& turn) {
    const RecipePart& part = recipe_.parts[turn.part];
    NodeRow row{.source_id = next_id_++, .kind = NodeKind::kLabel, .place = Place::kHost};
    row.scope = kFunctionScope;
    std::string name = part.name.starts_with("part ") ? part.name : "part " + part.name;
    if (part.repeat > 1) name += fmt::format(", {} of {}", turn.repetition + 1, part.repeat);
    row.name = builder_.Intern(name);
    row.parent = mark_id_;
    row.lane = main_lane_;
    row.tid = main_tid_;
    if (timed_) {
      row.start = now_;
      row.duration = parts_[turn.part].plan.clock->length();
    }
    builder_.AddNode(row);
    return row.source_id;
  }

  uint64_t ParentOf(Source& source, const PartPlan& plan, NodeId node, uint64_t label) {
    if (const NodeId parent = plan.parents[node.index()]) {
      // A later node in the file is not the caller of an earlier one.
      if (const auto known = ids_.find(parent); known != ids_.end()) return known->second;
    }
    const NodeId root = RootOf(source, node);
    if (!root || root == source.main) return label;
    const auto known = source.roots.find(root);
    return known != source.roots.end() ? known->second : AddRoot(source, root, process_);
  }

  NodeRow RowOf(Source& source, const PartPlan& plan, NodeId node) {
    const Trace& trace = source.facts.trace;
    NodeRow row = source.copy.Row(node);
    // The composed step is the only step: marks inside it are labels.
    if (IsStepMark(trace.name(node))) {
      row.name = builder_.Intern("recorded " + std::string(trace.name(node)));
      row.scope = kFunctionScope;
      row.rf_id.reset();
    }
    const NodeId root = RootOf(source, node);
    if (trace.place(node) != Place::kDevice) {
      row.lane = HostLane(source, trace.lane_id(node), root);
    }
    if (row.tid && root && root == source.main) row.tid = main_tid_;
    SetTimes(plan, source, node, row);
    Move(row.rf_id);
    Move(row.seq_id);
    // Values <= 0 link nothing.
    if (row.correlation > 0) Move(row.correlation);
    if (row.external_id > 0) Move(row.external_id);
    if (row.fw_parent) {
      const NodeId forward = trace.Find(*row.fw_parent);
      const auto known = forward ? ids_.find(forward) : ids_.end();
      row.fw_parent = known == ids_.end() ? std::nullopt : std::optional(known->second);
    }
    const bool scaled = !plan.scaled.empty() && plan.scaled[node.index()];
    uses_ = source.facts.flow.inputs(node);
    row.inputs = Renamed(source, trace.inputs(node), row.inputs, scaled);
    uses_ = source.facts.flow.outputs(node);
    row.outputs = Renamed(source, trace.outputs(node), row.outputs, scaled);
    if (const auto replaced = plan.replaced.find(node); replaced != plan.replaced.end()) {
      SetOperator(replaced->second->with, row);
    }
    return row;
  }

  void SetTimes(const PartPlan& plan, const Source& source, NodeId node, NodeRow& row) const {
    const Trace& trace = source.facts.trace;
    if (!timed_) {
      row.start.reset();
      if (row.duration) row.exclusive = source.own_times[node.index()];
      return;
    }
    if (!row.start) return;
    if (trace.place(node) == Place::kDevice) {
      // Keeps its delay after its launch, and its duration.
      const NodeId launcher = Launcher(trace, plan, node);
      const auto launch = launcher ? trace.start(launcher) : std::nullopt;
      const Nanos from = launch.value_or(*row.start);
      row.start = now_ + plan.clock->At(from) + (*row.start - from);
      return;
    }
    const Nanos begin = plan.clock->At(*row.start);
    if (row.duration) {
      const Nanos end = *row.start + *row.duration;
      Nanos length = plan.clock->At(end) - begin;
      // Gloo's threads continue after the end of a step.
      if (IsHostThreadLabel(trace.name(node))) {
        length = length + std::max(Nanos{}, end - std::max(*row.start, plan.clock->end()));
      }
      if (length != *row.duration) row.exclusive.reset();
      row.duration = length;
    }
    row.start = now_ + begin;
  }
  static NodeId Launcher(const Trace& trace, const PartPlan& plan, NodeId node) {
    NodeId above = plan.parents[node.index()];
    while (above && trace.place(above) == Place::kDevice) above = plan.parents[above.index()];
    return above;
  }

  // Shifts numbers so that they differ from those of all other repetitions.
  template <typename Number>
  void Move(std::optional<Number>& number) const {
    if (!number || !IsCountedUp(*number)) return;
    *number = static_cast<Number>(static_cast<int64_t>(*number) + numbers_);
  }

  void SetOperator(const std::string& with, NodeRow& row) {
    const std::string schema(builder_.text(row.op_schema));
    row.op_schema =
        builder_.Intern(with + schema.substr(std::min(schema.find('('), schema.size())));
    row.name = builder_.Intern(with.substr(0, with.find('.')));
    row.kernel_backend = row.kernel_file = StringId::None();
    // Its time is unknown; the step's clock advances as if it took as long.
    row.duration.reset();
    row.exclusive.reset();
  }

  // Returns `list` of the new trace, which is `recorded` in a source, with the names of its tensors
  // in this repetition.
  ValueListId Renamed(const Source& source, std::span<const Value> recorded, ValueListId list,
                      bool scaled) {
    if (!list) return list;
    const Trace& trace = source.facts.trace;
    const auto found = builder_.values(list);
    std::vector<Value> values(found.begin(), found.end());
    for (size_t i = 0; i < values.size(); ++i) {
      Value& value = values[i];
      if (value.kind == ValueKind::kList) {
        value.payload =
            Renamed(source, trace.values(recorded[i].as_list()), value.as_list(), scaled).value();
      } else if (value.kind == ValueKind::kTensor) {
        TensorUse use = builder_.tensor(value.as_tensor());
        StorageVersion version;
        if (!uses_.empty()) {
          version = uses_.front().version;
          uses_ = uses_.subspan(1);
        }
        if (IsUndefinedType(builder_.text(use.type))) continue;
        const MemoryNames::Names names =
            scaled ? names_.Apart(use, version) : names_.Of(use, version);
        use.tensor = names.tensor;
        use.storage = names.storage;
        if (scaled) SetSizes(trace, trace.tensor(recorded[i].as_tensor()), use);
        value.payload = builder_.InternTensor(use).value();
      }
    }
    return builder_.InternValues(values);
  }

  void SetSizes(const Trace& trace, const TensorUse& recorded, TensorUse& use) {
    // Checked when the part was planned.
    const auto scaled = ScaleTensor(trace, recorded, factor_);
    if (!scaled || !*scaled) return;
    use.shape = builder_.InternInts((*scaled)->sizes);
    use.strides = IntListId::None();  // contiguous
    use.numel = (*scaled)->numel;
    use.offset = (*scaled)->offset;
    use.storage_bytes = -1;
  }

  void AddFactsOf(Source& source, const PartPlan& plan, NodeId node, NodeId added) {
    if (plan.replaced.contains(node)) {
      for (const Extra& extra : source.facts.trace.extras(node)) {
        builder_.AddExtra(added, source.copy.MakeExtra(extra));
      }
      return;
    }
    source.copy.AddFacts(node, added);
    const Comm* comm = source.facts.trace.comm(node);
    if (comm == nullptr || plan.scaled.empty() || !plan.scaled[node.index()]) return;
    const auto scaled = ScaleComm(source.facts.trace, *comm, factor_);
    if (scaled) builder_.SetComm(added, source.copy.MakeComm(*scaled));
  }

  static constexpr int64_t kMostMoved = int64_t{1} << 61;

  const Recipe& recipe_;
  std::span<const ComposeInput> inputs_;
  const Limits& limits_;
  TraceBuilder builder_;
  std::vector<std::unique_ptr<Source>> sources_;
  std::vector<Planned> parts_;
  Composition composition_;
  MemoryNames names_;
  bool timed_ = true;  // all times are known

  uint64_t next_id_ = 1;
  std::optional<uint64_t> process_;
  StringId process_name_;
  uint64_t mark_id_ = 0;
  NodeId mark_;
  LaneId main_lane_;
  std::optional<uint64_t> main_tid_;
  Nanos now_;            // begin of the next repetition
  int64_t numbers_ = 0;  // added to its numbers

  // For the current repetition.
  std::unordered_map<NodeId, uint64_t> ids_;  // new ids by the source's nodes
  std::vector<std::pair<NodeId, NodeId>> added_;
  std::span<const DataFlow::Use> uses_;
  double factor_ = 1;  // of communicated data
};

}  // namespace

Result<Composed> Compose(const Recipe& recipe, std::span<const ComposeInput> inputs,
                         const Limits& limits) {
  // Waits of threads are derived from a native capture's times. A composed trace has other times,
  // and contains the waits as dependencies.
  std::deque<Trace> captures;
  std::vector<ComposeInput> sources(inputs.begin(), inputs.end());
  for (ComposeInput& source : sources) {
    if (!source.trace->traits().waits_in_times) continue;
    ETUDE_ASSIGN_OR_RETURN(captures.emplace_back(), WithThreadWaits(*source.trace, limits));
    source.trace = &captures.back();
  }
  Changes changes(recipe, sources);
  ETUDE_RETURN_IF_ERROR(changes.Make(limits));
  return Composer(changes.recipe(), changes.inputs(), limits).Run();
}

}  // namespace etude
