#include "src/transform/layers/layer_stack.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "src/base/text/format_count.h"
#include "src/run/activity.h"
#include "src/run/step/recorded_step.h"
#include "src/trace/words/module_name.h"
#include "src/trace/words/operator_name.h"
#include "src/transform/layers/repeated_runs.h"
#include "src/transform/layers/step_items.h"

namespace etude {
namespace {

constexpr size_t kMostAnchors = 16;
constexpr size_t kMostParts = 4;
constexpr size_t kMostIrregular = 2;    // layers that differ in one pass
constexpr double kShareOfLayers = 0.4;  // of the time of the longest repetition
constexpr size_t kPartOfOthers = 10;    // at least 1 / this of the operators of the layers

constexpr Nanos kFirst{INT64_MIN};  // before all nodes

using Owners = std::unordered_map<Storage, size_t>;  // layer by memory

int64_t BytesOf(const TensorUse& use) {
  int64_t bytes = 0;
  const bool is_known = use.numel >= 0 && use.element_bytes >= 0 &&
                        !__builtin_mul_overflow(use.numel, use.element_bytes, &bytes);
  return is_known ? bytes : 0;
}

class StackFinder {
 public:
  explicit StackFinder(const Trace& trace)
      : trace_(trace), step_(trace), communicates_(FindCommunicating(trace)) {}

  Result<LayerStack> Run() {
    const std::vector<Candidate> candidates = Candidates();
    std::optional<Error> first;
    std::optional<LayerStack> forward_only;
    for (const Candidate* anchor : Anchors(candidates)) {
      // Layers may begin at several places if the sequence repeats longer than they do.
      for (const Phase& phase : Phases(*anchor, nullptr)) {
        Result<LayerStack> stack = StackOf(OwnersOf(*anchor, phase), phase.count, candidates);
        if (!stack) {
          if (!first) first = stack.error();
          continue;
        }
        const bool goes_back = std::ranges::any_of(stack->runs, &LayerRun::in_backward);
        if (goes_back || !step_.backward()) return stack;
        if (!forward_only) forward_only = *std::move(stack);
      }
    }
    if (forward_only) return *std::move(forward_only);
    if (first) return tl::unexpected(*first);
    return BadInput(
        "found no operators that repeat, each time with parameters of their own, expected a step "
        "of a model with at least two equal layers, recorded with tensors and times");
  }

 private:
  struct Candidate {
    LaneId lane;
    RepeatedRun run;
    Nanos time;
  };
  // Way to divide a repetition into periods.
  struct Phase {
    size_t begin = 0;  // item
    size_t count = 0;
    std::vector<size_t> layers;  // by period, if memory has owners
    std::set<int64_t> gathered;  // as in LayerRun
  };

  // Returns the repetitions of all threads, those that take longest first.
  std::vector<Candidate> Candidates() const {
    std::vector<Candidate> candidates;
    for (const auto& [lane, items] : step_.lanes()) {
      std::vector<uint32_t> tokens;
      for (const StepItem& item : items) tokens.push_back(item.token);
      for (RepeatedRun run : FindRepeatedRuns(tokens)) {
        Nanos time;
        for (const StepItem& item : std::span(items).subspan(run.begin, run.length)) {
          time = time + *trace_.duration(item.node);
        }
        // A layer may itself consist of equal parts.
        const size_t period = run.period;
        for (size_t parts = 1; parts <= kMostParts && 2 * parts * period <= run.length; ++parts) {
          run.period = parts * period;
          candidates.push_back({.lane = lane, .run = run, .time = time});
        }
      }
    }
    std::ranges::stable_sort(candidates, std::greater<>(), &Candidate::time);
    return candidates;
  }

  // Returns the repetitions of the forward pass that may be those of layers, the likeliest first:
  // those that take long, and before repetitions of two, which may be two models.
  std::vector<const Candidate*> Anchors(std::span<const Candidate> candidates) const {
    std::vector<const Candidate*> anchors;
    for (const Candidate& candidate : candidates) {
      if (anchors.size() == kMostAnchors) break;
      const bool may_be = IsInForward(candidate) && MakesMemory(candidate);
      if (may_be && !Phases(candidate, nullptr).empty()) anchors.push_back(&candidate);
    }
    if (anchors.empty()) return anchors;
    const auto longest = static_cast<double>(anchors.front()->time.count);
    std::ranges::stable_partition(anchors, [&](const Candidate* candidate) {
      return candidate->run.count() > 2 &&
             static_cast<double>(candidate->time.count) >= kShareOfLayers * longest;
    });
    return anchors;
  }

