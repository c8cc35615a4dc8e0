#include "src/transform/layers/stage_split.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "src/base/text/format_count.h"
#include "src/run/activity.h"
#include "src/run/calls/launch.h"
#include "src/run/step/recorded_step.h"
#include "src/run/step/tensor_shape.h"
#include "src/run/step/updated_tensors.h"
#include "src/transform/layers/step_items.h"

namespace etude {
namespace {

constexpr Nanos kNever{std::numeric_limits<int64_t>::max()};
constexpr std::string_view kNearest = "nearest possible: --dp, which adds data-parallel ranks";

using Places = std::set<uint32_t>;

// Bytes between the first and the last element of a tensor in its memory.
struct Extent {
  int64_t begin = 0;
  int64_t end = 0;
};

// Elements of a tensor that are sent: a part of memory.
struct SentPart {
  Extent extent;
  int64_t bytes = 0;
  bool has_gradient = false;
};

class StageSplitter {
 public:
  StageSplitter(const Trace& trace, size_t stages, std::optional<size_t> layers)
      : trace_(trace),
        wanted_stages_(stages),
        wanted_layers_(layers),
        step_(trace),
        updated_(trace) {}

  Result<StageSplit> Run() {
    ETUDE_RETURN_IF_ERROR(CheckCommunication());
    ETUDE_RETURN_IF_ERROR(FindPasses());
    ETUDE_RETURN_IF_ERROR(FindPlaces());
    FindItems();
    FindUsers();
    ETUDE_RETURN_IF_ERROR(CheckWeights());
    ETUDE_RETURN_IF_ERROR(WalkForward());
    ETUDE_RETURN_IF_ERROR(FindBoundaries());
    FindGradients();
    WalkBackward();
    // The second time, memory is known that the first one has found.
    for (int i = 0; i < 2; ++i) WalkUpdates();
    AssignNodes();
    return std::move(split_);
  }

 private:
  // Contents of memory that the step has made, from one moment to the next write.
  struct Version {
    uint32_t place = 0;
    bool has_weights = false;     // depends on weights
    std::vector<NodeId> makers;   // items
    std::vector<SentPart> parts;  // read by later places
    uint32_t last_reader = 0;     // place
  };
  struct Item {
    NodeId node;
    LaneId lane;
    Nanos start;
  };

  Status CheckCommunication() const {
    NodeId found;
    ForEachNode(trace_, [&](NodeId node) {
      if (IsCommunication(trace_.kind(node)) && !found) found = node;
    });
    if (!found) return {};
    return BadInput(fmt::format("found '{}' (node {}), expected one rank without communication; {}",
                                trace_.name(found), trace_.source_id(found), kNearest));
  }

  Status FindPasses() {
    std::vector<BackwardPass> passes = FindBackwardPasses(trace_);
    if (passes.size() > 1) {
      return BadInput(fmt::format(
          "found {}, expected one: the recorded batch becomes a micro-batch; record a step without "
          "accumulated gradients",
          FormatCount(passes.size(), "backward pass", "backward passes")));
    }
    split_.has_backward = step_.backward().has_value();
    backward_ = step_.backward().value_or(kNever);
    after_ = kNever;
    if (!split_.has_backward) return {};
    if (passes.empty()) {
      return BadInput(
          "found no gradients ('torch::autograd::AccumulateGrad' with tensors and times), expected "
          "a recorded training step, or one without a backward pass");
    }
    gradients_ = std::move(passes.front().gradients);
    after_ = backward_;
    ForEachNode(trace_, [&](NodeId node) {
      const bool is_call = trace_.name(node).starts_with(kAutogradCall);
      const auto end = EndOf(trace_, node);
      if (is_call && end && trace_.place(node) != Place::kDevice) after_ = std::max(after_, *end);
    });
    for (const RecordedGradient& gradient : gradients_) {
      after_ = std::max(after_, EndOf(trace_, gradient.node).value_or(after_));
    }
    return {};
  }

  // ---- places by time

