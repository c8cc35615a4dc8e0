#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "src/formats/native/capture_clocks.h"
#include "src/formats/pytorch_et/et_comm.h"
#include "src/trace/trace_builder.h"

namespace etude {

// A call that has begun.
struct OpenCall {
  NodeRow row;
  uint64_t handle = 0;
  Moment begin;
  uint8_t modes = 0;
  uint8_t parent_modes = 0;
  // Process group of the innermost c10d operator around it, or its own.
  StringId group;
  std::optional<int64_t> group_size;
  bool names_group = false;  // it is itself such an operator
  bool in_label = false;     // directly inside a Gloo label
};

// Makes nodes of the calls in a native capture, on whichever thread they end, with the
// communication that each belongs to. Not thread-safe; the builder must outlive it.
class CaptureCalls {
 public:
  explicit CaptureCalls(TraceBuilder& builder) : builder_(builder), comms_(builder) {}

  // Ends a call. Nullopt: its end is unknown.
  void End(OpenCall& call, ValueListId outputs, std::optional<Moment> end);
  // Handle calls that end on another thread than they began on, and such ends. Either may come
  // first, because each thread writes its blocks when they are full.
  void Detach(OpenCall call);
  void EndElsewhere(uint64_t handle, ValueListId outputs, int64_t time);
  // Ends the remaining detached calls without an end time.
  void EndDetached();
  // Assigns the labels of backends' threads to communications. To be called once, after all calls
  // have ended.
  void Finish();
  // Returns the assigned labels; to be called after Finish.
  std::vector<AskedLabel> AskedLabels() const;

  uint64_t count() const { return count_; }  // number of calls that became nodes

 private:
  // End of a call on another thread than it began on.
  struct LateEnd {
    ValueListId outputs;
    int64_t time = 0;
  };

  // A label of a communication outside of any c10d operator.
  struct LooseLabel {
    NodeId node;
    NodeRow row;
    Moment begin;
    std::optional<Moment> end;
    const IssuedCall* call = nullptr;  // that asked for it; nullptr: unknown
  };

  void EndAt(OpenCall& call, const LateEnd& end);
  void AddNode(OpenCall& call, std::optional<Moment> end);
  void FreeCallbacks();
  bool HasCallbacks(const LooseLabel& label) const;

  TraceBuilder& builder_;
  EtCommReader comms_;
  std::unordered_map<uint64_t, OpenCall> detached_;  // by handle
  std::unordered_map<uint64_t, LateEnd> ends_;       // by handle
  std::vector<LooseLabel> loose_labels_;
  std::unordered_map<uint64_t, std::vector<NodeId>> inside_;  // by id of the label of Gloo's
  uint64_t count_ = 0;
};

}  // namespace etude