  const std::vector<StepItem>& ItemsOf(LaneId lane) const { return step_.of(lane); }

  // Returns whether a repetition ends before the first backward pass.
  bool IsInForward(const Candidate& candidate) const {
    const StepItem& last = ItemsOf(candidate.lane)[candidate.run.begin + candidate.run.length - 1];
    return !step_.backward() || *trace_.start(last.node) < *step_.backward();
  }

  // Returns whether the first period makes memory, as layers do, rather than only change some.
  bool MakesMemory(const Candidate& candidate) const {
    bool makes = false;
    for (const StepItem& item :
         std::span(ItemsOf(candidate.lane)).subspan(candidate.run.begin, candidate.run.period)) {
      ForEachMade(trace_, item.node, [&](Storage) { makes = true; });
    }
    return makes;
  }

  // Returns the ways to divide a repetition into periods so that no label reaches from one into the
  // next. Each period must use memory of exactly one layer by `owners`, apart from memory that it
  // gathers for others; without owners, memory of its own.
  std::vector<Phase> Phases(const Candidate& candidate, const Owners* owners) const {
    std::vector<Phase> phases;
    const RepeatedRun& run = candidate.run;
    size_t most = 2;
    for (size_t shift = 0; shift < run.period && (run.length - shift) / run.period >= most;
         ++shift) {
      Phase phase;
      phase.begin = run.begin + shift;
      phase.count = (run.length - shift) / run.period;
      if (!IsWhole(candidate, phase)) continue;
      const bool fits = owners == nullptr ? HasOwnMemory(candidate, phase)
                                          : FindLayers(candidate, *owners, phase);
      if (!fits) continue;
      if (phase.gathered.empty()) most = phase.count;
      phases.push_back(std::move(phase));
    }
    // Periods that begin after a communication in a layer seem to gather memory of two.
    const auto gathers = [](const Phase& phase) { return !phase.gathered.empty(); };
    if (!std::ranges::all_of(phases, gathers)) std::erase_if(phases, gathers);
    return phases;
  }

  // Returns the bounds of the periods: labels around the first item of a period begin with it, if
  // they contain no item of another.
  std::vector<Nanos> BoundsOf(const Candidate& candidate, const Phase& phase) const {
    const std::vector<StepItem>& items = ItemsOf(candidate.lane);
    std::vector<Nanos> bounds;
    for (size_t i = 0; i <= phase.count; ++i) {
      const size_t item = phase.begin + i * candidate.run.period;
      const size_t next = item + candidate.run.period;
      if (item >= items.size()) {
        // The thread ends with the last period, and with the labels that began in it.
        bounds.push_back(EndOfLabels(items.back().node, bounds.front()));
        break;
      }
      const auto before = item == 0 ? std::nullopt : EndOf(trace_, items[item - 1].node);
      const auto after =
          i < phase.count && next < items.size() ? trace_.start(items[next].node) : std::nullopt;
      Nanos bound = *trace_.start(items[item].node);
      ForEachLabel(items[item].node, [&](Interval label) {
        const bool is_in_period =
            (!before || label.begin >= *before) && (!after || label.end <= *after);
        if (is_in_period) bound = std::min(bound, label.begin);
      });
      bounds.push_back(bound);
    }
    return bounds;
  }

  // Calls `fn` with the interval of each node above `node` on its thread.
  template <typename Fn>
  void ForEachLabel(NodeId node, Fn fn) const {
    for (NodeId above = trace_.parent(node); above; above = trace_.parent(above)) {
      const auto interval = TimeOf(trace_, above);
      if (interval && trace_.lane_id(above) == trace_.lane_id(node)) fn(*interval);
    }
  }

  // Returns the end of a node and of those above it that began from `begin` on.
  Nanos EndOfLabels(NodeId node, Nanos begin) const {
    Nanos end = *EndOf(trace_, node);
    ForEachLabel(node, [&](Interval label) {
      if (label.begin >= begin) end = std::max(end, label.end);
    });
    return end;
  }

