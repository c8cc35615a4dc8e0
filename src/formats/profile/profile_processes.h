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

// Key of the extra of a trace that names the processes with events that no table knows: a JSON
// object of names and counts.
inline constexpr std::string_view kUnreadProcessesKey = "etude_unread_processes";

// Whether a process of that name runs on a device, as far as a name tells: "/device:TPU:0", "NPU
// 3".
bool SpeaksOfDevice(std::string_view process);

// Whether arrows of this category lead from a host's thread to work of a device that it asked for,
// in profiles that have no correlations.
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

// Says what events without a category are, by the names of their processes and threads and by their
// arguments: those of torch_npu and MindSpore (Ascend), of XLA and of rocprof. Names may come after
// events. Not thread-safe.
class ProfileProcesses {
 public:
  explicit ProfileProcesses(TraceBuilder& builder) : builder_(builder) {}

  void NameProcess(StringId process, StringId name) { names_[process] = name; }
  void LabelProcess(StringId process, StringId label) { labels_[process] = label; }
  void NameThread(StringId process, StringId thread, StringId name) {
    threads_[{process, thread}] = name;
  }
  void Add(const UncategorisedEvent& event) { events_.push_back(event); }
  // Whether the process, by what is known of it so far, has but sums of what the others have.
  bool HasSums(StringId process) const;

  // Sets kinds, places, lanes and facts of communication of the events' nodes. Events that remain
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
  bool has_comm_kernels_ = false;    // the streams themselves show what communicates
};

}  // namespace etude
