#include "src/sim/collective/collective_phases.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "src/base/ceil_div.h"
#include "src/sim/collective/collective_algorithms.h"
#include "src/sim/collective/group_place.h"

namespace etude {
namespace {

Status CheckPhase(const CollectivePhase& phase, bool on_graph) {
  const bool any_count = on_graph && phase.type != CollectiveType::kAllToAll;
  if (!any_count && !Info(phase.choice.algorithm).Fits(phase.members.count)) {
    return BadInput(fmt::format("found {} ranks, expected a power of two for the algorithm {}",
                                phase.members.count, AlgorithmName(phase.choice)));
  }
  return {};
}

class AstraPhases final : public SimCollectiveModel {
 public:
  explicit AstraPhases(const SimInput& input) : input_(input), system_(input.system) {
    if (input.machine.graph == nullptr) return;
    for (const auto& [number, members] : input.workload.groups) {
      places_[&members] = PlaceOfGroup(input.travel, input.machine.dims.size(), members);
    }
  }

  std::string_view name() const override { return "astra-sim-2.0/phases"; }
  bool Has(CollectiveType type) const override {
    const auto found = system_.algorithms.find(type);
    return OwnAlgorithm(type) || (found != system_.algorithms.end() && !found->second.empty()) ||
           std::ranges::count(system_.rules, type, &AlgorithmRule::type) > 0;
  }

  Chunks ChunksOf(const CollectiveCall& call) const override {
    if (call.type == CollectiveType::kBarrier) return {.bytes = 0, .count = 1};
    int64_t size = call.bytes;
    const int64_t splits = system_.splits * TreesOf(call);
    int64_t chunk = splits > system_.splits ? CeilDiv(size, splits) : size / splits;
    // ASTRA-sim makes a part for each rank of the job, also in groups.
    const bool own = OwnAlgorithm(call.type).has_value() || input_.machine.graph != nullptr;
    const int64_t least = own ? call.members : input_.total;
    if (IsShared(call.type) && chunk < least) {
      chunk = least;
      size = splits * chunk;
    }
    if (chunk < 1) chunk = 1;  // ASTRA-sim does not terminate here
    return {.bytes = chunk, .count = std::max<int64_t>(1, CeilDiv(size, chunk))};
  }

  Status MakePhases(const CollectiveCall& given, int64_t bytes, QueueTurns& turns,
                    std::vector<CollectivePhase>& phases) const override {
    phases.clear();
    CollectiveCall call = given;
    AlgorithmChoices choices = ChoicesOf(call);
    std::vector<AlgorithmChoice> rings;
    if (choices != nullptr && !choices->empty() &&
        choices->front().algorithm == CollectiveAlgorithm::kSlicedAllReduce) {
      call.type = CollectiveType::kAllReduce;
      rings = *choices;
      for (AlgorithmChoice& choice : rings) choice.algorithm = CollectiveAlgorithm::kRing;
      choices = &rings;
    }
    const Grid* grid = GridOf(call, choices);
    const bool by_dim = call.group == nullptr || grid != nullptr;
    if (by_dim && OwnAlgorithm(call.type)) {
      MakeTrees(call, choices, grid, bytes, turns, phases);
    } else if (by_dim) {
      MakeByDim(call, choices, grid, bytes, turns, phases);
    } else if (call.members > 1) {
      ETUDE_RETURN_IF_ERROR(MakeOfGroup(call, choices, bytes, turns, phases));
    }
    for (const CollectivePhase& phase : phases) {
      ETUDE_RETURN_IF_ERROR(CheckPhase(phase, input_.machine.graph != nullptr));
    }
    return {};
  }

 private:
  AlgorithmChoices ChoicesOf(const CollectiveCall& call) const {
    const int64_t ranks =
        call.group == nullptr ? input_.machine.RanksAlong(call.dims) : call.members;
    return system_.FindAlgorithms(call.type, ranks, call.bytes);
  }
  // Returns the number of trees of a collective, each of which has a part of the bytes. ASTRA-sim's
  // chunks alternate between them instead.
  int64_t TreesOf(const CollectiveCall& call) const {
    if (input_.machine.graph == nullptr) return 1;
    const AlgorithmChoices choices = ChoicesOf(call);
    const auto alternates = [](const AlgorithmChoice& choice) {
      return Info(choice.algorithm).alternates;
    };
    return choices != nullptr && std::ranges::any_of(*choices, alternates) ? 2 : 1;
  }
  // Returns whether a chunk is divided among the ranks.
  static bool IsShared(CollectiveType type) {
    return type == CollectiveType::kAllReduce || type == CollectiveType::kAllToAll ||
           type == CollectiveType::kReduceScatter || type == CollectiveType::kScatter;
  }
  bool IsAware(CollectiveType type) const {
    return type == CollectiveType::kAllReduce && system_.bandwidth_aware;
  }