  // Returns whether no label begins in one period and ends in a later one or after the last, and
  // gradients are in the period of the operator that made them.
  bool IsWhole(const Candidate& candidate, const Phase& phase) const {
    const std::vector<StepItem>& items = ItemsOf(candidate.lane);
    if (IsGradientAccumulation(trace_.name(items[phase.begin].node))) return false;
    const std::vector<Nanos> bounds = BoundsOf(candidate, phase);
    bool is_whole = true;
    for (size_t i = 1; i <= phase.count; ++i) {
      const size_t item = phase.begin + i * candidate.run.period;
      if (item >= items.size()) continue;
      ForEachLabel(items[item].node, [&](Interval label) {
        is_whole = is_whole && (label.begin >= bounds[i] || label.begin < bounds.front());
      });
    }
    return is_whole;
  }

  std::span<const StepItem> PeriodOf(const Candidate& candidate, const Phase& phase,
                                     size_t i) const {
    return std::span(ItemsOf(candidate.lane))
        .subspan(phase.begin + i * candidate.run.period, candidate.run.period);
  }

  // Returns the memory that the periods use and that existed before, with the layer of each: layers
  // are in the order of the forward pass. Memory of several periods belongs to none.
  Owners OwnersOf(const Candidate& candidate, const Phase& phase) const {
    Owners owners;
    std::unordered_set<Storage> shared;
    const bool is_reversed = IsInBackward(trace_, ItemsOf(candidate.lane)[phase.begin].node);
    for (size_t i = 0; i < phase.count; ++i) {
      const size_t layer = is_reversed ? phase.count - 1 - i : i;
      for (const StepItem& item : PeriodOf(candidate, phase, i)) {
        ForEachStorage(trace_, trace_.inputs(item.node), [&](Storage storage) {
          if (step_.IsMade(storage)) return;
          const auto [owner, is_new] = owners.try_emplace(storage, layer);
          if (!is_new && owner->second != layer) shared.insert(storage);
        });
      }
    }
    for (const Storage storage : shared) owners.erase(storage);
    return owners;
  }

  bool HasOwnMemory(const Candidate& candidate, const Phase& phase) const {
    std::vector<bool> found(phase.count);
    for (const auto& [storage, layer] : OwnersOf(candidate, phase)) found[layer] = true;
    return std::ranges::count(found, false) == 0;
  }

  // Returns the layer whose memory an item uses: parameters, or else gradients and what was
  // computed from them. `is_one` becomes false if it uses memory of several layers.
  std::optional<size_t> LayerOf(const StepItem& item, const Owners& owners, bool& is_one) const {
    const bool is_after = IsAfterBackward(item.node);
    for (const Owners* of : {&owners, &after_backward_}) {
      if (of == &after_backward_ && !is_after) break;
      std::optional<size_t> layer;
      ForEachStorage(trace_, trace_.inputs(item.node), [&](Storage storage) {
        const auto owner = of->find(storage);
        if (owner == of->end()) return;
        is_one = is_one && (!layer || *layer == owner->second);
        layer = owner->second;
      });
      if (layer) return layer;
    }
    if (const auto of = results_.find(item.node); of != results_.end()) return of->second;
    return std::nullopt;
  }

  // Finds the layer of each period. Items may use memory of other layers only before a
  // communication that gathers it. If all memory is gathered, the layer is the one that most items
  // use.
  bool FindLayers(const Candidate& candidate, const Owners& owners, Phase& phase) const {
    for (size_t i = 0; i < phase.count; ++i) {
      std::map<size_t, size_t> uses;  // by layer
      std::set<size_t> kept;          // layers whose memory was used without such a communication
      std::optional<size_t> current;
      for (const StepItem& item : PeriodOf(candidate, phase, i)) {
        bool is_one = true;
        const std::optional<size_t> used = LayerOf(item, owners, is_one);
        if (!is_one) return false;
        if (used) {
          ++uses[*used];
          if (current && *current != *used) kept.insert(*current);
          current = used;
        }
        if (communicates_[item.node.index()]) current.reset();
      }
      if (current) kept.insert(*current);
      if (uses.empty() || kept.size() > 1) return false;
      const auto most =
          std::ranges::max_element(uses, {}, [](const auto& use) { return use.second; });
      const size_t layer = kept.empty() ? most->first : *kept.begin();
      std::set<int64_t> gathered;
      for (const auto& [other, count] : uses) {
        if (other == layer) continue;
        gathered.insert(static_cast<int64_t>(other) - static_cast<int64_t>(layer));
      }
      if (std::ranges::count(phase.layers, layer) != 0) return false;
      if (i > 0 && gathered != phase.gathered) return false;
      phase.gathered = std::move(gathered);
      phase.layers.push_back(layer);
    }
    return true;
  }

