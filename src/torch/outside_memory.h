#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include "src/base/result.h"
#include "src/torch/device_map.h"
#include "src/torch/outside_values.h"
#include "src/torch/replay_plan.h"
#include "src/trace/trace.h"

namespace etude {

// A tensor of the recorded form on `storage`, made without running an operator. kBadInput if the
// storage is too small or the form is not one of a strided tensor.
Result<at::Tensor> MakeView(const Trace& trace, const TensorUse& use, const c10::Storage& storage);

// The memory a step expects to find: parameters, states, inputs. Made once, filled with values that
// suit the operators which read it. The step changes some of it, as training does; so that a random
// start does not drift to where arithmetic is slow (denormal numbers) or stops to mean anything
// (infinities) over many steps, each step can be given the state that the first one found.
// Not thread-safe.
class OutsideMemory {
 public:
  OutsideMemory(const Trace& trace, const DeviceMap& devices, uint64_t seed)
      : trace_(trace), devices_(devices), seed_(seed) {}

  // Makes what `wanted` of `plan` needs and is not there yet, and puts the tensors into their
  // slots. Storage that grew from one plan to the next is made anew.
  Status Provide(const ReplayPlan& plan, const OutsideStorage& wanted,
                 std::span<const FillRule> rules, std::vector<at::Tensor>& slots);
  // Copies all memory; then, a step later, keeps the copies of what that step has changed; then
  // brings these back, as often as wanted.
  Status Save();
  Status KeepChanged();
  Status Restore();

  int64_t bytes() const { return bytes_; }
  // Tensors of floats of which a sample holds numbers that are not finite, or denormal.
  int CountNonFinite() const;
  int CountDenormal() const;

 private:
  struct Block {
    c10::Storage storage;
    std::vector<at::Tensor> tensors;  // of each type that reads it
    FillRule rule;
    uint64_t seed = 0;
    int64_t bytes = 0;
    at::Tensor saved;  // bytes of the storage as the first step found them; undefined: unchanged
  };

  Status Fill(Block& block);

  const Trace& trace_;
  const DeviceMap& devices_;
  uint64_t seed_;
  std::unordered_map<StorageVersion, Block> blocks_;
  int64_t bytes_ = 0;
};

// A tensor like the recorded one, for a result that could not be computed: zeros.
Result<at::Tensor> MakeStandIn(const Trace& trace, const TensorUse& use, const DeviceMap& devices);

}  // namespace etude