  // Finds when places begin in the forward pass, and when they end in the backward pass.
  Status FindPlaces() {
    if (wanted_stages_ == 1 && !wanted_layers_) {
      split_.stages.push_back({.first_layer = 0, .layers = 0, .segments = {{0}}, .sent = {}});
      return {};
    }
    Result<LayerStack> stack = FindLayerStack(trace_);
    if (!stack) {
      return MakeError(stack.error().code, fmt::format("{}; {}", stack.error().message, kNearest));
    }
    split_.stack = *std::move(stack);
    const size_t recorded = split_.stack.layers;
    const size_t layers = wanted_layers_.value_or(recorded);
    if (wanted_stages_ > layers) {
      return BadInput(
          fmt::format("found {} for {}, expected at least one for each; nearest possible: --pp {}",
                      FormatCount(layers, "layer"), FormatCount(wanted_stages_, "stage"), layers));
    }
    for (size_t i = 0; i < wanted_stages_; ++i) {
      const size_t more = layers % wanted_stages_;
      split_.stages.push_back({.first_layer = layers / wanted_stages_ * i + std::min(i, more),
                               .layers = layers / wanted_stages_ + (i < more ? 1 : 0),
                               .segments = {},
                               .sent = {}});
    }
    ETUDE_ASSIGN_OR_RETURN(const LayerRun* const forward, FindForward());
    first_layer_ = forward->bounds.front();
    if (layers == recorded) {
      for (size_t i = 0; i < wanted_stages_; ++i) {
        split_.stages[i].segments = {{static_cast<uint32_t>(i)}};
        if (i > 0) firsts_.push_back(split_.stages[i].first_layer);
      }
    } else {
      ETUDE_RETURN_IF_ERROR(RepeatLayers(layers));
    }
    for (const size_t layer : firsts_) begins_.push_back(forward->bounds[layer]);
    return split_.has_backward ? FindBackwardPlaces() : Status();
  }

  // Returns the repetition of all layers in the forward pass, in their order.
  Result<const LayerRun*> FindForward() {
    FindReleases();
    const LayerRun* forward = nullptr;
    bool fits = true;
    for (const LayerRun& run : split_.stack.runs) {
      if (run.bounds.front() >= backward_ || IsReleased(run.bounds.front())) continue;
      fits = fits && forward == nullptr && run.layers.size() == split_.stack.layers &&
             std::ranges::is_sorted(run.layers);
      forward = &run;
    }
    if (forward != nullptr && fits) return forward;
    return BadInput(fmt::format(
        "found layers in several parts of the forward pass, expected one after another; {}",
        kNearest));
  }

  // Makes each recorded layer a place, if its bounds are known in all passes, and the stages of
  // `layers` layers from them.
  Status RepeatLayers(size_t layers) {
    const size_t recorded = split_.stack.layers;
    size_t begin = 0;
    while (begin <= recorded && !HasBound(begin)) ++begin;
    size_t end = begin;
    while (end < recorded && HasBound(end + 1)) ++end;
    const size_t regular = end - std::min(begin, end);
    const size_t irregular = recorded - regular;
    const size_t after = recorded - end;  // with the last place
    if (regular == 0 || layers < irregular) {
      return BadInput(
          fmt::format("found {} that differ from the others, expected {} that all do "
                      "the same; {}",
                      FormatCount(irregular, "layer"), FormatCount(layers), kNearest));
    }
    for (size_t layer = begin; layer <= end; ++layer) firsts_.push_back(layer);
    const bool fits = split_.stages.front().layers >= begin && split_.stages.back().layers >= after;
    if (!fits) {
      return BadInput(fmt::format(
          "found {} that differ from the others, expected them on the first or last stage; nearest "
          "possible: a smaller --pp",
          FormatCount(irregular, "layer")));
    }
    Visit(0, 0);
    for (size_t layer = begin; layer < layers - after; ++layer) {
      Visit(layer, static_cast<uint32_t>(1 + (layer - begin) % regular));
    }
    Visit(layers, static_cast<uint32_t>(regular + 1));
    return {};
  }