  // Finds the host nodes in which a communication begins.
  static std::vector<bool> FindCommunicating(const Trace& trace) {
    std::vector<bool> found(trace.node_count());
    ForEachNode(trace, [&](NodeId node) {
      const bool begins = IsCommunication(trace.kind(node)) || IsC10dOperator(trace.name(node));
      if (!begins || trace.place(node) == Place::kDevice) return;
      for (NodeId above = node; above && !found[above.index()]; above = trace.parent(above)) {
        found[above.index()] = true;
      }
    });
    return found;
  }

  Result<LayerStack> StackOf(Owners owners, size_t layers, std::span<const Candidate> candidates) {
    LayerStack stack;
    stack.layers = layers;
    taken_.clear();
    after_backward_.clear();
    results_.clear();
    layers_in_lists_.clear();
    kept_gradients_.clear();
    // With each run, more memory of the layers is known.
    size_t before = 0;
    do {
      before = stack.runs.size();
      for (const Candidate& candidate : candidates) Take(candidate, owners, stack);
      FindGradients(stack, owners);
      FindResults(stack, owners);
      FindLists(stack, owners);
    } while (stack.runs.size() > before);
    std::ranges::sort(stack.runs, {}, [](const LayerRun& run) { return run.bounds.front(); });
    ETUDE_RETURN_IF_ERROR(CheckOthers(owners, stack));
    FindOtherLayers(candidates, stack);
    FindOthers(candidates, stack);
    return stack;
  }

  // Adds a repetition to the stack if it belongs to the layers and overlaps none taken before.
  void Take(const Candidate& candidate, const Owners& owners, LayerStack& stack) {
    const RepeatedRun& run = candidate.run;
    if (run.count() > stack.layers) {
      // Operators that are all the same, such as those on the numbers of a list, perhaps
      // repeatedly.
      Candidate rest = candidate;
      while (const auto grouped = ByLayer(rest, owners, stack.layers)) {
        Take(*grouped, owners, stack);
        const size_t end = grouped->run.begin + grouped->run.length;
        rest.run.length -= end - rest.run.begin;
        rest.run.begin = end;
      }
      return;
    }
    if (run.count() + kMostIrregular < stack.layers) return;
    const std::vector<Phase> phases = Phases(candidate, &owners);
    if (phases.empty()) return;
    const Phase& phase = phases.front();
    const size_t end = phase.begin + phase.count * run.period;
    if (IsTaken(candidate.lane, phase.begin, end)) return;
    taken_[candidate.lane].emplace_back(phase.begin, end);
    stack.runs.push_back(
        {.lane = candidate.lane,
         .bounds = BoundsOf(candidate, phase),
         .layers = phase.layers,
         .gathered = phase.gathered,
         .operators = run.period,
         .in_backward = IsInBackward(trace_, ItemsOf(candidate.lane)[phase.begin].node)});
  }

  // Returns whether a run has items from `begin` to `end` of a thread.
  bool IsTaken(LaneId lane, size_t begin, size_t end) const {
    const auto taken = taken_.find(lane);
    return taken != taken_.end() && std::ranges::any_of(taken->second, [&](const auto& other) {
             return begin < other.second && other.first < end;
           });
  }

  // Returns the first part of a repetition that uses the memory of `layers` layers, one after
  // another for the same number of periods; nullopt without such a part.
  std::optional<Candidate> ByLayer(const Candidate& candidate, const Owners& owners,
                                   size_t layers) const {
    const RepeatedRun& run = candidate.run;
    const std::vector<StepItem>& items = ItemsOf(candidate.lane);
    std::vector<size_t> begins;  // items at which the layer changes
    std::optional<size_t> layer;
    for (size_t i = run.begin; i < run.begin + run.length && begins.size() <= layers; ++i) {
      bool is_one = true;
      const std::optional<size_t> used = LayerOf(items[i], owners, is_one);
      if (used && used != layer) begins.push_back(i);
      if (used) layer = used;
    }
    if (begins.size() < layers) return std::nullopt;
    const size_t period = begins[1] - begins[0];
    const size_t end = begins[0] + period * layers;
    bool fits = period % run.period == 0 && end <= run.begin + run.length;
    for (size_t i = 1; i < layers; ++i) fits = fits && begins[i] - begins[i - 1] == period;
    fits = fits && (begins.size() == layers || begins[layers] >= end);
    if (!fits) return std::nullopt;
    return Candidate{.lane = candidate.lane,
                     .run = {.begin = begins[0], .length = period * layers, .period = period},
                     .time = candidate.time};
  }

