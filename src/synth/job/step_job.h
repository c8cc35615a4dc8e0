#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/result.h"
#include "src/base/units.h"
#include "src/synth/network/product_shape.h"
#include "src/trace/job/job.h"
#include "src/trace/job/mesh.h"
#include "src/trace/job/rank_set.h"
#include "src/trace/program_parts.h"
#include "src/trace/trace.h"
#include "src/trace/words/enums.h"

namespace etude {

// Work of a rank in a step of a generated job.
struct StepWork {
  std::string name;
  std::vector<size_t> data;     // earlier work whose results it needs
  std::vector<size_t> control;  // earlier work that precedes it without data
  std::optional<ProgramPart> part;

  int64_t flops = 0;
  int64_t matrix_flops = 0;       // the part in matrix products
  DType type = DType::kUnknown;   // of matrix products
  ProductShape product;           // set if it consists of matrix products of one shape
  Bytes memory;                   // read and written
  std::optional<Nanos> duration;  // of a computation
  Bytes held;                     // allocated at its begin
  Bytes freed;                    // released at its end

  CollectiveType collective = CollectiveType::kUnknown;  // kUnknown: none
  size_t group = 0;                                      // StepGroup of a collective
  // Distance along `axis` to the partner of a message, wrapping around; 0: none.
  int64_t partner = 0;
  std::optional<size_t> axis;  // of the mesh; nullopt: the last one
  bool sends = false;
  int64_t tag = 0;  // the same on both sides, and unique between two ranks
  Bytes bytes;      // each rank's input, or the message's size

  bool communicates() const { return collective != CollectiveType::kUnknown || partner != 0; }
};

// Memory that a rank holds permanently.
struct StepStates {
  Bytes weights;
  Bytes gradients;
  Bytes optimizer;
  Bytes cache;  // of earlier tokens

  Bytes total() const { return weights + gradients + optimizer + cache; }
};

// Ranks that communicate: those that differ only along these axes of the mesh.
struct StepGroup {
  AxisSet axes = 0;
  bool first_and_last_only = false;  // along the mesh's last axis
};

// A step on a mesh of ranks. A place is a set of ranks with equal coordinates along some axes of
// the mesh; its ranks share one program. Const methods are thread-safe.
class StepJob {
 public:
  // `programs`: by place, the first of `place_axes` fastest, each in an order without deadlock;
  // members of a group call its collectives in one order. Unused groups are removed. Without
  // `place_axes`, places are along the mesh's last axis.
  StepJob(Mesh mesh, std::vector<StepGroup> groups, std::vector<std::vector<StepWork>> programs,
          AxisSet place_axes = 0);

  int64_t ranks() const { return mesh_.size(); }
  int64_t places() const { return places_.size(); }
  const Mesh& mesh() const { return mesh_; }
  const std::vector<StepWork>& program(int64_t place) const {
    return programs_[static_cast<size_t>(place)];
  }
  // Sets the duration of a computation without one.
  void SetDuration(int64_t place, size_t work, Nanos duration) {
    programs_[static_cast<size_t>(place)][work].duration = duration;
  }
  // Returns the place of the partner of a message.
  int64_t PartnerPlace(int64_t place, const StepWork& work) const;
  // Sets the permanently held memory, by place.
  void SetStates(std::vector<StepStates> states) { states_ = std::move(states); }
  const std::vector<StepStates>& states() const { return states_; }
  // Returns the memory in use during each work of a program, if they run one after the other.
  std::vector<Bytes> MemoryOf(int64_t place) const;
  // Adds the memory in use to each node of the traces: kMemoryInUse.
  void TellMemory() { tells_memory_ = true; }
  // Returns the members of all used groups by number; process groups have these numbers as names.
  std::map<int64_t, std::vector<int64_t>> Groups() const;
  // Returns the Chakra trace of a rank. Operations and bytes of computations are 'num_ops' and
  // 'tensor_size'.
  Result<Trace> TraceOf(int64_t rank) const;
  // Returns the job of all ranks, with a class for each program. TraceOfRank gives the same traces.
  Result<Job> AsJob() const;

 private:
  size_t last_axis() const { return mesh_.axes().size() - 1; }
  size_t AxisOf(const StepWork& work) const { return work.axis.value_or(last_axis()); }
  int64_t PlaceOf(int64_t rank) const;
  int64_t PartnerRank(int64_t rank, const StepWork& work) const;
  // Returns the places whose programs take part in a group's collectives, including `place`.
  std::vector<int64_t> Meeting(const StepGroup& group, int64_t place) const;
  RankSet RanksAt(int64_t place) const;
  bool IsUsed(size_t group) const { return first_numbers_[group] != 0; }
  int64_t GroupNumber(size_t group, int64_t rank) const {
    return first_numbers_[group] + mesh_.GroupOf(rank, groups_[group].axes);
  }
  std::vector<int64_t> Members(size_t group, int64_t number) const;

  // By axis and distance.
  using Routes = std::map<std::pair<size_t, int64_t>, size_t>;

  // Builds a program as a trace; `fill` adds the remaining facts of its communications.
  template <typename Fill>
  Result<Trace> Build(int64_t place, std::optional<int64_t> rank, Fill fill) const;
  GroupKind KindOf(size_t group) const;
  Result<RankClass> ClassOf(int64_t place, const std::vector<size_t>& kinds) const;
  std::vector<CommEvent> Events(const std::vector<size_t>& kinds, const Routes& routes) const;

  Mesh mesh_;
  std::vector<StepGroup> groups_;
  std::vector<std::vector<StepWork>> programs_;  // by place
  std::vector<int64_t> first_numbers_;           // by group; 0: unused
  Mesh places_;
  std::vector<size_t> place_axes_;  // axes of the mesh, by axis of `places_`
  std::vector<StepStates> states_;  // by place; empty: unknown
  bool tells_memory_ = false;
};

}  // namespace etude
