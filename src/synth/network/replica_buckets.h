#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/units.h"
#include "src/synth/job/step_program.h"

namespace etude {

// How replicas share weights, their gradients and the optimizer's states.
struct ReplicaPlan {
  int64_t zero_stage = 0;  // shared: 1 the optimizer's states, 2 also gradients, 3 also weights
  // Gradients are reduced as soon as there are so many bytes of them.
  Bytes bucket{int64_t{25} << 20};
  std::optional<Bytes> first_bucket;  // so many the first time
  int64_t weight = 0;                 // bytes of an element
  int64_t gradient = 0;               // bytes of an element
};

// Ranks that have the same weights.
struct Replicas {
  size_t group = 0;
  int64_t ranks = 1;
  std::string_view of;  // begins the names of their reductions
  // Shared gradients are reduced at the end of the micro-batch, not of each unit.
  bool kept = false;
};

// What replicas communicate in a step: weights before they are used (ZeRO 3), gradients in buckets
// while backward goes on, each closed by the weight that fills it, and updated shares.
class ReplicaBuckets {
 public:
  using In = StepProgram::In;

  // Adds to `program`, which has to outlive it.
  ReplicaBuckets(StepProgram& program, ReplicaPlan plan, std::vector<Replicas> replicas);

  // Where replicas share the weights, the unit's are gathered while the one before computes.
  // `elements`: by replicas.
  void GatherWeights(const std::string& name, std::span<const int64_t> elements, In& in);
  // Those of the next unit, while the one that begins computes: backward, before its gradients are
  // reduced, which would hold them up.
  In GatherAhead(const std::string& name, std::span<const int64_t> elements);

  // What it has gathered, which is to be freed after use.
  Bytes Gathered(std::span<const int64_t> elements) const;

  // Whether gradients are reduced after this micro-batch, or kept for the next to add to.
  bool Reduces(bool last_micro_batch) const { return plan_.zero_stage >= 2 || last_micro_batch; }
  // Whether micro-batches add to the gradients of those before; reduced ones are gone.
  bool Keeps(size_t replicas) const {
    return plan_.zero_stage < 2 || replicas_[replicas].ranks == 1;
  }
  // Of which gradients come from here on.
  void BeginMicroBatch(bool last) { last_micro_batch_ = last; }
  void Add(size_t replicas, int64_t elements, const In& inputs);
  void EndUnit();
  void EndMicroBatch();

  // Reduces what is left; gives what the optimizer waits for.
  In EndBackward();
  // Parameters that the optimizer updates on a rank.
  int64_t updated() const { return updated_; }
  void GatherUpdated(size_t optimizer);

 private:
  // Gradients that are reduced together.
  struct Bucket {
    int64_t elements = 0;
    In inputs;
    bool was_full = false;
  };

  In Gather(const std::string& name, std::span<const int64_t> elements,
            std::optional<size_t> after);
  void Flush(size_t replicas);
  void FlushAll();

  StepProgram& program_;
  const ReplicaPlan plan_;
  const std::vector<Replicas> replicas_;
  std::vector<Bucket> buckets_;       // by replicas
  std::optional<size_t> unit_begin_;  // what came before the last unit
  In reduced_;
  int64_t updated_ = 0;
  std::vector<std::pair<size_t, int64_t>> shares_;  // replicas and elements on a rank, by bucket
  bool last_micro_batch_ = false;                   // of those whose gradients are in buckets
};

}  // namespace etude
