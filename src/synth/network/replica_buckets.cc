#include "src/synth/network/replica_buckets.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "src/base/ceil_div.h"

namespace etude {

ReplicaBuckets::ReplicaBuckets(StepProgram& program, ReplicaPlan plan,
                               std::vector<Replicas> replicas)
    : program_(program), plan_(plan), replicas_(std::move(replicas)), buckets_(replicas_.size()) {}

void ReplicaBuckets::GatherWeights(const std::string& name, std::span<const int64_t> elements,
                                   In& in) {
  const std::optional<size_t> after = std::exchange(unit_begin_, program_.last_compute());
  const In gathered = Gather(name, elements, after);
  in.insert(in.end(), gathered.begin(), gathered.end());
}

ReplicaBuckets::In ReplicaBuckets::GatherAhead(const std::string& name,
                                               std::span<const int64_t> elements) {
  unit_begin_ = program_.last_compute();
  return Gather(name, elements, unit_begin_);
}

ReplicaBuckets::In ReplicaBuckets::Gather(const std::string& name,
                                          std::span<const int64_t> elements,
                                          std::optional<size_t> after) {
  In gathered;
  for (size_t i = 0; i < replicas_.size(); ++i) {
    if (plan_.zero_stage < 3 || replicas_[i].ranks == 1 || elements[i] == 0) continue;
    gathered.push_back(
        program_.Collective(name, {}, CollectiveType::kAllGather, replicas_[i].group,
                            Bytes{CeilDiv(elements[i], replicas_[i].ranks) * plan_.weight}, after));
    program_.works()[gathered.back()].held = Bytes{elements[i] * plan_.weight};
  }
  return gathered;
}

Bytes ReplicaBuckets::Gathered(std::span<const int64_t> elements) const {
  Bytes sum;
  for (size_t i = 0; i < replicas_.size() && plan_.zero_stage == 3; ++i) {
    if (replicas_[i].ranks > 1) sum = sum + Bytes{elements[i] * plan_.weight};
  }
  return sum;
}

void ReplicaBuckets::Add(size_t replicas, int64_t elements, const In& inputs) {
  if (elements == 0) return;
  Bucket& bucket = buckets_[replicas];
  bucket.elements += elements;
  if (plan_.zero_stage >= 2 && replicas_[replicas].ranks > 1) {
    // Whole until they are reduced to the rank's share.
    Bytes& held = program_.works()[inputs.back()].held;
    held = held + Bytes{elements * plan_.gradient};
  }
  for (const size_t input : inputs) {
    if (std::ranges::find(bucket.inputs, input) == bucket.inputs.end()) {
      bucket.inputs.push_back(input);
    }
  }
  const Bytes limit = bucket.was_full ? plan_.bucket : plan_.first_bucket.value_or(plan_.bucket);
  if (bucket.elements * plan_.gradient < limit.count || plan_.zero_stage == 3) return;
  bucket.was_full = true;
  Flush(replicas);
}

void ReplicaBuckets::EndUnit() {
  for (size_t i = 0; i < buckets_.size() && plan_.zero_stage == 3; ++i) {
    if (!replicas_[i].kept) Flush(i);
  }
}

void ReplicaBuckets::EndMicroBatch() {
  if (plan_.zero_stage >= 2) FlushAll();
}

void ReplicaBuckets::FlushAll() {
  for (size_t i = 0; i < buckets_.size(); ++i) Flush(i);
}

void ReplicaBuckets::Flush(size_t replicas) {
  Bucket& bucket = buckets_[replicas];
  if (bucket.elements == 0) return;
  const Replicas& who = replicas_[replicas];
  const int64_t share = CeilDiv(bucket.elements, who.ranks);
  if (who.ranks == 1) {
    reduced_.insert(reduced_.end(), bucket.inputs.begin(), bucket.inputs.end());
  } else {
    const bool shares = plan_.zero_stage > 0;
    const CollectiveType type =
        shares ? CollectiveType::kReduceScatter : CollectiveType::kAllReduce;
    const int64_t elements = shares ? share * who.ranks : bucket.elements;
    reduced_.push_back(program_.Collective(fmt::format("{}gradients {}", who.of, Name(type)),
                                           bucket.inputs, type, who.group,
                                           Bytes{elements * plan_.gradient}));
    if (plan_.zero_stage >= 2) {
      program_.works().back().freed = Bytes{bucket.elements * plan_.gradient};
    }
  }
  if (plan_.zero_stage < 2 || last_micro_batch_) {
    updated_ += plan_.zero_stage > 0 ? share : bucket.elements;
    shares_.emplace_back(replicas, share);
  }
  bucket.elements = 0;
  bucket.inputs.clear();
}

ReplicaBuckets::In ReplicaBuckets::EndBackward() {
  FlushAll();
  std::ranges::sort(reduced_);
  reduced_.erase(std::ranges::unique(reduced_).begin(), reduced_.end());
  return std::move(reduced_);
}

void ReplicaBuckets::GatherUpdated(size_t optimizer) {
  if (plan_.zero_stage != 1 && plan_.zero_stage != 2) return;
  for (const auto& [replicas, share] : shares_) {
    const Replicas& who = replicas_[replicas];
    if (who.ranks == 1) continue;
    program_.Collective("weights all_gather", {optimizer}, CollectiveType::kAllGather, who.group,
                        Bytes{share * plan_.weight});
  }
}

}  // namespace etude
