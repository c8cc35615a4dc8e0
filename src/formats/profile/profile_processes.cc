#include "src/formats/profile/profile_processes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "src/base/text/ascii.h"
#include "src/formats/json/json_text.h"
#include "src/formats/profile/comm_kernels.h"
#include "src/formats/profile/time_nesting.h"

namespace etude {

enum class ProfileProcesses::Role : uint8_t {
  kLabels,         // of a program
  kOperators,      // of a framework
  kCalls,          // of a runtime
  kSums,           // sums over other processes
  kTasks,          // of a device
  kCopies,         // of a device
  kCommunication,  // collectives of devices, and their parts
  kXlaDevice,
  kXlaHost,
};

// A pattern for process names: "GPU*" matches GPU and a digit, "/host:*" any name with "/host:".
struct ProfileProcesses::Process {
  std::string_view name;
  Role role;
};

namespace {

std::optional<int32_t> NumberIn(std::string_view digits) {
  int32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc() && number >= 0 ? std::optional(number) : std::nullopt;
}

// Returns the last number in a name: 1 for "/device:GPU:1 (pid 7)" and for "GPU1".
std::optional<int32_t> DeviceNumber(std::string_view name) {
  name = name.substr(0, name.find(" ("));
  const size_t last = name.find_last_not_of("0123456789");
  return NumberIn(last == name.npos ? name : name.substr(last + 1));
}

// Kinds of the tasks of Ascend devices, by the prefix of their type. The first match counts.
struct TaskType {
  std::string_view beginning;
  NodeKind kind;
};
constexpr auto kTaskTypes = std::to_array<TaskType>({
    {"AI_CORE", NodeKind::kKernel},
    {"AI_VECTOR_CORE", NodeKind::kKernel},
    {"AI_CPU", NodeKind::kKernel},
    {"AIV_SQE", NodeKind::kKernel},
    {"KERNEL_", NodeKind::kKernel},
    {"MIX_", NodeKind::kKernel},
    {"FFTS_PLUS", NodeKind::kKernel},
    {"DSA_SQE", NodeKind::kKernel},
    {"DVPP", NodeKind::kKernel},
    {"HCCL_AI_CPU", NodeKind::kKernel},
    {"COMMUNICATION", NodeKind::kKernel},
    {"MEMCPY", NodeKind::kMemcpy},
    {"SDMA", NodeKind::kMemcpy},
    {"PCIE_DMA", NodeKind::kMemcpy},
    {"RDMA", NodeKind::kMemcpy},
    {"MEMSET", NodeKind::kMemset},
    {"EVENT_", NodeKind::kSync},
    {"NOTIFY_", NodeKind::kSync},
    {"CAPTURE_", NodeKind::kSync},
    {"WAIT", NodeKind::kSync},
    {"RECORD", NodeKind::kSync},
    {"PLACE_HOLDER", NodeKind::kSync},
    {"WRITE_VALUE", NodeKind::kSync},
    {"MEM_WAIT_VALUE", NodeKind::kSync},
    {"MEM_WRITE_VALUE", NodeKind::kSync},
    {"BARRIER", NodeKind::kSync},
    {"COND", NodeKind::kSync},
    {"CMO", NodeKind::kSync},
    {"PROFILING_", NodeKind::kSync},
    {"PROFILER_", NodeKind::kSync},
    {"MODEL_", NodeKind::kSync},
    {"STREAM_", NodeKind::kSync},
    {"TASK_", NodeKind::kSync},
    {"MAINTENANCE", NodeKind::kSync},
});

// XLA operations that communicate, by the prefix of their name.
struct XlaCollective {
  std::string_view beginning;
  CollectiveType type;
};
constexpr auto kXlaCollectives = std::to_array<XlaCollective>({
    {"all-reduce", CollectiveType::kAllReduce},
    {"all-gather", CollectiveType::kAllGather},
    {"reduce-scatter", CollectiveType::kReduceScatter},
    {"all-to-all", CollectiveType::kAllToAll},
    {"ragged-all-to-all", CollectiveType::kAllToAll},
    {"collective-broadcast", CollectiveType::kBroadcast},
    {"collective-permute", CollectiveType::kUnknown},
});

// Prefixes of calls of a device's runtime among XLA's host events.
constexpr auto kRuntimeCalls = std::to_array<std::string_view>({"cuda", "cu", "hip"});

constexpr std::string_view kXlaOps = "XLA Ops";
constexpr std::string_view kXlaStream = "Stream #";
constexpr std::string_view kHccl = "hcom_";

bool StartsAsCall(std::string_view name) {
  return std::ranges::any_of(kRuntimeCalls, [&](std::string_view beginning) {
    return name.size() > beginning.size() && name.starts_with(beginning) &&
           name[beginning.size()] >= 'A' && name[beginning.size()] <= 'Z';
  });
}

const XlaCollective* FindXlaCollective(std::string_view name) {
  const auto row = std::ranges::find_if(kXlaCollectives, [&](const XlaCollective& known) {
    return name.starts_with(known.beginning);
  });
  return row == kXlaCollectives.end() ? nullptr : &*row;
}

NodeKind KindOfWork(std::string_view name) {
  if (name.starts_with("Memcpy") || name.starts_with("memcpy")) return NodeKind::kMemcpy;
  if (name.starts_with("Memset") || name.starts_with("memset")) return NodeKind::kMemset;
  return NodeKind::kKernel;
}

NodeKind KindOfHccl(std::string_view name) {
  name.remove_prefix(kHccl.size());
  if (name.starts_with("send")) return NodeKind::kSend;
  return name.starts_with("receive") ? NodeKind::kRecv : NodeKind::kCollective;
}

}  // namespace

bool SpeaksOfDevice(std::string_view process) {
  constexpr auto kWords = std::to_array<std::string_view>(
      {"gpu", "npu", "tpu", "xpu", "hpu", "mlu", "ipu", "device", "stream", "accelerator"});
  std::string lower(process);
  for (char& c : lower) c = Lower(c);
  return std::ranges::any_of(kWords, [&](std::string_view word) {
    // Search it as a separate word, because "input" is not a device.
    for (size_t at = lower.find(word); at != lower.npos; at = lower.find(word, at + 1)) {
      const size_t end = at + word.size();
      const bool begins = at == 0 || !IsLetter(lower[at - 1]);
      if (begins && (end == lower.size() || !IsLetter(lower[end]))) return true;
    }
    return false;
  });
}

bool IsLaunchArrow(std::string_view category) {
  return category == "async_npu" ||  // of torch_npu
         category == "DataFlow";     // of rocprof
}

const ProfileProcesses::Process* ProfileProcesses::FindProcess(std::string_view name) {
  static constexpr auto kProcesses = std::to_array<Process>({
      // Ascend
      {"Python", Role::kLabels},
      {"MindSpore", Role::kOperators},
      {"CANN", Role::kCalls},
      {"Ascend Hardware", Role::kTasks},
      {"Communication", Role::kCommunication},
      {"HCCL", Role::kCommunication},
      {"Overlap Analysis", Role::kSums},
      {"Step Trace", Role::kSums},
      // rocprof
      {"CPU HIP API", Role::kCalls},
      {"CPU HSA API", Role::kCalls},
      {"CPU KFD API", Role::kCalls},
      {"Markers and Ranges", Role::kLabels},
      {"COPY", Role::kCopies},
      {"GPU*", Role::kTasks},
      // XLA
      {"/device:*", Role::kXlaDevice},
      {"/host:*", Role::kXlaHost},
      {"Host Threads", Role::kXlaHost},
  });
  const auto row = std::ranges::find_if(kProcesses, [&](const Process& known) {
    if (!known.name.ends_with('*')) return name == known.name;
    const std::string_view beginning = known.name.substr(0, known.name.size() - 1);
    if (!name.starts_with(beginning)) return false;
    return !IsLetter(beginning.back()) ||
           (name.size() > beginning.size() && IsDigit(name[beginning.size()]));
  });
  return row == kProcesses.end() ? nullptr : &*row;
}

std::string_view ProfileProcesses::TextIn(const std::map<StringId, StringId>& texts,
                                          StringId process) const {
  const auto found = texts.find(process);
  return found == texts.end() ? std::string_view() : builder_.text(found->second);
}

bool ProfileProcesses::HasSums(StringId process) const {
  const Process* known = FindProcess(TextIn(names_, process));
  return known != nullptr && known->role == Role::kSums;
}

bool ProfileProcesses::IsOfXla(const UncategorisedEvent& event) const {
  const Process* known = FindProcess(TextIn(names_, event.process));
  return known != nullptr && (known->role == Role::kXlaDevice || known->role == Role::kXlaHost);
}

std::string_view ProfileProcesses::ThreadName(const UncategorisedEvent& event) const {
  const auto found = threads_.find({event.process, event.thread});
  return found == threads_.end() ? std::string_view() : builder_.text(found->second);
}

ProfileProcesses::Settled ProfileProcesses::OfTask(const UncategorisedEvent& event) const {
  const std::string_view name = builder_.text(builder_.name(event.node));
  const std::string_view type = event.task_type ? builder_.text(event.task_type) : "";
  if (name.starts_with(kHccl)) return {KindOfHccl(name), Place::kDevice};
  if (type.empty()) return {KindOfWork(name), Place::kDevice};
  const auto row = std::ranges::find_if(
      kTaskTypes, [&](const TaskType& known) { return type.starts_with(known.beginning); });
  if (row == kTaskTypes.end()) return {};
  return {row->kind, Place::kDevice};
}

// If threads are streams, other threads repeat the same work by operation, module and step.
ProfileProcesses::Settled ProfileProcesses::OfXlaDevice(const UncategorisedEvent& event) const {
  const std::string_view thread = ThreadName(event);
  const bool is_stream = thread.starts_with(kXlaStream);
  const bool is_work = HasStreams(event.process) ? is_stream : thread.empty() || thread == kXlaOps;
  if (!is_work) return {NodeKind::kLabel, Place::kDevice};
  return {KindOfWork(builder_.text(builder_.name(event.node))), Place::kDevice};
}

// Settles a collective, or one of its pieces.
ProfileProcesses::Settled ProfileProcesses::OfCommunication(const UncategorisedEvent& event) const {
  const std::string_view name = builder_.text(builder_.name(event.node));
  if (!name.starts_with(kHccl) || has_comm_kernels_) return {NodeKind::kLabel, Place::kDevice};
  return {KindOfHccl(name), Place::kDevice};
}

ProfileProcesses::Settled ProfileProcesses::OfXlaHost(const UncategorisedEvent& event) const {
  // Calls of drivers. They have numbers if XLA records the work that they launch.
  const bool is_call = StartsAsCall(builder_.text(builder_.name(event.node)));
  return {is_call ? NodeKind::kRuntime : NodeKind::kLabel, Place::kHost};
}

ProfileProcesses::Settled ProfileProcesses::Find(const UncategorisedEvent& event) const {
  const Process* process = FindProcess(TextIn(names_, event.process));
  if (process == nullptr) {
    return event.task_type || event.stream ? OfTask(event) : Settled();
  }
  switch (process->role) {
    case Role::kLabels: return {NodeKind::kLabel, Place::kHost};
    case Role::kOperators: return {NodeKind::kOperator, Place::kHost};
    case Role::kCalls: return {NodeKind::kRuntime, Place::kHost};
    case Role::kSums: return {NodeKind::kLabel, Place::kUnknown};
    case Role::kTasks: return OfTask(event);
    case Role::kCopies: return {NodeKind::kMemcpy, Place::kDevice};
    case Role::kCommunication: return OfCommunication(event);
    case Role::kXlaDevice: return OfXlaDevice(event);
    case Role::kXlaHost: return OfXlaHost(event);
  }
  return {};
}

// Returns the stream from the arguments, or else from the names of process and thread. If the
// device is unknown, the process distinguishes streams of different devices.
Lane ProfileProcesses::StreamOf(const UncategorisedEvent& event) const {
  Lane lane;
  const std::string_view thread = ThreadName(event);
  auto stream = event.stream;
  if (!stream && thread.starts_with(kXlaStream)) {
    const std::string_view rest = thread.substr(kXlaStream.size());
    stream = NumberIn(rest.substr(0, rest.find_first_not_of("0123456789")));
  }
  if (!stream && event.thread) stream = NumberIn(builder_.text(event.thread));
  lane.stream = stream.value_or(-1);
  auto device = event.device;
  if (!device) device = DeviceNumber(TextIn(names_, event.process));
  if (!device) device = DeviceNumber(TextIn(labels_, event.process));
  if (device) {
    lane.device = *device;
  } else {
    lane.process = event.process;
  }
  return lane;
}

void ProfileProcesses::SettleComm(NodeId node) {
  const std::string_view name = builder_.text(builder_.name(node));
  Comm comm;
  if (const XlaCollective* known = FindXlaCollective(name)) {
    comm.type = known->type;
  } else if (IsCommKernel(name)) {
    comm.type = CollectiveOfKernel(name);
  } else if (builder_.kind(node) == NodeKind::kCollective) {
    comm.type = CollectiveFromName(name).value_or(CollectiveType::kUnknown);
  } else if (!IsCommunication(builder_.kind(node))) {
    return;
  }
  if (builder_.kind(node) == NodeKind::kKernel) builder_.SetKind(node, NodeKind::kCollective);
  builder_.SetComm(node, comm);
}

// Nests XLA operations: loops and calls contain the operations that they run.
void ProfileProcesses::NestXlaOps() {
  std::vector<TimedNode> ops;
  for (const UncategorisedEvent& event : events_) {
    if (builder_.place(event.node) != Place::kDevice || HasStreams(event.process)) continue;
    const Process* process = FindProcess(TextIn(names_, event.process));
    if (process == nullptr || process->role != Role::kXlaDevice) continue;
    const auto start = builder_.start(event.node);
    const auto duration = builder_.duration(event.node);
    if (builder_.kind(event.node) == NodeKind::kLabel || !start || !duration) continue;
    ops.push_back({.node = event.node,
                   .lane = builder_.lane_id(event.node),
                   .start = *start,
                   .end = *start + *duration,
                   .has_end = true});
  }
  for (const Nesting& nesting : NestByTime(std::move(ops))) {
    builder_.SetKind(nesting.parent, NodeKind::kLabel);
  }
}

void ProfileProcesses::KeepUnread(const std::map<std::string_view, uint64_t>& unread) {
  if (unread.empty()) return;
  std::string text;
  for (const auto& [name, count] : unread) {
    text += (text.empty() ? "{" : ",") + JsonString(name) + ":" + std::to_string(count);
  }
  builder_.info().extras.push_back(
      {.key = builder_.Intern(kUnreadProcessesKey), .text = builder_.Intern(text + "}")});
}

void ProfileProcesses::Settle() {
  for (const auto& [thread, name] : threads_) {
    if (builder_.text(name).starts_with(kXlaStream)) with_streams_.insert(thread.first);
  }
  has_comm_kernels_ = std::ranges::any_of(events_, [&](const UncategorisedEvent& event) {
    const Process* process = FindProcess(TextIn(names_, event.process));
    return process != nullptr && process->role == Role::kTasks &&
           builder_.text(builder_.name(event.node)).starts_with(kHccl);
  });
  std::map<std::string_view, uint64_t> unread;
  for (const UncategorisedEvent& event : events_) {
    const Settled settled = Find(event);
    if (settled.kind == NodeKind::kUnknown) {
      if (const auto name = TextIn(names_, event.process); !name.empty()) ++unread[name];
      continue;
    }
    builder_.SetKind(event.node, settled.kind);
    builder_.SetPlace(event.node, settled.place);
    if (event.correlation && IsOfXla(event)) {
      NodeRow ids;
      ids.correlation = event.correlation;
      builder_.SetIds(event.node, ids);
    }
    if (settled.place != Place::kDevice) continue;
    builder_.SetLane(event.node, builder_.InternLane(StreamOf(event)));
    if (settled.kind != NodeKind::kLabel) SettleComm(event.node);
  }
  NestXlaOps();
  KeepUnread(unread);
}

}  // namespace etude