  bool IsAfterBackward(NodeId node) const {
    return step_.last_gradient() && *trace_.start(node) > *step_.last_gradient();
  }

  // Calls `fn(item, layer, maker)` for each item of a thread from `begin` on, in order of time,
  // with the layer of its period. `maker(storage)` returns the layer whose operator made the memory
  // last.
  template <typename Fn>
  void Walk(const LayerStack& stack, std::span<const StepItem> items, Nanos begin, Fn fn) const {
    std::unordered_map<Storage, size_t> current;
    const auto maker = [&](Storage storage) {
      const auto made = current.find(storage);
      return made == current.end() ? std::nullopt : std::optional(made->second);
    };
    for (const StepItem& item : items) {
      if (*trace_.start(item.node) < begin) continue;
      const std::optional<size_t> layer =
          stack.LayerAt(trace_.lane_id(item.node), *trace_.start(item.node));
      fn(item, layer, maker);
      ForEachMade(trace_, item.node, [&](Storage storage) {
        if (layer) {
          current[storage] = *layer;
        } else {
          current.erase(storage);
        }
      });
    }
  }

  // Returns whether memory is still the same at the end: its address is not used again after
  // `moment`.
  bool IsKept(Storage storage, Nanos moment) const {
    const std::optional<Nanos> last = step_.LastMade(storage);
    return !last || *last <= moment;
  }

  // Finds the layers of gradients: those of the operators that made them.
  void FindGradients(const LayerStack& stack, Owners& owners) {
    for (const auto& [lane, items] : step_.lanes()) {
      Walk(stack, items, kFirst,
           [&](const StepItem& item, std::optional<size_t> layer, auto maker) {
             if (!IsGradientAccumulation(trace_.name(item.node))) return;
             ForEachStorage(trace_, trace_.inputs(item.node), [&](Storage storage) {
               if (!layer) layer = maker(storage);
               const bool is_kept = IsKept(storage, *trace_.start(item.node));
               if (layer && is_kept) after_backward_.try_emplace(storage, *layer);
             });
             if (layer) results_.try_emplace(item.node, *layer);
             // Gradients that are kept from step to step are added to.
             for (const NodeId child : trace_.children(item.node)) {
               ForEachStorage(trace_, trace_.inputs(child), [&](Storage storage) {
                 if (step_.IsMade(storage)) return;
                 kept_gradients_.insert(storage);
                 if (layer) owners.try_emplace(storage, *layer);
               });
             }
           });
    }
  }

  // Finds what belongs to one layer after the backward pass: gradients, which only this layer uses,
  // and operators on what was computed from them, such as norms. Gradients that are kept from step
  // to step belong to it throughout, also if the layer's backward pass differs from the others.
  void FindResults(const LayerStack& stack, Owners& owners) {
    if (!step_.last_gradient()) return;
    std::unordered_map<Storage, std::optional<size_t>> users;  // nullopt: several layers
    const Nanos after = *step_.last_gradient() + Nanos{1};
    for (const auto& [lane, items] : step_.lanes()) {
      Walk(stack, items, after, [&](const StepItem& item, std::optional<size_t> layer, auto maker) {
        ForEachStorage(trace_, trace_.inputs(item.node), [&](Storage storage) {
          if (const auto of = maker(storage)) results_.try_emplace(item.node, *of);
          const bool is_gradient =
              step_.IsAccumulated(storage) || kept_gradients_.contains(storage);
          if (!layer || !is_gradient) return;
          const auto [user, is_new] = users.try_emplace(storage, layer);
          if (!is_new && user->second != layer) user->second = std::nullopt;
        });
      });
    }
    for (const auto& [storage, layer] : users) {
      if (!layer) continue;
      if (kept_gradients_.contains(storage)) {
        owners.try_emplace(storage, *layer);
      } else if (IsKept(storage, *step_.last_gradient())) {
        after_backward_.try_emplace(storage, *layer);
      }
    }
  }