  // Adds a place to the stage that has a layer; the end of all layers belongs to the last stage.
  void Visit(size_t layer, uint32_t place) {
    auto stage = split_.stages.begin();
    while (std::next(stage) != split_.stages.end() && std::next(stage)->first_layer <= layer) {
      ++stage;
    }
    const bool goes_on = !stage->segments.empty() && stage->segments.back().back() + 1 == place;
    if (!goes_on) stage->segments.emplace_back();
    stage->segments.back().push_back(place);
  }

  // Returns the end of a layer's backward pass, or the begin of that of the layer before; nullopt
  // if both are unknown.
  std::optional<Nanos> BackwardBound(size_t layer) const {
    std::optional<Nanos> end;
    std::optional<Nanos> next;
    for (const LayerRun& run : split_.stack.runs) {
      if (!run.in_backward) continue;
      for (size_t i = 0; i < run.layers.size(); ++i) {
        if (run.layers[i] == layer) end = std::max(end.value_or(Nanos{}), run.bounds[i + 1]);
        if (run.layers[i] + 1 == layer) next = std::min(next.value_or(kNever), run.bounds[i]);
      }
    }
    return end ? end : next;
  }
  bool HasBound(size_t layer) const {
    return !split_.has_backward || BackwardBound(layer).has_value();
  }

  Status FindBackwardPlaces() {
    for (const size_t layer : firsts_) {
      const std::optional<Nanos> bound = BackwardBound(layer);
      if (!bound) {
        return BadInput(fmt::format(
            "found no bound between the layers {} and {} in the backward pass, expected layers "
            "that all do the same; {}",
            layer, layer + 1, kNearest));
      }
      ends_.push_back(*bound);
    }
    bool fits = std::ranges::is_sorted(ends_, std::greater<>());
    for (const LayerRun& run : split_.stack.runs) {
      for (size_t i = 0; run.in_backward && i < run.layers.size(); ++i) {
        const uint32_t wanted = PlaceOfLayer(run.layers[i]);
        fits = fits && BackwardPlace(run.bounds[i]) == wanted &&
               BackwardPlace(run.bounds[i + 1] - Nanos{1}) == wanted;
      }
    }
    if (fits) return {};
    return BadInput(fmt::format(
        "found backward passes of layers in several parts, expected one layer after another; {}",
        kNearest));
  }

  uint32_t place_count() const { return static_cast<uint32_t>(firsts_.size() + 1); }
  uint32_t PlaceOfLayer(size_t layer) const {
    return static_cast<uint32_t>(std::ranges::upper_bound(firsts_, layer) - firsts_.begin());
  }
  uint32_t ForwardPlace(Nanos moment) const {
    return static_cast<uint32_t>(std::ranges::upper_bound(begins_, moment) - begins_.begin());
  }
  uint32_t BackwardPlace(Nanos moment) const {
    return static_cast<uint32_t>(
        std::ranges::count_if(ends_, [&](Nanos end) { return moment < end; }));
  }

  // ---- parts of the step

  // Finds labels in which gradients are set to zero or released.
  void FindReleases() {
    if (!releases_.empty()) return;
    ForEachNode(trace_, [&](NodeId node) {
      if (!IsGradientRelease(trace_.name(node))) return;
      if (const auto time = TimeOf(trace_, node)) releases_.push_back(*time);
    });
  }
  bool IsReleased(Nanos moment) const {
    return std::ranges::any_of(releases_, [&](const Interval& release) {
      return moment >= release.begin && moment < release.end;
    });
  }

  StepPart PartAt(Nanos moment) const {
    if (moment >= after_) return StepPart::kAfter;
    if (moment >= backward_) return StepPart::kBackward;
    return IsReleased(moment) ? StepPart::kBefore : StepPart::kForward;
  }

