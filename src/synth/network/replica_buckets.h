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

// Sharing of weights, gradients and optimizer states among replicas.
struct ReplicaPlan {
  int64_t zero_stage = 0;  // shared: 1 optimizer states, 2 also gradients, 3 also weights
  // Size of gradients at which they are reduced.
  Bytes bucket{int64_t{25} << 20};
  std::optional<Bytes> first_bucket;  // size of the first bucket
  int64_t weight = 0;                 // bytes of an element
  int64_t gradient = 0;               // bytes of an element
};

// Ranks with the same weights.
struct Replicas {
  size_t group = 0;
  int64_t ranks = 1;
  std::string_view of;  // prefix of the names of their reductions
  // Shared gradients are reduced at the end of the micro-batch, not of each unit.
  bool kept = false;
};

// Communication of replicas in a step: weights before use (ZeRO 3), gradients in buckets during
// backward, each closed by the weight that fills it, and updated shares.
class ReplicaBuckets {
 public:
  using In = StepProgram::In;

  // Adds to `program`, which must outlive it.
  ReplicaBuckets(StepProgram& program, ReplicaPlan plan, std::vector<Replicas> replicas);

  // If replicas share the weights, gathers those of the unit while the previous one computes.
  // `elements`: by replicas.
  void GatherWeights(const std::string& name, std::span<const int64_t> elements, In& in);
  // Gathers the next unit's weights while the beginning one computes: in backward, before the
  // reduction of its gradients, which would delay them.
  In GatherAhead(const std::string& name, std::span<const int64_t> elements);

  // Returns the bytes of gathered weights, to be freed after use.
  Bytes Gathered(std::span<const int64_t> elements) const;

  // Returns true if gradients are reduced after this micro-batch, false if they are kept for
  // accumulation.
  bool Reduces(bool last_micro_batch) const { return plan_.zero_stage >= 2 || last_micro_batch; }
  // Returns true if micro-batches add to the gradients of earlier ones; reduced gradients are gone.
  bool Keeps(size_t replicas) const {
    return plan_.zero_stage < 2 || replicas_[replicas].ranks == 1;
  }
  // Sets the micro-batch of the gradients added from here on.
  void BeginMicroBatch(bool last) { last_micro_batch_ = last; }
  void Add(size_t replicas, int64_t elements, const In& inputs);
  void EndUnit();
  void EndMicroBatch();

  // Reduces the remaining gradients; returns the optimizer's dependencies.
  In EndBackward();
  // Returns the number of parameters that the optimizer updates on a rank.
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
  std::optional<size_t> unit_begin_;  // work before the last unit
  In reduced_;
  int64_t updated_ = 0;
  std::vector<std::pair<size_t, int64_t>> shares_;  // replicas and elements on a rank, by bucket
  bool last_micro_batch_ = false;                   // of the gradients in buckets
};

}  // namespace etude
