#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/torch/group/rank_group.h"

namespace at {
class Tensor;
}

namespace etude::suite {

// The ranks that train one model, each on its share of every batch, with c10d between them. Not
// thread-safe; throws what c10d throws when a rank has gone.
class DataParallel {
 public:
  // Meets the others. The group outlives this.
  static Result<std::unique_ptr<DataParallel>> Connect(RankGroup& group);
  ~DataParallel();

  int64_t rank() const;
  int64_t size() const;

  // Makes each gradient the mean over ranks, weighted by `share`, the rank's part of the batch
  // (all shares together are 1). In buckets of 25 MB, as PyTorch's.
  void AverageGradients(const std::vector<at::Tensor>& parameters, double share);
  // Gives all ranks the first one's values.
  void Broadcast(const std::vector<at::Tensor>& tensors);
  // The first rank's number.
  double Agree(double value);
  // What each rank says, in their order. Once.
  Result<std::vector<std::string>> Gather(const std::string& own);

 private:
  struct Impl;
  explicit DataParallel(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace etude::suite
