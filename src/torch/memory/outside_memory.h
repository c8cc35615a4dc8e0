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

// Returns the element type of a use; nullopt: unknown, or not a type of PyTorch.
std::optional<c10::ScalarType> ScalarTypeOf(const Trace& trace, const TensorUse& use);

// Makes a tensor of the recorded form on `storage`, without running an operator. kBadInput if the
// storage is too small, or the form is not strided.
Result<at::Tensor> MakeView(const Trace& trace, const TensorUse& use, const c10::Storage& storage);

// Copies as many bytes as both storages have, without an operator if both are on the CPU. Throws
// the errors of a device's copy.
void CopyBytes(const c10::Storage& from, const c10::Storage& to);

// Returns the element kind that a fill uses for this type.
FilledElement FilledElementOf(c10::ScalarType type);

// A copy of bytes outside of the heap, so that the heap resembles the recorded program's.
class OffHeapBytes {
 public:
  OffHeapBytes() = default;
  // Copies the bytes; empty if memory is exhausted.
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

// Memory that a step expects to exist: parameters, states, inputs. Allocated once and filled with
// values that suit the operators reading it. Training steps change some of it. Each step starts
// with the state that the first one found, because random values could drift to denormal numbers,
// which are slow, or to infinities. Not thread-safe.
class OutsideMemory {
 public:
  OutsideMemory(const Trace& trace, const DeviceMap& devices, uint64_t seed)
      : trace_(trace), devices_(devices), seed_(seed) {}

  // Sets the host memory to pin, if the device supports it. Applies to later allocations.
  void Pin(std::unordered_set<StorageVersion> pinned) { pinned_ = std::move(pinned); }
  // Allocates what `wanted` of `plan` needs, if missing, and stores the tensors in their slots. A
  // storage that grew between plans is allocated again.
  Status Provide(const ReplayPlan& plan, const OutsideStorage& wanted,
                 std::span<const FillRule> rules, std::vector<at::Tensor>& slots);
  // NoteContent records checksums of all memory; Changed, called a step later, returns the changed
  // versions.
  Status NoteContent();
  Result<std::vector<StorageVersion>> Changed() const;
  // Declares the memory that each step changes. Restore resets it to its current, or future
  // initial, values.
  Status KeepOriginals(std::span<const StorageVersion> changed);
  // Restores the originals. Copies stay on the device if it has room.
  Status Restore();
  // Moves the copies to host memory, to free device memory.
  Status BringOriginalsHere();
  bool keeps_on_device() const;
  // Resets memory to its initial values by filling it again, without a copy.
  Status Refill(std::span<const StorageVersion> changed);

  // Returns whether a step changes it.
  bool is_restored(StorageVersion version) const { return restored_.contains(version); }
  int64_t bytes() const { return bytes_; }
  // Returns the size of Restore's copies in host memory.
  int64_t copied_bytes() const;
  // Return the number of float tensors in which a sample contains non-finite or denormal numbers.
  int CountNonFinite() const;
  int CountDenormal() const;

 private:
  struct Block {
    c10::Storage storage;
    at::Tensor form;  // first form that reads it; undefined until it is filled
    FillRule rule;
    uint64_t seed = 0;
    int64_t bytes = 0;
    uint64_t checksum = 0;  // of its content at NoteContent
    // Initial content, in at most one of both; in neither if no step changes it.
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

// Makes zeros in place of a result that could not be computed, like the recorded tensor.
Result<at::Tensor> MakeStandIn(const Trace& trace, const TensorUse& use, const DeviceMap& devices);

}  // namespace etude
