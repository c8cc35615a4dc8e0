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

// Data-parallel training of one model by several ranks, each on its share of every batch, with
// c10d. Not thread-safe; throws c10d's exceptions when a rank has gone.
class DataParallel {
 public:
  // Connects to the other ranks. The group must outlive the object.
  static Result<std::unique_ptr<DataParallel>> Connect(RankGroup& group);
  ~DataParallel();

  int64_t rank() const;
  int64_t size() const;

  // Averages each gradient over ranks, weighted by `share`, the rank's part of the batch (shares
  // add up to 1). Uses buckets of 25 MB, like PyTorch.
  void AverageGradients(const std::vector<at::Tensor>& parameters, double share);
  // Copies the first rank's values to all ranks.
  void Broadcast(const std::vector<at::Tensor>& tensors);
  // Returns the first rank's value.
  double Agree(double value);
  // Returns the texts of all ranks, in order. Call once only.
  Result<std::vector<std::string>> Gather(const std::string& own);

 private:
  struct Impl;
  explicit DataParallel(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace etude::suite