  void FindItems() {
    FindReleases();
    for (const auto& [lane, items] : step_.lanes()) {
      for (const StepItem& item : items) {
        items_.push_back({.node = item.node, .lane = lane, .start = *trace_.start(item.node)});
      }
    }
    // Operators on lists that call others for each tensor.
    std::unordered_set<NodeId> known;
    for (const Item& item : items_) known.insert(item.node);
    for (const NodeId node : step_.lists()) {
      if (known.contains(node) || !trace_.start(node)) continue;
      items_.push_back({.node = node, .lane = trace_.lane_id(node), .start = *trace_.start(node)});
    }
    std::ranges::sort(items_, {},
                      [](const Item& item) { return std::pair(item.start, item.node.index()); });
  }

  // ---- weights

  bool IsFloat(const TensorUse& use) const { return IsFloating(DTypeOf(trace_, use)); }

  template <typename Fn>
  void ForEachUse(NodeId node, Fn fn) const {
    ForEachTensor(trace_, trace_.inputs(node), [&](TensorId id) {
      const TensorUse& use = trace_.tensor(id);
      if (HasMemory(use)) fn(use);
    });
  }

  // Finds the places that read memory of floating-point numbers from before the step, and which of
  // it changes after the backward pass: parameters, gradients and states of the optimizer. Memory
  // that needs no gradient and that only operators before the layers read has constants, such as
  // frequencies of positions.
  void FindUsers() {
    for (const Item& item : items_) {
      const StepPart part = PartAt(item.start);
      ForEachUse(item.node, [&](const TensorUse& use) {
        if (step_.IsMade(use.storage) || !IsFloat(use)) return;
        if (part == StepPart::kForward) users_[use.storage].insert(ForwardPlace(item.start));
        const bool is_constant = part == StepPart::kForward && item.start < first_layer_ &&
                                 use.requires_grad == Known::kNo;
        if (!is_constant) learned_.insert(use.storage);
        if (part == StepPart::kBackward) users_[use.storage].insert(BackwardPlace(item.start));
        if (part == StepPart::kAfter) trained_.insert(use.storage);
      });
    }
    for (const auto& [storage, places] : users_) {
      if (places.size() == 1 && learned_.contains(storage)) owners_[storage] = *places.begin();
    }
  }

  // Returns whether memory from before the step has weights rather than constants, of which each
  // place has a copy.
  bool IsWeight(Storage storage) const {
    return trained_.contains(storage) || owners_.contains(storage) ||
           (trained_.empty() && users_.contains(storage));
  }

  // Returns what users call a place.
  std::string_view PlaceName(bool several) const {
    const bool is_stage = place_count() == wanted_stages_;
    if (several) return is_stage ? "stages" : "parts";
    return is_stage ? "stage" : "part";
  }

  // Returns kBadInput for weights of several places.
  Status CheckWeights() const {
    for (const Item& item : items_) {
      const StepPart part = PartAt(item.start);
      if (part != StepPart::kForward && part != StepPart::kBackward) continue;
      std::optional<Error> error;
      ForEachUse(item.node, [&](const TensorUse& use) {
        const auto users = users_.find(use.storage);
        const bool is_shared = users != users_.end() && users->second.size() > 1;
        if (!is_shared || step_.IsMade(use.storage) || !IsWeight(use.storage) || error) return;
        error =
            Error{ErrorCode::kBadInput,
                  fmt::format(
                      "found '{}' (node {}), which uses weights of the {} {} and {}, such as tied "
                      "ones, expected weights of one {}; {}",
                      trace_.name(item.node), trace_.source_id(item.node), PlaceName(true),
                      *users->second.begin() + 1, *users->second.rbegin() + 1, PlaceName(false),
                      kNearest)};
      });
      if (error) return tl::unexpected<Error>(*error);
    }
    return {};
  }

  // ---- forward pass

  Status WalkForward() {
    for (const Item& item : items_) {
      if (PartAt(item.start) != StepPart::kForward) continue;
      const uint32_t place = ForwardPlace(item.start);
      places_of_[item.node] = {place};
      bool has_weights = false;
      Status status;
      ForEachUse(item.node, [&](const TensorUse& use) {
        const auto current = current_.find(use.storage);
        if (current == current_.end()) {
          has_weights = has_weights || (!step_.IsMade(use.storage) && IsWeight(use.storage));
          return;
        }
        Version& version = versions_[current->second];
        has_weights = has_weights || version.has_weights;
        if (version.place == place) return;
        if (!version.has_weights) return CopyTo(place, current->second);
        version.last_reader = std::max(version.last_reader, place);
        const Status added = AddPart(item.node, use, version);
        if (status) status = added;
      });
      ETUDE_RETURN_IF_ERROR(status);
      inputs_[item.node] = VersionsRead(item.node);
      Write(item.node, place, has_weights);
    }
    return {};
  }