  void Enqueue(CollectivePhase& phase, bool aware, QueueTurns& turns) const {
    const auto queues = static_cast<SimIndex>(system_.queues);
    // Takes turns around `count` queues, starting at `begin`.
    const auto take = [&](std::vector<SimIndex>& turn, SimIndex begin, SimIndex count) {
      SimIndex& next = turn[phase.dim];
      const SimIndex queue = begin + next;
      next = (next + 1) % count;
      phase.queue = static_cast<SimIndex>(phase.dim) * queues + queue;
      return queue;
    };
    if (!aware) {
      phase.backward = take(turns.any, 0, queues) >= queues / 2 && queues > 1;
    } else if (phase.type != CollectiveType::kAllGather) {
      take(turns.up, 0, std::max<SimIndex>(1, queues / 2));
    } else {
      const SimIndex begin = queues > 1 ? queues / 2 : 0;
      take(turns.down, begin, queues - begin);
      phase.backward = true;
    }
  }

  // Trees alternate in the order in which chunks are made, which is the same on all ranks.
  static bool TakeTree(CollectiveType type, const CollectivePhase& phase, QueueTurns& turns) {
    if (!Info(phase.choice.algorithm).alternates) return false;
    bool& next = turns.second_tree[{type, phase.dim}];
    const bool second = next;
    next = !next;
    return second;
  }

  using Grid = std::vector<std::vector<int64_t>>;

  // Returns the coordinates by dimension of a group whose collectives use the dimensions; else
  // null.
  const Grid* GridOf(const CollectiveCall& call, AlgorithmChoices choices) const {
    if (call.group == nullptr || !GroupsUseDims(input_.machine, choices, call.type)) return nullptr;
    const auto found = places_.find(call.group);
    return found == places_.end() || found->second.grid.empty() ? nullptr : &found->second.grid;
  }
  // Returns the dimensions with several members, of those that a collective of all ranks uses.
  std::vector<size_t> DimsOf(const CollectiveCall& call, const Grid* grid) const {
    std::vector<size_t> dims;
    for (size_t i = 0; i < input_.machine.dims.size(); ++i) {
      const bool is_used = grid != nullptr
                               ? (*grid)[i].size() > 1
                               : input_.machine.dims[i].npus > 1 && ((call.dims >> i) & 1) != 0;
      if (is_used) dims.push_back(i);
    }
    return dims;
  }
  // Returns the members that differ from a rank in this dimension only, with its own index.
  PhaseMembers LineOf(int64_t rank, size_t dim, const Grid* grid) const {
    const int64_t me = input_.travel.Coordinate(rank, dim);
    const int64_t stride = input_.travel.Stride(dim);
    PhaseMembers line{.base = rank - me * stride, .stride = stride, .me = me};
    line.count = input_.machine.dims[dim].npus;
    if (grid == nullptr) return line;
    const std::vector<int64_t>& coordinates = (*grid)[dim];
    line.coordinates = &coordinates;
    line.count = static_cast<int64_t>(coordinates.size());
    line.me = std::ranges::find(coordinates, me) - coordinates.begin();
    return line;
  }

  void MakeByDim(const CollectiveCall& call, AlgorithmChoices choices, const Grid* grid,
                 int64_t bytes, QueueTurns& turns, std::vector<CollectivePhase>& phases) const {
    const CollectiveType type = call.type;
    std::vector<size_t> dims = DimsOf(call, grid);
    const size_t listed = choices == nullptr ? 0 : choices->size();
    // On ASTRA-sim's networks, a single ring also requires one of the first dimensions.
    const bool all_dims = input_.machine.graph != nullptr && IsWhole(choices);
    std::erase_if(dims, [&](size_t dim) { return !all_dims && dim >= listed; });
    if (dims.empty()) return;
    // A tree would do the same in each part.
    const bool is_split = input_.machine.graph == nullptr ||
                          std::ranges::none_of(*choices, [](const AlgorithmChoice& choice) {
                            return Info(choice.algorithm).alternates;
                          });
    const bool aware = IsAware(type) && is_split;
    if (const AlgorithmChoice choice = ChoiceOf(choices, type, 0); choice.whole) {
      CollectivePhase phase{.type = type, .choice = choice, .bytes = bytes};
      phase.members = {.count = input_.total, .me = call.rank};
      Enqueue(phase, aware, turns);
      phase.mirrored = TakeTree(type, phase, turns);
      phases.push_back(phase);
      return;
    }
    const auto add = [&](CollectiveType part, size_t dim) {
      CollectivePhase phase{
          .type = part, .choice = ChoiceOf(choices, type, dim), .dim = dim, .bytes = bytes};
      phase.members = LineOf(call.rank, dim, grid);
      Enqueue(phase, aware, turns);
      phase.mirrored = grid == nullptr ? TakeTree(type, phase, turns) : call.stream % 2 == 1;
      // A tree does the same as in an all-reduce.
      if (!Info(phase.choice.algorithm).alternates) {
        bytes = DataAfter(part, bytes, phase.members.count);
      }
      phases.push_back(phase);
    };
    if (aware) {
      for (size_t i = 0; i + 1 < dims.size(); ++i) add(CollectiveType::kReduceScatter, dims[i]);
      add(CollectiveType::kAllReduce, dims.back());
      for (size_t i = dims.size() - 1; i-- > 0;) add(CollectiveType::kAllGather, dims[i]);
      return;
    }
    if (type == CollectiveType::kAllGather) std::ranges::reverse(dims);
    for (const size_t dim : dims) add(type, dim);
  }