  // Finds the operators on lists outside of the layers. Tensors at the same place of an operator's
  // lists belong together, such as a parameter, its gradient and its moments; so do those in lists
  // of the same length, such as all lists of an optimizer.
  void FindLists(LayerStack& stack, Owners& owners) {
    stack.lists.clear();
    for (const NodeId node : step_.lists()) {
      if (stack.LayerAt(trace_.lane_id(node), *trace_.start(node))) continue;
      const double share = ShareOfLayers(node, owners);
      if (share > 0) stack.lists.push_back({.node = node, .share = share});
    }
  }

  // Returns the share of the bytes in an operator's lists that belong to layers, and adds the
  // memory in them to `owners`.
  double ShareOfLayers(NodeId node, Owners& owners) {
    const bool is_after = IsAfterBackward(node);
    double all = 0;
    double of_layers = 0;
    const std::vector<std::vector<TensorId>> lists = ListsOf(trace_, node);
    for (const std::vector<TensorId>& list : lists) {
      std::map<size_t, size_t>& layers = layers_in_lists_[list.size()];
      for (size_t i = 0; i < list.size(); ++i) {
        const Storage storage = trace_.tensor(list[i]).storage;
        if (const auto owner = owners.find(storage); owner != owners.end()) {
          layers.try_emplace(i, owner->second);
        } else if (const auto after = after_backward_.find(storage);
                   is_after && after != after_backward_.end()) {
          layers.try_emplace(i, after->second);
        }
      }
    }
    for (const std::vector<TensorId>& list : lists) {
      const std::map<size_t, size_t>& layers = layers_in_lists_[list.size()];
      for (size_t i = 0; i < list.size(); ++i) {
        const TensorUse& use = trace_.tensor(list[i]);
        const auto bytes = static_cast<double>(BytesOf(use));
        all += bytes;
        const auto layer = layers.find(i);
        if (layer == layers.end()) continue;
        of_layers += bytes;
        if (use.storage != 0 && !step_.IsMade(use.storage)) {
          owners.try_emplace(use.storage, layer->second);
        }
      }
    }
    return all > 0 ? of_layers / all : 0;
  }

  // Returns kBadInput if operators use parameters or gradients of layers but do not repeat with
  // them. Layers that are missing in some run may differ from the others.
  Status CheckOthers(const Owners& owners, const LayerStack& stack) const {
    std::vector<bool> may_differ(stack.layers);
    for (const LayerRun& run : stack.runs) {
      std::set<int64_t> offsets = run.gathered;
      offsets.insert(0);
      for (const int64_t offset : offsets) {
        std::set<int64_t> used;
        for (const size_t layer : run.layers) used.insert(static_cast<int64_t>(layer) + offset);
        for (size_t layer = 0; layer < stack.layers; ++layer) {
          if (!used.contains(static_cast<int64_t>(layer))) may_differ[layer] = true;
        }
      }
    }
    for (const auto& [lane, items] : step_.lanes()) {
      for (const StepItem& item : items) {
        if (HasTensorList(trace_, item.node)) continue;
        if (stack.LayerAt(lane, *trace_.start(item.node))) continue;
        const bool is_after = IsAfterBackward(item.node);
        std::optional<size_t> layer;
        const auto find = [&](const Owners& in, Storage storage) {
          if (const auto owner = in.find(storage); owner != in.end()) layer = owner->second;
        };
        ForEachStorage(trace_, trace_.inputs(item.node), [&](Storage storage) {
          find(owners, storage);
          if (is_after) find(after_backward_, storage);
        });
        if (!layer || may_differ[*layer]) continue;
        return BadInput(fmt::format(
            "found '{}' (node {}), which uses memory of layer {} of {} but does not repeat with "
            "the others, expected layers that all do the same{}",
            trace_.name(item.node), trace_.source_id(item.node), *layer + 1, stack.layers,
            stack.layers == 2 ? "; if the first or last one differs, record three" : ""));
      }
    }
    return {};
  }