  std::vector<size_t> VersionsRead(NodeId node) const {
    std::vector<size_t> read;
    ForEachUse(node, [&](const TensorUse& use) {
      const auto current = current_.find(use.storage);
      if (current != current_.end()) read.push_back(current->second);
    });
    return read;
  }

  // Makes the operators of a tensor without weights run on another place, too.
  void CopyTo(uint32_t place, size_t version) {
    for (const NodeId maker : versions_[version].makers) {
      if (!places_of_[maker].insert(place).second) continue;
      for (const size_t read : inputs_[maker]) CopyTo(place, read);
    }
  }

  void Write(NodeId node, uint32_t place, bool has_weights) {
    const auto make = [&](Storage storage) {
      current_[storage] = versions_.size();
      versions_.push_back({.place = place,
                           .has_weights = has_weights,
                           .makers = {node},
                           .parts = {},
                           .last_reader = 0});
    };
    ForEachMade(trace_, node, make);
    const std::vector<bool> is_updated = updated_.Of(node);
    size_t index = 0;
    ForEachTensor(trace_, trace_.inputs(node), [&](TensorId id) {
      const size_t at = index++;
      if (at >= is_updated.size() || !is_updated[at]) return;
      const auto current = current_.find(trace_.tensor(id).storage);
      if (current == current_.end()) return;
      Version& version = versions_[current->second];
      if (version.place != place) return make(trace_.tensor(id).storage);
      version.has_weights = version.has_weights || has_weights;
      version.makers.push_back(node);
    });
  }

  // Adds a part of memory that a later place reads.
  Status AddPart(NodeId reader, const TensorUse& use, Version& version) {
    const auto shape = ShapeOf(trace_, use);
    const DType dtype = DTypeOf(trace_, use);
    const auto element = ElementBytes(dtype);
    if (!shape || !element || use.numel < 0) {
      return BadInput(fmt::format(
          "found '{}' (node {}), which reads a tensor of another place without size or type, "
          "expected a recording with the shapes of all tensors",
          trace_.name(reader), trace_.source_id(reader)));
    }
    const Extent extent{.begin = use.offset * *element, .end = shape->storage_bytes};
    const bool has_gradient =
        split_.has_backward && IsFloat(use) && use.requires_grad != Known::kNo;
    SentPart part{.extent = extent, .bytes = use.numel * *element, .has_gradient = has_gradient};
    // The largest of several views is sent.
    for (SentPart& other : version.parts) {
      if (other.extent.begin <= extent.begin && extent.end <= other.extent.end &&
          part.bytes <= other.bytes) {
        other.has_gradient = other.has_gradient || has_gradient;
        return {};
      }
    }
    std::erase_if(version.parts, [&](const SentPart& other) {
      const bool is_inside = extent.begin <= other.extent.begin && other.extent.end <= extent.end &&
                             other.bytes <= part.bytes;
      if (is_inside) part.has_gradient = part.has_gradient || other.has_gradient;
      return is_inside;
    });
    version.parts.push_back(part);
    return {};
  }

  Status FindBoundaries() {
    std::vector<std::vector<StageTensor>> after(place_count());  // each place
    for (const Version& version : versions_) {
      for (uint32_t place = version.place; place < version.last_reader; ++place) {
        for (const SentPart& part : version.parts) {
          after[place].push_back({.bytes = Bytes{part.bytes}, .has_gradient = part.has_gradient});
        }
      }
    }
    for (size_t i = 0; i + 1 < split_.stages.size(); ++i) {
      const Stage& next = split_.stages[i + 1];
      const uint32_t first = next.segments.front().front();
      // A copy of the first layer reads what the other layers read.
      const bool is_copy = first == 1 && next.first_layer > firsts_.front() && place_count() > 3;
      split_.stages[i].sent = after[is_copy ? 1 : first - 1];
      if (!split_.stages[i].sent.empty()) continue;
      return BadInput(fmt::format(
          "found no tensor that stage {} reads from those before, expected a recording with the "
          "tensors of all operators; {}",
          i + 2, kNearest));
    }
    return {};
  }

