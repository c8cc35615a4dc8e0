#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "src/trace/trace_builder.h"

namespace etude {

// Key of the trace's extra with the processes whose events are in no table: a JSON object of names
// and counts.
inline constexpr std::string_view kUnreadProcessesKey = "etude_unread_processes";

// Returns whether the name suggests that the process runs on a device: "/device:TPU:0", "NPU 3".
bool SpeaksOfDevice(std::string_view process);

// Returns whether arrows of this category lead from a host thread to device work that it requested,
// in profiles without correlations.
bool IsLaunchArrow(std::string_view category);

// An event without a category.
struct UncategorisedEvent {
  NodeId node;
  StringId process;               // its pid
  StringId thread;                // its tid
  std::optional<int32_t> device;  // by its arguments, as is the rest
  std::optional<int32_t> stream;
  StringId task_type;                  // of Ascend's devices; kNone: none
  std::optional<int64_t> correlation;  // of XLA's events
};

// Determines the meaning of events without a category, from the names of their processes and
// threads and from their arguments. Supports torch_npu and MindSpore (Ascend), XLA and rocprof.
// Names may come after events. Not thread-safe.
class ProfileProcesses {
 public:
  explicit ProfileProcesses(TraceBuilder& builder) : builder_(builder) {}

  void NameProcess(StringId process, StringId name) { names_[process] = name; }
  void LabelProcess(StringId process, StringId label) { labels_[process] = label; }
  void NameThread(StringId process, StringId thread, StringId name) {
    threads_[{process, thread}] = name;
  }
  void Add(const UncategorisedEvent& event) { events_.push_back(event); }
  // Returns whether the process, as far as known, contains only sums over other processes.
  bool HasSums(StringId process) const;

  // Sets kinds, places, lanes and communication facts of the events' nodes. Events that remain
  // unknown are counted by process in an extra of the trace.
  void Settle();
  const std::vector<UncategorisedEvent>& events() const { return events_; }

 private:
  enum class Role : uint8_t;
  struct Process;
  struct Settled {
    NodeKind kind = NodeKind::kUnknown;
    Place place = Place::kUnknown;
  };

  static const Process* FindProcess(std::string_view name);
  std::string_view TextIn(const std::map<StringId, StringId>& texts, StringId process) const;
  std::string_view ThreadName(const UncategorisedEvent& event) const;
  bool IsOfXla(const UncategorisedEvent& event) const;
  bool HasStreams(StringId process) const { return with_streams_.contains(process); }

  Settled Find(const UncategorisedEvent& event) const;
  Settled OfTask(const UncategorisedEvent& event) const;
  Settled OfXlaDevice(const UncategorisedEvent& event) const;
  Settled OfCommunication(const UncategorisedEvent& event) const;
  Settled OfXlaHost(const UncategorisedEvent& event) const;
  Lane StreamOf(const UncategorisedEvent& event) const;
  void SettleComm(NodeId node);
  void NestXlaOps();
  void KeepUnread(const std::map<std::string_view, uint64_t>& unread);

  TraceBuilder& builder_;
  std::map<StringId, StringId> names_;
  std::map<StringId, StringId> labels_;
  std::map<std::pair<StringId, StringId>, StringId> threads_;
  std::vector<UncategorisedEvent> events_;
  std::set<StringId> with_streams_;  // processes of XLA whose threads are streams
  bool has_comm_kernels_ = false;    // whether the streams themselves contain communication kernels
};

}  // namespace etude
