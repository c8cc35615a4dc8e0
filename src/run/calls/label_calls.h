#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/trace/trace.h"
#include "src/trace/words/enums.h"

namespace etude {

// Elements and element type of all tensors among the arguments of a call.
struct TensorSum {
  std::optional<int64_t> elements;
  DType dtype = DType::kUnknown;

  friend bool operator==(const TensorSum&, const TensorSum&) = default;
};

// A call of a c10d operator. Ids are in the order in which calls and labels began, over all
// threads.
struct IssuedCall {
  uint64_t id = 0;
  NodeId node;
  NodeKind kind = NodeKind::kCollective;           // or kSend, kRecv
  CollectiveType type = CollectiveType::kUnknown;  // kUnknown for kSend and kRecv
  StringId group;                                  // kNone: unknown
  std::optional<int64_t> group_size;
  std::vector<uint64_t> storages;  // of the arguments, without 0
  std::vector<int64_t> sizes;      // elements of each argument that has any
  bool works_on_copy = false;      // the backend does not use the arguments' own storages
  std::optional<int64_t> rank;     // in the group: the peer, or the root
  std::optional<int64_t> tag;
  TensorSum in;
  TensorSum out;
};

// A label under which a backend recorded a communication, on a thread of its own or below the call.
struct BackendLabel {
  uint64_t id = 0;
  NodeId node;
  NodeKind kind = NodeKind::kCollective;
  Comm comm;
  std::optional<uint64_t> parent;   // the call around it, or the node of the backend's thread
  std::vector<uint64_t> stated;     // what it depends on; calls among it are its call
  std::vector<uint64_t> storages;   // of its arguments, without 0
  std::optional<int64_t> elements;  // of its arguments; nullopt: it has no tensors
};

struct CallsOfLabels {
  std::vector<std::optional<size_t>> calls;  // by label: its call; nullopt: unknown
  std::vector<bool> has_label;  // by call; true also where it is not known which of some it has
};

// Finds for each label the call that asked for it. A call has at most one label. Evidence, the
// surest first, each for all labels that are left:
// 1. stated: a call that the label depends on; labels that depend on anything take no other
// evidence
// 2. memory: the last call before the label that has a storage of the label and no label yet
// 3. above: the call around the label, unless it has a label, another type, or other memory
// 4. size: the first call without a label that works on a copy with as many elements
// 5. thread: for labels without tensors the first call without a label, of the label's type and of
//    the group that the label's thread works for, if one group remains
// 6. order: the first call without a label, of a group that the label's thread may work for, if all
//    calls that may be meant have one group and equal arguments
// `calls` are sorted by id, each id once; `labels` are sorted by id. O(n log n).
CallsOfLabels FindCallsOfLabels(std::span<const IssuedCall> calls,
                                std::span<const BackendLabel> labels);

}  // namespace etude