  // ---- backward pass and updates

  void FindGradients() {
    split_.gradients.resize(place_count());
    gradient_bytes_.resize(place_count());
    for (const RecordedGradient& gradient : gradients_) {
      const uint32_t place = BackwardPlace(*trace_.start(gradient.node));
      split_.gradients[place].push_back(gradient);
      gradient_bytes_[place] += static_cast<double>(gradient.bytes.count);
    }
  }

  void WalkBackward() {
    for (const Item& item : items_) {
      if (PartAt(item.start) != StepPart::kBackward) continue;
      const uint32_t place = BackwardPlace(item.start);
      places_of_[item.node] = {place};
      ForEachMade(trace_, item.node, [&](Storage storage) { made_by_[storage] = {place}; });
      if (!IsGradientAccumulation(trace_.name(item.node))) continue;
      ForEachUse(item.node, [&](const TensorUse& use) { made_by_[use.storage] = {place}; });
      // Gradients that are kept from step to step are added to.
      for (const NodeId child : trace_.children(item.node)) {
        ForEachUse(child, [&](const TensorUse& use) {
          if (!step_.IsMade(use.storage)) owners_.try_emplace(use.storage, place);
        });
      }
    }
  }

  // Returns the places that have a tensor before or after the passes.
  Places PlacesOf(const TensorUse& use, const std::unordered_map<Storage, Places>& made) const {
    if (const auto of = made.find(use.storage); of != made.end()) return of->second;
    if (const auto of = owners_.find(use.storage); of != owners_.end()) return {of->second};
    return {};
  }

  // Finds the places of operators before and after the passes, such as those of the optimizer.
  void WalkUpdates() {
    std::unordered_map<Storage, Places> made = made_by_;
    for (const Item& item : items_) {
      const StepPart part = PartAt(item.start);
      if (part == StepPart::kForward) {
        ForEachMade(trace_, item.node, [&](Storage storage) {
          made.try_emplace(storage, Places{ForwardPlace(item.start)});
        });
      }
      if (part != StepPart::kBefore && part != StepPart::kAfter) continue;
      const std::vector<PlaceShare> shares = SharesOfUpdate(item, made);
      if (shares.empty()) continue;
      Places places;
      for (const PlaceShare& share : shares) places.insert(share.place);
      ForEachMade(trace_, item.node, [&](Storage storage) { made[storage] = places; });
      shares_of_[item.node] = shares;
      if (places.size() > 1) continue;
      ForEachUse(item.node, [&](const TensorUse& use) {
        if (!step_.IsMade(use.storage) && IsFloat(use) && !users_.contains(use.storage)) {
          owners_.try_emplace(use.storage, *places.begin());
        }
      });
    }
  }

  // Returns the places of an operator before or after the passes; none if unknown.
  std::vector<PlaceShare> SharesOfUpdate(const Item& item,
                                         const std::unordered_map<Storage, Places>& made) {
    if (HasTensorList(trace_, item.node)) return SharesOfList(item.node, made);
    Places places;
    Places others;  // results that several places have
    ForEachUse(item.node, [&](const TensorUse& use) {
      Places of = PlacesOf(use, made);
      (of.size() == 1 ? places : others).merge(of);
    });
    if (places.empty()) places = std::move(others);
    if (const auto layer = split_.stack.LayerAt(item.lane, item.start)) {
      places = {PlaceOfLayer(*layer)};
    }
    std::vector<PlaceShare> shares;
    for (const uint32_t place : places) shares.push_back({.place = place, .share = 1});
    return shares;
  }

