#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>
#include <c10/core/Storage.h>

#include "src/base/result.h"
#include "src/replay/device_map.h"
#include "src/replay/replay_plan.h"
#include "src/replay/values/fill_rule.h"
#include "src/trace/trace.h"

namespace etude {

// The element type of a use; nullopt: unknown, or not one of PyTorch's.
std::optional<c10::ScalarType> ScalarTypeOf(const Trace& trace, const TensorUse& use);

// A tensor of the recorded form on `storage`, made without running an operator. kBadInput if the
// storage is too small or the form is not one of a strided tensor.
Result<at::Tensor> MakeView(const Trace& trace, const TensorUse& use, const c10::Storage& storage);

// Copies as many bytes as both have, without running an operator where both are on the CPU. Throws
// what a device's copy throws.
void CopyBytes(const c10::Storage& from, const c10::Storage& to);

// What a fill takes elements of this type for.
FilledElement FilledElementOf(c10::ScalarType type);

// A copy of bytes that is kept away from the heap, which so looks like the recorded program's.
class OffHeapBytes {
 public:
  OffHeapBytes() = default;
  // Empty if there is no memory left.
  explicit OffHeapBytes(std::span<const uint8_t> bytes);
  OffHeapBytes(OffHeapBytes&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  OffHeapBytes& operator=(OffHeapBytes&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~OffHeapBytes();

  std::span<const uint8_t> bytes() const { return bytes_; }

 private:
  std::span<uint8_t> bytes_;
};

// The memory a step expects to find: parameters, states, inputs. Made once, filled with values that
// suit the operators which read it. The step changes some of it, as training does; so that a random
// start does not drift to where arithmetic is slow (denormal numbers) or stops to mean anything
// (infinities) over many steps, each step is given the state that the first one found.
// Not thread-safe.
class OutsideMemory {
 public:
  OutsideMemory(const Trace& trace, const DeviceMap& devices, uint64_t seed)
      : trace_(trace), devices_(devices), seed_(seed) {}

  // What of the host's memory is pinned, where the device has such memory, from the next on.
  void Pin(std::unordered_set<StorageVersion> pinned) { pinned_ = std::move(pinned); }
  // Makes what `wanted` of `plan` needs and is not there yet, and puts the tensors into their
  // slots. Storage that grew from one plan to the next is made anew.
  Status Provide(const ReplayPlan& plan, const OutsideStorage& wanted,
                 std::span<const FillRule> rules, std::vector<at::Tensor>& slots);
  // Notes what all memory holds; then, a step later, tells what that step has changed.
  Status NoteContent();
  Result<std::vector<StorageVersion>> Changed() const;
  // Says what each step changes: `Restore` gives it the values again that it has now, or that it
  // will be made with.
  Status KeepOriginals(std::span<const StorageVersion> changed);
  // Copies stay on the device where it has room.
  Status Restore();
  // Makes room on the device: its copies are kept in the host's memory from now on.
  Status BringOriginalsHere();
  bool keeps_on_device() const;
  // Gives memory the values again that it was made with, without a copy of them.
  Status Refill(std::span<const StorageVersion> changed);

  // Whether a step changes it.
  bool is_restored(StorageVersion version) const { return restored_.contains(version); }
  int64_t bytes() const { return bytes_; }
  // Of the copies in the host's memory that Restore needs.
  int64_t copied_bytes() const;
  // Tensors of floats of which a sample holds numbers that are not finite, or denormal.
  int CountNonFinite() const;
  int CountDenormal() const;

 private:
  struct Block {
    c10::Storage storage;
    at::Tensor form;  // the first that reads it; undefined until it is filled
    FillRule rule;
    uint64_t seed = 0;
    int64_t bytes = 0;
    uint64_t checksum = 0;  // of what it held when that was noted
    // What it was made with, in one of both; in none: no step changes it.
    OffHeapBytes original;
    at::Tensor on_device;
  };

  Status Fill(Block& block);
  Status KeepOriginal(Block& block);
  bool KeepOnDevice(Block& block);
  static Status Restore(Block& block);

  const Trace& trace_;
  const DeviceMap& devices_;
  uint64_t seed_;
  std::unordered_map<StorageVersion, Block> blocks_;
  std::unordered_set<StorageVersion> restored_;
  std::unordered_set<StorageVersion> pinned_;
  int64_t bytes_ = 0;
  bool may_keep_on_device_ = true;
};

// A tensor like the recorded one, for a result that could not be computed: zeros.
Result<at::Tensor> MakeStandIn(const Trace& trace, const TensorUse& use, const DeviceMap& devices);

}  // namespace etude
