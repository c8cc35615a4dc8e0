#include "src/torch/recorder/recorder.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include <ATen/core/function_schema.h>
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "src/base/container/hash.h"
#include "src/formats/native/capture_writer.h"
#include "src/torch/recorder/allocations.h"
#include "src/torch/recorder/monotonic_time.h"
#include "src/torch/recorder/value_encoder.h"
#include "src/trace/words/comm_backend.h"
#include "src/trace/words/operator_name.h"

namespace etude::recorder {
namespace {

using capture::Event;

int64_t Now() { return MonotonicTime().count; }

// State of a thread between Start and Stop.
struct ThreadRecords {
  ThreadRecords(capture::CaptureWriter& writer, std::atomic<int64_t>& value_bytes, uint64_t node_id)
      : encoder(writer, value_bytes),
        thread(writer.DefineThread(node_id, at::RecordFunction::currentThreadId(),
                                   static_cast<uint64_t>(syscall(SYS_gettid)),
                                   static_cast<uint32_t>(pthread_self()))) {}

  ValueEncoder encoder;
  uint32_t thread;
  capture::RecordBuffer buffer;
  // Last event in the buffer.
  int64_t time = 0;
  int64_t node = 0;
  int64_t handle = 0;
  int64_t overhead = 0;        // time in callbacks that is not in an event yet
  std::vector<uint64_t> open;  // handles of unfinished calls
  // Function numbers, by a hash of name, overload and scope.
  struct Function {
    std::string name;
    std::string overload;
    uint8_t scope = 0;
    uint32_t number = 0;
    IntegerArguments integers;
  };
  std::unordered_multimap<uint64_t, Function> functions;
};

struct Session {
  Options options;
  std::unique_ptr<capture::CaptureWriter> writer;
  std::atomic<int64_t> next_node{2};    // 1 is the process
  std::atomic<int64_t> value_bytes{0};  // remaining bytes of index tensors to record
  std::atomic<int64_t> gloo_labels{0};  // unfinished
  std::string not_watched;              // reason why requested allocations are not recorded
};

// State of a thread; threads and sessions come and go. `busy` is set while the thread may touch
// `records`, which belong to session `session`.
struct ThreadState {
  std::atomic<bool> busy{false};
  uint64_t session = 0;
  std::unique_ptr<ThreadRecords> records;
};

struct Globals {
  std::mutex mutex;  // guards all but `active` and `number`
  std::unique_ptr<Session> session;
  std::atomic<Session*> active{nullptr};
  std::atomic<uint64_t> number{0};  // of the session
  std::vector<std::shared_ptr<ThreadState>> threads;
  at::CallbackHandle callback = 0;
  at::CallbackHandle empty_callback = 0;
};

// Never destroyed: threads may run callbacks during process exit.
Globals& globals() {
  static auto* const kept = new Globals();
  return *kept;
}

// Memory may be freed on a thread whose state is gone, by destructors that run later.
thread_local bool thread_is_over = false;
struct ThreadHold {
  ThreadHold() : state(std::make_shared<ThreadState>()) {
    const std::lock_guard lock(globals().mutex);
    globals().threads.push_back(state);
  }
  ~ThreadHold() { thread_is_over = true; }
  const std::shared_ptr<ThreadState> state;
};

ThreadState& ThisThread() {
  thread_local const ThreadHold hold;
  return *hold.state;
}

void BeginBlock(ThreadRecords& records, int64_t time) {
  records.time = time;
  records.buffer.Varint(records.thread);
  records.buffer.Varint(static_cast<uint64_t>(time));
  records.buffer.Varint(static_cast<uint64_t>(records.node));
  records.buffer.Varint(static_cast<uint64_t>(records.handle));
}

void AddTime(ThreadRecords& records, int64_t time) {
  records.buffer.Signed(time - records.time);
  records.buffer.Varint(static_cast<uint64_t>(records.overhead));
  records.time = time;
  records.overhead = 0;
}

// Returns bits of the arguments that an operator does not write; written ones have arbitrary
// content before.
uint64_t UnwrittenArguments(const c10::FunctionSchema& schema) {
  uint64_t read = ~uint64_t{0};
  const auto& arguments = schema.arguments();
  for (size_t i = 0; i < arguments.size() && i < 63; ++i) {
    const c10::AliasInfo* alias = arguments[i].alias_info();
    if (alias != nullptr && alias->isWrite()) read &= ~(uint64_t{1} << i);
  }
  return read;
}

// Names of arguments with indices, offsets or classes in PyTorch's schemas.
constexpr std::array<std::string_view, 6> kIndexArguments = {"index",   "indices", "offsets",
                                                             "lengths", "target",  "offset2bag"};

// Returns bits of the arguments whose elements are used as indices.
uint64_t IndexArguments(const c10::FunctionSchema& schema) {
  uint64_t bits = 0;
  const auto& arguments = schema.arguments();
  for (size_t i = 0; i < arguments.size() && i < 63; ++i) {
    const bool is_index =
        std::ranges::find(kIndexArguments, arguments[i].name()) != kIndexArguments.end();
    if (is_index) bits |= uint64_t{1} << i;
  }
  return bits;
}

IntegerArguments IntegersOf(const c10::FunctionSchema& schema, const Options& options) {
  IntegerArguments integers;
  if (!options.integer_ranges) return integers;
  integers.ranges = UnwrittenArguments(schema);
  switch (options.statistics) {
    case Options::Statistics::kNone: break;
    case Options::Statistics::kIndices:
      integers.statistics = integers.ranges & IndexArguments(schema);
      break;
    case Options::Statistics::kAllIntegers: integers.statistics = integers.ranges; break;
  }
  return integers;
}

const ThreadRecords::Function& FunctionOf(const at::RecordFunction& fn, Session& session,
                                          ThreadRecords& records) {
  const char* const name = fn.name();
  const char* const overload = fn.overload_name();
  const auto scope = static_cast<uint8_t>(fn.scope());
  const uint64_t hash = HashBytes(overload, HashBytes(name, scope));
  const auto [begin, end] = records.functions.equal_range(hash);
  for (auto at = begin; at != end; ++at) {
    const ThreadRecords::Function& known = at->second;
    if (known.scope == scope && known.name == name && known.overload == overload) {
      return known;
    }
  }
  const std::optional<c10::FunctionSchema> schema = fn.operator_schema();
  ThreadRecords::Function function{.name = name, .overload = overload, .scope = scope};
  function.number = session.writer->DefineFunction(name, schema ? c10::toString(*schema) : "");
  if (schema) function.integers = IntegersOf(*schema, session.options);
  return records.functions.emplace(hash, std::move(function))->second;
}

uint8_t Modes() {
  uint8_t modes = 0;
  if (c10::GradMode::is_enabled()) modes |= capture::kGradMode;
  if (c10::InferenceMode::is_enabled()) modes |= capture::kInferenceMode;
  for (const auto key : {c10::DispatchKey::AutocastCPU, c10::DispatchKey::AutocastCUDA}) {
    if (!c10::impl::tls_is_dispatch_key_excluded(key)) modes |= capture::kAutocast;
  }
  return modes;
}

void AddEnter(const at::RecordFunction& fn, Session& session, ThreadRecords& records,
              int64_t begin) {
  capture::RecordBuffer& buffer = records.buffer;
  const int64_t node = session.next_node.fetch_add(1, std::memory_order_relaxed);
  const auto handle = static_cast<int64_t>(fn.handle());
  const ThreadRecords::Function& function = FunctionOf(fn, session, records);
  if (buffer.empty()) BeginBlock(records, begin);
  buffer.Mark(Event::kEnter);
  AddTime(records, begin);
  buffer.Signed(node - records.node);
  buffer.Signed(handle - records.handle);
  buffer.Varint(function.number);
  buffer.Mark(fn.scope());
  buffer.Varint(static_cast<uint64_t>(fn.seqNr() + 1));
  buffer.Varint(fn.forwardThreadId());
  buffer.Byte(Modes());
  records.encoder.Encode(fn.inputs(), function.integers, buffer);
  records.node = node;
  records.handle = handle;
  records.open.push_back(static_cast<uint64_t>(handle));
  if (IsHostThreadLabel(fn.name())) ++session.gloo_labels;
}

void AddExit(const at::RecordFunction& fn, Session& session, ThreadRecords& records,
             int64_t begin) {
  if (IsHostThreadLabel(fn.name())) --session.gloo_labels;
  capture::RecordBuffer& buffer = records.buffer;
  std::vector<uint64_t>& open = records.open;
  if (buffer.empty()) BeginBlock(records, begin);
  if (!open.empty() && open.back() == fn.handle()) {
    buffer.Mark(Event::kExit);
    open.pop_back();
  } else if (const auto at = std::find(open.rbegin(), open.rend(), fn.handle());
             at != open.rend()) {
    // Calls that are open inside end on another thread, as labels of asynchronous work do.
    const auto inside = static_cast<size_t>(at - open.rbegin());
    buffer.Mark(Event::kExitOver);
    buffer.Varint(inside);
    open.resize(open.size() - inside - 1);
  } else {
    buffer.Mark(Event::kExitElsewhere);
    buffer.Varint(fn.handle());
  }
  AddTime(records, begin);
  const std::vector<c10::IValue>& outputs = fn.outputs();
  records.encoder.Encode(c10::ArrayRef<const c10::IValue>(outputs.data(), outputs.size()), {},
                         buffer);
}

// Sets `busy` during its lifetime, also if an exception is thrown: the end of a recording waits for
// it.
class Busy {
 public:
  explicit Busy(std::atomic<bool>& busy) : busy_(busy) { busy_.store(true); }
  ~Busy() { busy_.store(false, std::memory_order_release); }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  std::atomic<bool>& busy_;
};

// Calls `add(session, records)` if a recording is active, and passes on full blocks. If it throws,
// because values are unreadable, no partial record remains.
template <typename Add>
void OnThisThread(int64_t begin, Add add) {
  ThreadState& state = ThisThread();
  // Encoding a value may run operators of tensor subclasses, which are not the program's.
  if (state.busy.load(std::memory_order_relaxed)) return;
  const Busy busy(state.busy);
  if (Session* const session = globals().active.load(); session != nullptr) {
    const uint64_t number = globals().number.load(std::memory_order_relaxed);
    if (state.session != number) {
      state.records = std::make_unique<ThreadRecords>(*session->writer, session->value_bytes,
                                                      session->next_node++);
      state.session = number;
    }
    ThreadRecords& records = *state.records;
    const size_t whole = records.buffer.size();
    const size_t open = records.open.size();
    try {
      add(*session, records);
    } catch (...) {
      records.buffer.Truncate(whole);
      if (records.open.size() > open) records.open.resize(open);
      throw;
    }
    if (records.buffer.size() >= capture::kBlockBytes) {
      session->writer->AddEvents(records.buffer.Take());
    }
    records.overhead += Now() - begin;
  }
}

void AddAllocation(ThreadRecords& records, int64_t begin, const void* address, size_t bytes) {
  capture::RecordBuffer& buffer = records.buffer;
  if (buffer.empty()) BeginBlock(records, begin);
  buffer.Mark(bytes != 0 ? Event::kAllocate : Event::kFree);
  AddTime(records, begin);
  buffer.Fixed64(reinterpret_cast<uint64_t>(address));
  if (bytes != 0) buffer.Varint(bytes);
}

void OnAllocation(const void* address, size_t bytes) {
  if (globals().active.load(std::memory_order_relaxed) == nullptr || thread_is_over) return;
  const int64_t begin = Now();
  OnThisThread(begin, [&](Session& session, ThreadRecords& records) {
    if (session.options.allocations) AddAllocation(records, begin, address, bytes);
  });
}

std::unique_ptr<at::ObserverContext> OnEnter(const at::RecordFunction& fn) {
  const int64_t begin = Now();
  OnThisThread(begin, [&](Session& session, ThreadRecords& records) {
    AddEnter(fn, session, records, begin);
  });
  return nullptr;
}

void OnExit(const at::RecordFunction& fn, at::ObserverContext*) {
  const int64_t begin = Now();
  OnThisThread(begin, [&](Session& session, ThreadRecords& records) {
    AddExit(fn, session, records, begin);
  });
}

std::unique_ptr<at::ObserverContext> NothingOnEnter(const at::RecordFunction&) { return nullptr; }
void NothingOnExit(const at::RecordFunction&, at::ObserverContext*) {}

// Waits for the ends of Gloo's labels: its threads wake the waiting thread first, so a step may end
// earlier.
void AwaitGlooLabels(const Session& session) {
  constexpr int64_t kMost = 50'000'000;  // longer work is not awaited
  const int64_t begin = Now();
  while (session.gloo_labels.load() > 0 && Now() - begin < kMost) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

at::CallbackHandle AddCallback(at::RecordFunctionCallback callback) {
  return at::addGlobalCallback(callback.needsInputs(true).needsOutputs(true).needsIds(true));
}

}  // namespace

bool Start(const std::string& path, std::string_view header, const Options& options,
           std::string& error) {
  Globals& all = globals();
  const std::lock_guard lock(all.mutex);
  if (all.session != nullptr) {
    error = "a recording is running";
    return false;
  }
  auto session = std::make_unique<Session>();
  session->options = options;
  session->value_bytes = options.index_value_bytes;
  session->writer = capture::CaptureWriter::Create(
      path, header, {.most_file_bytes = options.most_file_bytes}, error);
  if (session->writer == nullptr) return false;
  if (options.allocations && !WatchAllocations(OnAllocation, session->not_watched)) {
    session->options.allocations = false;
  }
  all.session = std::move(session);
  ++all.number;
  all.active.store(all.session.get());
  all.callback = AddCallback(at::RecordFunctionCallback(OnEnter, OnExit));
  return true;
}

bool Stop(std::string& error) {
  Globals& all = globals();
  const std::lock_guard lock(all.mutex);
  if (all.session == nullptr) {
    error = "no recording is running";
    return false;
  }
  AwaitGlooLabels(*all.session);
  at::removeCallback(all.callback);
  if (all.session->options.allocations) UnwatchAllocations();
  all.active.store(nullptr);
  for (const auto& state : all.threads) {
    while (state->busy.load()) std::this_thread::yield();
    if (state->session == all.number && state->records != nullptr) {
      if (!state->records->buffer.empty()) {
        all.session->writer->AddEvents(state->records->buffer.Take());
      }
      state->records.reset();
      state->session = 0;
    }
  }
  std::string end = "\"nodes\": " + std::to_string(all.session->next_node - 1) +
                    ", \"finish_monotonic_ns\": " + std::to_string(Now());
  if (!all.session->not_watched.empty()) {
    end += ", \"no_allocations\": \"" + all.session->not_watched + "\"";
  }
  const bool complete = all.session->writer->Finish(end, error);
  all.session.reset();
  std::erase_if(all.threads, [](const auto& state) { return state.use_count() == 1; });
  return complete;
}

void* EnterLabel(const char* name) {
  if (globals().active.load(std::memory_order_relaxed) == nullptr) return nullptr;
  auto label = std::make_unique<at::RecordFunction>(at::RecordScope::USER_SCOPE);
  if (!label->isActive()) return nullptr;
  label->before(name);
  return label.release();
}

void LeaveLabel(void* label) { delete static_cast<at::RecordFunction*>(label); }

void SpentSince(int64_t begin_ns) {
  if (globals().active.load(std::memory_order_relaxed) == nullptr) return;
  OnThisThread(begin_ns, [](Session&, ThreadRecords&) {});
}

std::string HeaderWithClocks(std::string_view members) {
  const auto now = [](clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return std::to_string(int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec);
  };
  std::string document =
      "{\"format\": \"etude-native-capture\", \"version\": " + std::to_string(capture::kVersion) +
      ", \"realtime_ns\": " + now(CLOCK_REALTIME) + ", \"monotonic_ns\": " + now(CLOCK_MONOTONIC);
  if (!members.empty()) document.append(", ").append(members);
  return document + "}";
}

void CutOffChild() {
  // The mutex and the writer's thread belong to the parent: the child must not wait for them.
  globals().active.store(nullptr);
  (void)globals().session.release();
}

void SetEmptyCallback(bool on) {
  Globals& all = globals();
  const std::lock_guard lock(all.mutex);
  if (on && all.empty_callback == 0) {
    all.empty_callback = AddCallback(at::RecordFunctionCallback(NothingOnEnter, NothingOnExit));
  } else if (!on && all.empty_callback != 0) {
    at::removeCallback(all.empty_callback);
    all.empty_callback = 0;
  }
}

}  // namespace etude::recorder