  // Divides an operator on lists by the bytes of the places. Tensors at the same position of an
  // operator's lists belong together, such as a parameter and its gradient; so do those in lists of
  // the same length, such as all lists of an optimizer.
  std::vector<PlaceShare> SharesOfList(NodeId node,
                                       const std::unordered_map<Storage, Places>& made) {
    const std::vector<std::vector<TensorId>> lists = ListsOf(trace_, node);
    for (const std::vector<TensorId>& list : lists) {
      for (size_t i = 0; i < list.size(); ++i) {
        const Places places = PlacesOf(trace_.tensor(list[i]), made);
        if (places.size() == 1) in_lists_[list.size()].try_emplace(i, *places.begin());
      }
    }
    std::map<uint32_t, double> bytes;
    double all = 0;
    for (const std::vector<TensorId>& list : lists) {
      const std::map<size_t, uint32_t>& known = in_lists_[list.size()];
      for (size_t i = 0; i < list.size(); ++i) {
        const auto found = known.find(i);
        const TensorUse& use = trace_.tensor(list[i]);
        if (found == known.end() || use.numel < 0) continue;
        const auto size = static_cast<double>(use.numel) *
                          static_cast<double>(std::max<int64_t>(use.element_bytes, 1));
        bytes[found->second] += size;
        all += size;
      }
    }
    std::vector<PlaceShare> shares;
    for (const auto& [place, size] : bytes) {
      if (all > 0 && size > 0) shares.push_back({.place = place, .share = size / all});
    }
    return shares;
  }

  // ---- nodes

  uint32_t WorkOf(std::vector<PlaceShare> shares) {
    split_.shares.push_back(std::move(shares));
    return static_cast<uint32_t>(split_.shares.size() - 1);
  }

  void AssignNodes() {
    std::vector<uint32_t> by_place;
    for (uint32_t place = 0; place < place_count(); ++place)
      by_place.push_back(WorkOf({{place, 1}}));
    const uint32_t by_bytes = WorkOf(SharesByGradients());
    std::unordered_map<NodeId, uint32_t> works;  // of items
    for (const auto& item : items_) {
      const StepPart part = PartAt(item.start);
      if (part == StepPart::kForward || part == StepPart::kBackward) {
        const Places& places = places_of_[item.node];
        if (places.size() > 1) split_.copied += CountStages(places) - 1;
        std::vector<PlaceShare> shares;
        for (const uint32_t place : places) shares.push_back({.place = place, .share = 1});
        works[item.node] = places.size() == 1 ? by_place[*places.begin()] : WorkOf(shares);
      } else if (const auto known = shares_of_.find(item.node); known != shares_of_.end()) {
        const std::vector<PlaceShare>& shares = known->second;
        const bool is_one = shares.size() == 1;
        if (!is_one) ++(shares.front().share < 1 ? split_.divided : split_.repeated);
        works[item.node] = is_one ? by_place[shares.front().place] : WorkOf(shares);
      }
    }
    // Items of known places before and after the passes, by thread and time.
    std::map<std::pair<LaneId, StepPart>, std::vector<std::pair<Nanos, uint32_t>>> around;
    for (const Item& item : items_) {
      const auto known = works.find(item.node);
      if (known == works.end()) continue;
      around[{item.lane, PartAt(item.start)}].emplace_back(item.start, known->second);
    }
    std::vector<PlaceShare> everywhere;
    for (uint32_t place = 0; place < place_count(); ++place) everywhere.push_back({place, 1});
    const uint32_t by_all = WorkOf(std::move(everywhere));
    const std::vector<NodeId> launchers = FindLaunchers(trace_);
    split_.works.assign(trace_.node_count(), by_place[0]);
    split_.parts.assign(trace_.node_count(), StepPart::kForward);
    const auto work_of = [&](NodeId host) {
      for (NodeId above = host; above; above = trace_.parent(above)) {
        if (const auto known = works.find(above); known != works.end()) return known->second;
      }
      const Nanos start = trace_.start(host).value_or(Nanos{});
      const StepPart part = PartAt(start);
      if (part == StepPart::kForward) return by_place[ForwardPlace(start)];
      if (part == StepPart::kBackward) return by_place[BackwardPlace(start)];
      const auto found = around.find({trace_.lane_id(host), part});
      if (found == around.end()) return by_bytes;
      const auto next =
          std::ranges::lower_bound(found->second, start, {}, &std::pair<Nanos, uint32_t>::first);
      return next == found->second.end() ? found->second.back().second : next->second;
    };
    ForEachNode(trace_, [&](NodeId node) {
      const bool is_device = trace_.place(node) == Place::kDevice;
      const NodeId host = is_device ? launchers[node.index()] : node;
      if (!host || !trace_.start(host)) return;
      const bool is_around = IsAroundPasses(host);
      split_.works[node.index()] = is_around ? by_all : work_of(host);
      split_.parts[node.index()] = is_around ? StepPart::kBefore : PartAt(*trace_.start(host));
    });
  }

