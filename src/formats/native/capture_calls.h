#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
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

  // A c10d operator. A backend's thread that works for it later names a storage, not the operator.
  struct Issued {
    uint64_t node =
        0;  // numbers tell the order of entry over all threads; clocks of threads do not
    LaneId lane;
    StringId name;
    std::optional<CollectiveType> type;
    StringId group;
    std::optional<int64_t> group_size;
    std::vector<uint64_t> storages;
    std::vector<int64_t> sizes;  // elements of each argument with tensors
    bool copies = false;         // the backend's thread works on a copy
    bool has_label = false;
  };

  // Operators that a label may be of: indices of `issued_`, ascending.
  struct Waiting {
    std::vector<size_t> all;
    size_t next = 0;              // of `all`, the first that has not been looked at
    std::vector<size_t> entered;  // before the label that is looked at
  };

  // A label of a communication outside of any c10d operator.
  struct LooseLabel {
    NodeId node;
    NodeRow row;
    Moment begin;
    std::optional<Moment> end;
    LaneId asker;                // kNone: unknown
    bool has_callbacks = false;  // what ran inside is not Gloo's
  };

  void EndAt(OpenCall& call, const LateEnd& end);
  void AddNode(OpenCall& call, std::optional<Moment> end);
  void FreeCallbacks();
  void AddIssued(const OpenCall& call);
  void SettleLooseLabels();
  void FillWaiting();
  void Settle(LooseLabel& label, Issued* issued);
  Issued* FirstWithoutLabel(Waiting& waiting, const LooseLabel& label);
  Issued* FindByStorage(const LooseLabel& label);
  Issued* FindBySize(const LooseLabel& label);
  Issued* FindByThread(const LooseLabel& label);
  // All tensors in a list and the lists in it.
  std::vector<TensorUse> TensorsOf(std::span<const Value> values) const;
  int64_t SizeOf(std::span<const Value> values) const;

  TraceBuilder& builder_;
  EtCommReader comms_;
  std::unordered_map<uint64_t, OpenCall> detached_;  // by handle
  std::unordered_map<uint64_t, LateEnd> ends_;       // by handle
  std::vector<Issued> issued_;
  std::vector<uint64_t> labelled_;  // nodes with a label right below them
  std::vector<LooseLabel> loose_labels_;
  std::unordered_map<uint64_t, std::vector<NodeId>> inside_;  // by id of the label of Gloo's
  std::unordered_map<uint64_t, Waiting> by_storage_;          // of those that do not copy
  std::unordered_map<int64_t, Waiting> by_size_;              // of those that do
  std::map<CollectiveType, std::map<StringId, Waiting>> by_group_;
  // By node of a backend's thread: the groups that it works for, usually one.
  std::unordered_map<uint64_t, std::set<StringId>> groups_of_threads_;
  uint64_t count_ = 0;
};

}  // namespace etude