  // Finds layers of the forward pass outside of the stack.
  void FindOtherLayers(std::span<const Candidate> candidates, LayerStack& stack) {
    size_t most = 0;
    for (const LayerRun& run : stack.runs) most = std::max(most, run.layers.size() * run.operators);
    for (const Candidate& candidate : candidates) {
      if (kPartOfOthers * candidate.run.length < most) continue;
      if (!IsInForward(candidate) || !MakesMemory(candidate)) continue;
      const std::vector<Phase> phases = Phases(candidate, nullptr);
      if (phases.empty()) continue;
      const Phase& phase = phases.front();
      const size_t end = phase.begin + phase.count * candidate.run.period;
      if (IsTaken(candidate.lane, phase.begin, end)) continue;
      taken_[candidate.lane].emplace_back(phase.begin, end);
      stack.other_layers.push_back({.layers = phase.count, .first = NameOfFirst(candidate, phase)});
    }
  }

  // Returns the outermost module in the first period, or the name of its first operator.
  std::string NameOfFirst(const Candidate& candidate, const Phase& phase) const {
    const NodeId first = ItemsOf(candidate.lane)[phase.begin].node;
    const Nanos begin = BoundsOf(candidate, phase).front();
    std::string name(trace_.name(first));
    for (NodeId above = trace_.parent(first); above; above = trace_.parent(above)) {
      if (!trace_.start(above) || *trace_.start(above) < begin) break;
      if (IsModuleLabel(trace_.name(above))) name = ModuleOfLabel(trace_.name(above)).name;
    }
    return name;
  }

  // Finds operators outside of the layers that repeat as often and may belong to them: they read
  // what several layers have made, or no tensor at all.
  void FindOthers(std::span<const Candidate> candidates, LayerStack& stack) const {
    std::map<LaneId, std::vector<std::set<size_t>>> read;
    for (const auto& [lane, items] : step_.lanes()) read[lane] = LayersRead(stack, items);
    for (const Candidate& candidate : candidates) {
      const RepeatedRun& run = candidate.run;
      const bool is_as_often =
          run.count() == stack.layers || (stack.layers > 3 && run.count() + 1 == stack.layers);
      if (!is_as_often || IsTaken(candidate.lane, run.begin, run.begin + run.length)) continue;
      std::set<size_t> layers;
      bool reads = false;
      for (size_t i = run.begin; i < run.begin + run.length; ++i) {
        layers.merge(std::set(read[candidate.lane][i]));
        ForEachStorage(trace_, trace_.inputs(ItemsOf(candidate.lane)[i].node),
                       [&](Storage) { reads = true; });
      }
      if (reads && layers.size() < 2) continue;
      const std::string_view name = trace_.name(ItemsOf(candidate.lane)[run.begin].node);
      if (std::ranges::count(stack.others, name) == 0) stack.others.emplace_back(name);
    }
  }

  // Returns the layers whose operators made what each item of a thread reads.
  std::vector<std::set<size_t>> LayersRead(const LayerStack& stack,
                                           std::span<const StepItem> items) const {
    std::vector<std::set<size_t>> read;
    Walk(stack, items, kFirst, [&](const StepItem& item, std::optional<size_t>, auto maker) {
      std::set<size_t>& layers = read.emplace_back();
      ForEachStorage(trace_, trace_.inputs(item.node), [&](Storage storage) {
        if (const auto of = maker(storage)) layers.insert(*of);
      });
    });
    return read;
  }

  const Trace& trace_;
  const StepItems step_;
  const std::vector<bool> communicates_;  // by node: a communication begins in it
  std::map<LaneId, std::vector<std::pair<size_t, size_t>>> taken_;  // items of runs
  std::unordered_map<NodeId, size_t> results_;  // layer of operators on what a layer has made
  Owners after_backward_;                       // memory of gradients of layers
  std::unordered_set<Storage> kept_gradients_;  // that existed before the step
  std::map<size_t, std::map<size_t, size_t>> layers_in_lists_;  // layer by length and place
};

}  // namespace

std::optional<size_t> LayerRun::PeriodAt(LaneId of, Nanos moment) const {
  if (of != lane) return std::nullopt;
  const auto next = std::ranges::upper_bound(bounds, moment);
  if (next == bounds.begin() || next == bounds.end()) return std::nullopt;
  return static_cast<size_t>(next - bounds.begin()) - 1;
}

std::optional<size_t> LayerStack::LayerAt(LaneId lane, Nanos moment) const {
  for (const LayerRun& run : runs) {
    if (const auto period = run.PeriodAt(lane, moment)) return run.layers[*period];
  }
  return std::nullopt;
}

Result<LayerStack> FindLayerStack(const Trace& trace) { return StackFinder(trace).Run(); }

}  // namespace etude
