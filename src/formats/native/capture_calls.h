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
  // The process group of the innermost c10d operator around it, or its own.
  StringId group;
  std::optional<int64_t> group_size;
  bool names_group = false;  // it is itself such an operator
  bool in_label = false;     // right inside of a label of Gloo's
};

// Makes nodes of the calls that a native capture tells of, wherever they end, with the
// communication that each is part of. Not thread-safe; the builder must outlive it.
class CaptureCalls {
 public:
  explicit CaptureCalls(TraceBuilder& builder) : builder_(builder), comms_(builder) {}

  // Nullopt: nobody knows when it ended.
  void End(OpenCall& call, ValueListId outputs, std::optional<Moment> end);
  // Calls that end on another thread than they began on, and such ends. Which of the two comes
  // first says nothing: each thread writes its blocks when they are full.
  void Detach(OpenCall call);
  void EndElsewhere(uint64_t handle, ValueListId outputs, int64_t time);
  // What was detached has no end if none has come by now.
  void EndDetached();
  // Settles which communications the labels of backends' threads belong to. Once, when all calls
  // have ended.
  void Finish();
  // After that: the labels of which it is known.
  std::vector<AskedLabel> AskedLabels() const;

  uint64_t count() const { return count_; }  // of calls that have become nodes

 private:
  // The end of a call on another thread than it began on.
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