  // Returns the number of stages that run one of the places; 1 if none does.
  uint64_t CountStages(const Places& places) const {
    uint64_t count = 0;
    for (const Stage& stage : split_.stages) {
      count += std::ranges::any_of(stage.segments, [&](const std::vector<uint32_t>& segment) {
        return std::ranges::any_of(segment, [&](uint32_t one) { return places.contains(one); });
      });
    }
    return std::max<uint64_t>(count, 1);
  }

  // Returns whether all passes run in a node, such as the mark of the step, which each place has.
  bool IsAroundPasses(NodeId host) const {
    const auto time = TimeOf(trace_, host);
    if (!time || items_.empty()) return false;
    const Nanos end = split_.has_backward ? after_ : items_.back().start;
    return time->begin < items_.front().start && time->end >= end;
  }

  // Returns all places, by the bytes of their gradients.
  std::vector<PlaceShare> SharesByGradients() const {
    double all = 0;
    for (const double bytes : gradient_bytes_) all += bytes;
    std::vector<PlaceShare> shares;
    for (uint32_t place = 0; place < place_count(); ++place) {
      const double share = all > 0 ? gradient_bytes_[place] / all : 1;
      if (share > 0) shares.push_back({.place = place, .share = share});
    }
    return shares;
  }

  const Trace& trace_;
  const size_t wanted_stages_;
  const std::optional<size_t> wanted_layers_;
  const StepItems step_;
  UpdatedTensors updated_;
  StageSplit split_;
  std::vector<Item> items_;  // of all threads, by time
  std::vector<RecordedGradient> gradients_;
  Nanos backward_;              // begin of the backward pass
  Nanos after_;                 // its end
  Nanos first_layer_;           // its begin in the forward pass
  std::vector<size_t> firsts_;  // recorded layer with which each place but the first begins
  std::vector<Nanos> begins_;   // of places in the forward pass, without the first
  std::vector<Nanos> ends_;     // of places in the backward pass, without the first
  std::vector<Interval> releases_;
  std::unordered_map<Storage, Places> users_;     // of floating-point memory from before
  std::unordered_map<Storage, uint32_t> owners_;  // place of memory that only this one uses
  std::unordered_set<Storage> trained_;
  std::unordered_set<Storage> learned_;  // may have weights
  std::vector<Version> versions_;
  std::unordered_map<Storage, size_t> current_;             // version
  std::unordered_map<NodeId, std::vector<size_t>> inputs_;  // versions, by item
  std::unordered_map<NodeId, Places> places_of_;            // items of the passes
  std::unordered_map<Storage, Places> made_by_;             // memory made in the backward pass
  std::unordered_map<NodeId, std::vector<PlaceShare>> shares_of_;  // other items
  std::map<size_t, std::map<size_t, uint32_t>> in_lists_;  // place by length and position of a list
  std::vector<double> gradient_bytes_;                     // by place
};

}  // namespace

Result<StageSplit> SplitStages(const Trace& trace, size_t stages, std::optional<size_t> layers) {
  return StageSplitter(trace, stages, layers).Run();
}

}  // namespace etude