  // From the root along the highest dimension first, or to the root along the lowest first. In each
  // dimension the ranks that have data, or still need them, take part.
  void MakeTrees(const CollectiveCall& call, AlgorithmChoices choices, const Grid* grid,
                 int64_t bytes, QueueTurns& turns, std::vector<CollectivePhase>& phases) const {
    if (const AlgorithmChoice choice = ChoiceOf(choices, call.type, 0); choice.whole) {
      CollectivePhase phase{.type = call.type,
                            .choice = choice,
                            .bytes = bytes,
                            .members = {.count = input_.total, .me = call.rank},
                            .root = call.root};
      Enqueue(phase, /*aware=*/false, turns);
      phases.push_back(phase);
      return;
    }
    const Travel& travel = input_.travel;
    const int64_t root =
        grid == nullptr ? call.root : (*call.group)[static_cast<size_t>(call.root)];
    const bool down = IsFromRoot(call.type);
    const auto is_at_root = [&](size_t dim) {
      return travel.Coordinate(call.rank, dim) == travel.Coordinate(root, dim);
    };
    const std::vector<size_t> dims = DimsOf(call, grid);
    for (size_t i = 0; i < dims.size(); ++i) {
      const size_t dim = down ? dims[dims.size() - 1 - i] : dims[i];
      CollectivePhase phase{.type = call.type,
                            .choice = ChoiceOf(choices, call.type, dim),
                            .dim = dim,
                            .bytes = bytes,
                            .members = LineOf(call.rank, dim, grid),
                            .root = LineOf(root, dim, grid).me};
      bytes = DataAfter(call.type, bytes, phase.members.count);
      // The lower dimensions are already done, or still to come.
      const bool takes_part =
          call.type == CollectiveType::kBarrier ||
          std::ranges::all_of(dims, [&](size_t one) { return one >= dim || is_at_root(one); });
      if (!takes_part) continue;
      Enqueue(phase, /*aware=*/false, turns);
      phases.push_back(phase);
    }
  }

  Status MakeOfGroup(const CollectiveCall& call, AlgorithmChoices choices, int64_t bytes,
                     QueueTurns& turns, std::vector<CollectivePhase>& phases) const {
    CollectivePhase phase{.type = call.type, .dim = 0, .in_group = true, .bytes = bytes};
    phase.root = call.root;
    const auto place = places_.find(call.group);
    ETUDE_ASSIGN_OR_RETURN(phase.choice,
                           GroupChoice(input_.machine, choices, call.type,
                                       place == places_.end() ? std::nullopt : place->second.line));
    phase.members = {.listed = call.group, .count = call.members, .me = call.me};
    Enqueue(phase, IsAware(call.type), turns);
    phase.mirrored = call.stream % 2 == 1;
    phases.push_back(phase);
    return {};
  }

  const SimInput& input_;
  const SystemModel& system_;
  std::unordered_map<const std::vector<int64_t>*, GroupPlace> places_;  // of groups, on a graph
};

}  // namespace

int64_t DataAfter(CollectiveType type, int64_t bytes, int64_t members) {
  if (type == CollectiveType::kAllGather || type == CollectiveType::kGather) {
    return bytes * members;
  }
  if (type == CollectiveType::kReduceScatter || type == CollectiveType::kScatter) {
    return bytes / members;
  }
  return bytes;
}

std::unique_ptr<SimCollectiveModel> MakeSimCollectiveModel(const SimInput& input) {
  return std::make_unique<AstraPhases>(input);
}

}  // namespace etude
