#include "src/compat/chakra_link/critical_path.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "src/compat/chakra/chakra_fails.h"
#include "src/compat/chakra/flat_map.h"
#include "src/compat/chakra/node_text.h"
#include "src/compat/chakra_link/path_graph.h"
#include "src/compat/chakra_link/stable_order.h"

namespace etude::compat {
namespace {

// Names that the analysis uses.
enum class Call : uint8_t {
  kOther,
  kLaunch,          // launches a kernel or a copy
  kBlockingLaunch,  // and may block
  kBlocking,
  kEventRecord,
  kStreamWaitEvent,
  kSyncStreamWait,  // the device side of the calls
  kSyncEvent,
  kSyncStream,
  kSyncContext,
};
constexpr size_t kCallCount = static_cast<size_t>(Call::kSyncContext) + 1;

struct CallName {
  std::string_view name;
  Call call;
};
constexpr auto kCallNames = std::to_array<CallName>({
    {"cudaLaunchKernel", Call::kLaunch},
    {"cudaLaunchKernelExC", Call::kLaunch},
    {"cuLaunchKernel", Call::kLaunch},
    {"cudaMemcpyAsync", Call::kBlockingLaunch},
    {"cudaMemsetAsync", Call::kLaunch},
    {"runFunction - job_prep_and_submit_for_execution", Call::kLaunch},
    {"hipLaunchKernel", Call::kLaunch},
    {"hipExtModuleLaunchKernel", Call::kLaunch},
    {"hipMemsetAsync", Call::kLaunch},
    {"hipMemcpyAsync", Call::kLaunch},
    {"hipMemcpyWithStream", Call::kLaunch},
    {"cudaDeviceSynchronize", Call::kBlocking},
    {"cudaStreamSynchronize", Call::kBlocking},
    {"cudaEventQuery", Call::kBlocking},
    {"cudaEventSynchronize", Call::kBlocking},
    {"cudaMemcpy", Call::kBlocking},
    {"cudaEventRecord", Call::kEventRecord},
    {"cudaStreamWaitEvent", Call::kStreamWaitEvent},
    {"Stream Wait Event", Call::kSyncStreamWait},
    {"Event Sync", Call::kSyncEvent},
    {"Stream Sync", Call::kSyncStream},
    {"Context Sync", Call::kSyncContext},
});

Call CallOf(std::string_view name) {
  if (name.empty() || std::string_view("crhSEC").find(name[0]) == std::string_view::npos) {
    return Call::kOther;
  }
  for (const CallName& row : kCallNames) {
    if (row.name == name) return row.call;
  }
  return Call::kOther;
}

bool IsLaunch(Call call) { return call == Call::kLaunch || call == Call::kBlockingLaunch; }
bool IsBlocking(Call call) { return call == Call::kBlocking || call == Call::kBlockingLaunch; }

// An event with a duration. Times are whole microseconds from the earliest event; if the trace has
// only integral start times, durations are unchanged.
struct Row {
  double ts = 0;
  double dur = 0;
  int64_t stream = -1;
  int64_t correlation = -1;
  uint32_t event = 0;
  uint32_t partner = kNoRow;  // row at the other end of its correlation, except for event 0
  uint32_t matches = 0;       // device rows: number of calls that bring it into the window
  Call call = Call::kOther;
  EventCat category = EventCat::kOther;
  bool is_step = false;
  bool at_zero = false;  // its correlation leads to event 0 or to none, which the analysis does not
                         // distinguish
  bool on_gpu = false;   // runs on a device, or is the device side of a synchronisation
  bool is_kept = true;   // not in the last of several profiler steps
  bool in_window = false;

  double end() const { return ts + dur; }
};

class Analysis {
 public:
  Analysis(const DeviceTrace& trace, const std::string& name) : trace_(trace), name_(name) {}

  Result<std::vector<SyncDep>> Run() {
    MakeRows();
    if (rows_.empty()) return Fails("no event with category and duration", "ValueError");
    JoinCorrelations();
    ETUDE_RETURN_IF_ERROR(ChooseWindow());
    if (gives_up_) return std::vector<SyncDep>();
    graph_.emplace(rows_.size());
    AddCallStacks();
    ETUDE_RETURN_IF_ERROR(AddKernels());
    if (gives_up_) return std::vector<SyncDep>();
    return SyncDepsOfPath();
  }

 private:
  // A launch, for its kernel.
  struct Launch {
    uint32_t row = 0;
    double ts = 0;
  };
  // Start or end of a row.
  struct Mark {
    uint32_t row = 0;
    bool is_start = false;
  };
  // Queue of a launch: device and stream, or process, thread and stream.
  using QueueKey = std::tuple<std::string_view, uint32_t, int64_t>;

  tl::unexpected<Error> Fails(std::string_view what, std::string_view exception) const {
    return ChakraFails(name_, std::string(what) + " in the critical path analysis", exception);
  }
  const DeviceEvent& Event(uint32_t row) const { return trace_.events[rows_[row].event]; }
  static uint32_t Start(uint32_t row) { return 2 * row; }
  static uint32_t End(uint32_t row) { return 2 * row + 1; }
  double TimeOf(uint32_t point) const {
    const Row& row = rows_[point / 2];
    return point % 2 == 0 ? row.ts : row.end();
  }
  // Returns whether a row has points in the graph.
  bool HasPoints(uint32_t row) const {
    if (row == kNoRow || !rows_[row].in_window) return false;
    const EventCat category = rows_[row].category;
    return category == EventCat::kCpuOp || category == EventCat::kRuntime ||
           category == EventCat::kDriver || IsLinkedGpu(row);
  }
  bool IsLinkedGpu(uint32_t row) const {
    return rows_[row].stream != -1 && (rows_[row].partner != kNoRow || rows_[row].at_zero);
  }
  // Returns the row that the analysis finds under its partner's number.
  uint32_t PartnerOrZero(uint32_t row) const {
    return rows_[row].at_zero ? zero_row_ : rows_[row].partner;
  }
  // Returns rows by start, stable.
  std::vector<uint32_t> ByStart(const std::vector<uint32_t>& rows) const;

  void MakeRows();
  void JoinCorrelations();
  Status ChooseWindow();
  void DropLastStep();
  void AddCallStacks();
  std::vector<Mark> MarksInTime(const std::vector<uint32_t>& rows) const;
  void AddCallStack(const std::vector<uint32_t>& rows);
  Status AddKernels();
  Status FindQueueLengths();
  void FindRecordedLaunches();
  void FindNextLaunches();
  void FindLaunches();
  Status AddSync(uint32_t row, std::map<int64_t, uint32_t>& last);
  Status AddKernel(uint32_t row, std::map<int64_t, uint32_t>& last);
  Status AddGpuToCpu(uint32_t gpu_end, uint32_t row);
  Result<std::vector<SyncDep>> SyncDepsOfPath();

  const DeviceTrace& trace_;
  const std::string& name_;
  std::vector<Row> rows_;
  uint32_t zero_row_ = kNoRow;               // row of event 0
  std::array<bool, kCallCount> saw_call_{};  // in any row
  bool gives_up_ = false;                    // the analysis rejects the trace
  std::optional<PathGraph> graph_;

  std::vector<uint32_t> launches_;                // kept launches of kept kernels, by start
  std::vector<int64_t> queue_length_;             // by row; kNoLength: unknown
  std::map<int64_t, uint32_t> launch_of_record_;  // row by correlation of a cudaEventRecord
  std::vector<uint32_t> next_launch_;             // by row of a cudaStreamWaitEvent; kNoRow: none
  std::vector<uint8_t> is_wait_;                  // by row: next_launch_ is valid
  FlatMap kernel_sync_;                           // by row of a kernel: the awaited kernel
  std::vector<int64_t> stream_order_;             // in the order of their first kernel

  static constexpr int64_t kNoLength = std::numeric_limits<int64_t>::min();
};

void Analysis::MakeRows() {
  const bool is_rounded = std::ranges::any_of(
      trace_.events, [](const DeviceEvent& event) { return event.ts.is_float || !event.has_ts; });
  double earliest = std::numeric_limits<double>::infinity();
  rows_.reserve(trace_.events.size());
  for (uint32_t i = 0; i < trace_.events.size(); ++i) {
    const DeviceEvent& event = trace_.events[i];
    if (!event.has_dur || !event.has_ts || event.cat.empty()) continue;
    if (event.category == EventCat::kTrace) continue;
    Row& row = rows_.emplace_back();
    row.event = i;
    row.ts = event.ts.AsDouble();
    row.dur = event.dur.AsDouble();
    if (is_rounded) {
      const double end = std::floor(row.ts + row.dur);
      row.ts = std::ceil(row.ts);
      row.dur = end - row.ts;
    }
    earliest = std::min(earliest, row.ts);
    row.call = CallOf(Inside(event.name));
    row.category = event.category;
    row.correlation = event.correlation;
    row.is_step = event.is_profiler_step;
    saw_call_[static_cast<size_t>(row.call)] = true;
    if (!event.stream.empty()) {
      const std::string_view text = IsString(event.stream) ? Inside(event.stream) : event.stream;
      if (const auto number = ParsePyNumber(text)) {
        row.stream = WholeOf(*number).value_or(INT64_MIN);  // same as NumPy
      }
    }
    row.on_gpu = (row.stream >= 0 && event.correlation >= 0) || row.call == Call::kSyncEvent ||
                 row.call == Call::kSyncContext;
  }
  for (Row& row : rows_) row.ts -= earliest;
}

void Analysis::JoinCorrelations() {
  FlatMap last_cpu;
  FlatMap last_gpu;
  for (uint32_t i = 0; i < rows_.size(); ++i) {
    const int64_t correlation = rows_[i].correlation;
    if (correlation == -1) continue;
    (rows_[i].on_gpu ? last_gpu : last_cpu).Set(static_cast<uint64_t>(correlation), i);
  }
  for (uint32_t i = 0; i < rows_.size(); ++i) {
    const int64_t correlation = rows_[i].correlation;
    if (correlation == -1) continue;
    const FlatMap& others = rows_[i].on_gpu ? last_cpu : last_gpu;
    rows_[i].partner = others.Find(static_cast<uint64_t>(correlation));
    if (rows_[i].partner != kNoRow && rows_[rows_[i].partner].event == 0) {
      rows_[i].partner = kNoRow;
      rows_[i].at_zero = true;
    }
  }
  // The analysis stores partners as event numbers, with 0 for no partner.
  if (rows_[0].event == 0) zero_row_ = 0;
  for (Row& row : rows_) row.at_zero |= row.partner == kNoRow && row.correlation >= 0;
}

void Analysis::DropLastStep() {
  std::vector<std::string_view> names;
  for (uint32_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].is_step) names.push_back(Event(i).name);
  }
  std::ranges::sort(names);
  const auto repeated = std::ranges::unique(names);
  if (names.end() - repeated.begin() == static_cast<ptrdiff_t>(names.size()) - 1) return;
  double last_start = -std::numeric_limits<double>::infinity();
  for (uint32_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].is_step && !rows_[i].on_gpu) {
      last_start = std::max(last_start, rows_[i].ts);
    }
  }
  FlatMap correlations;
  for (uint32_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].on_gpu) continue;
    rows_[i].is_kept = rows_[i].ts < last_start;
    if (rows_[i].is_kept) correlations.Set(static_cast<uint64_t>(rows_[i].correlation), 1);
  }
  for (uint32_t i = 0; i < rows_.size(); ++i) {
    if (!rows_[i].on_gpu) continue;
    rows_[i].is_kept = correlations.Find(static_cast<uint64_t>(rows_[i].correlation)) != kNoRow;
  }
}

// Returns whether a name starts like a profiler step's but lacks '#' and a number.
bool HasNoStepNumber(std::string_view name) {
  constexpr std::string_view kStep = "ProfilerStep";
  constexpr std::string_view kBlanks = " \t\n\r\v\f";
  if (!name.starts_with(kStep)) return false;
  name.remove_prefix(kStep.size());
  const auto skip_blanks = [&] {
    name.remove_prefix(std::min(name.find_first_not_of(kBlanks), name.size()));
  };
  skip_blanks();
  if (!name.starts_with('#')) return true;
  name.remove_prefix(1);
  skip_blanks();
  return name.empty() || name[0] < '0' || name[0] > '9';
}

Status Analysis::ChooseWindow() {
  const auto is_step = [&](uint32_t row) { return rows_[row].is_step; };
  bool any_step = false;
  for (uint32_t i = 0; i < rows_.size() && !any_step; ++i) any_step = is_step(i);
  for (uint32_t i = 0; i < rows_.size(); ++i) {
    if (is_step(i) && HasNoStepNumber(Inside(Event(i).name))) {
      return Fails("a ProfilerStep without its number", "AttributeError");
    }
  }
  if (!any_step) return Fails("no ProfilerStep", "TypeError");
  DropLastStep();
  // If a step was dropped, device rows come first; a step among them is rare.
  uint32_t step = kNoRow;
  for (uint32_t i = 0; i < rows_.size() && step == kNoRow; ++i) {
    if (is_step(i) && rows_[i].is_kept) step = i;
  }
  if (step == kNoRow) return Fails("no complete ProfilerStep", "UndefinedVariableError");
  const double begin = rows_[step].ts;
  const double end = rows_[step].end();
  const auto is_inside = [&](const Row& row) {
    return row.ts >= begin && row.ts <= end && row.dur > 0;
  };
  for (Row& row : rows_) {
    if (row.is_kept && row.stream == -1) row.in_window = is_inside(row);
  }
  // A device row is inside if a partner call is.
  for (uint32_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    const uint32_t partner = PartnerOrZero(i);
    if (!row.is_kept || row.stream != -1 || partner == kNoRow) continue;
    const bool always = rows_[partner].call == Call::kSyncStreamWait;
    if (rows_[partner].stream != -1 && (always || is_inside(row))) ++rows_[partner].matches;
  }
  for (Row& row : rows_) {
    if (!row.is_kept || row.stream == -1) continue;
    row.in_window = row.matches != 0 || row.call == Call::kSyncStreamWait;
    // With two of them it is contained twice, which makes the analysis fail.
    gives_up_ |= row.matches > 1;
  }
  return {};
}

std::vector<uint32_t> Analysis::ByStart(const std::vector<uint32_t>& rows) const {
  std::vector<uint64_t> keys;
  keys.reserve(rows.size());
  for (const uint32_t row : rows) keys.push_back(OrderKey(rows_[row].ts));
  std::vector<uint32_t> sorted;
  sorted.reserve(rows.size());
  for (const uint32_t place : StableOrder(keys)) sorted.push_back(rows[place]);
  return sorted;
}

// Numbers come before texts, like mixed values in pandas.
struct GroupKey {
  bool is_text = false;
  double number = 0;
  std::string_view text;

  explicit GroupKey(std::string_view json) : text(json) {
    const auto value = ParsePyNumber(json);
    is_text = !value;
    if (value) {
      number = value->AsDouble();
      text = {};
    }
  }
  auto operator<=>(const GroupKey&) const = default;
};

void Analysis::AddCallStacks() {
  std::map<std::pair<std::string_view, uint32_t>, std::vector<uint32_t>> threads;
  std::vector<uint32_t>* last = nullptr;
  std::pair<std::string_view, uint32_t> last_key;
  for (uint32_t i = 0; i < rows_.size(); ++i) {
    if (!rows_[i].in_window) continue;
    const std::pair key(Event(i).pid, Event(i).tid);
    if (last == nullptr || key != last_key) {
      last = &threads[key];
      last_key = key;
    }
    last->push_back(i);
  }
  using Thread = std::tuple<GroupKey, GroupKey, const std::vector<uint32_t>*>;
  std::vector<Thread> sorted;
  for (const auto& [key, rows] : threads) {
    // Host threads have no row with a stream; device threads need no call stack.
    const bool is_host =
        std::ranges::all_of(rows, [&](uint32_t row) { return rows_[row].stream < 0; });
    if (!is_host || key.first.empty()) continue;
    sorted.emplace_back(GroupKey(key.first), GroupKey(trace_.tids[key.second]), &rows);
  }
  std::ranges::stable_sort(sorted, [](const Thread& a, const Thread& b) {
    return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
  });
  for (const Thread& thread : sorted) AddCallStack(*std::get<2>(thread));
}

// Orders marks by time: ends before starts, longer rows start first, shorter rows end first.
std::vector<Analysis::Mark> Analysis::MarksInTime(const std::vector<uint32_t>& rows) const {
  std::vector<Mark> marks;
  marks.reserve(2 * rows.size());
  for (const uint32_t row : rows) {
    marks.push_back({row, true});
    marks.push_back({row, false});
  }
  const auto before = [&](const Mark& a, const Mark& b) {
    const Row& x = rows_[a.row];
    const Row& y = rows_[b.row];
    const double x_time = a.is_start ? x.ts : x.end();
    const double y_time = b.is_start ? y.ts : y.end();
    if (x_time != y_time) return x_time < y_time;
    if (a.is_start != b.is_start) return !a.is_start;
    if (x.dur != y.dur) return a.is_start ? x.dur > y.dur : x.dur < y.dur;
    return a.is_start ? a.row < b.row : a.row > b.row;
  };
  std::vector<uint64_t> keys;
  keys.reserve(marks.size());
  for (const Mark& mark : marks) {
    keys.push_back(OrderKey(mark.is_start ? rows_[mark.row].ts : rows_[mark.row].end()));
  }
  const std::vector<uint32_t> order = StableOrder(keys);
  std::vector<Mark> sorted;
  sorted.reserve(marks.size());
  for (const uint32_t place : order) sorted.push_back(marks[place]);
  for (size_t i = 0; i < sorted.size();) {
    size_t end = i + 1;
    while (end < sorted.size() && keys[order[end]] == keys[order[i]]) ++end;
    if (end - i > 1) {
      std::sort(sorted.begin() + static_cast<ptrdiff_t>(i),
                sorted.begin() + static_cast<ptrdiff_t>(end), before);
    }
    i = end;
  }
  return sorted;
}

void Analysis::AddCallStack(const std::vector<uint32_t>& rows) {
  // The call tree, walked in preorder: an end closes the most recent begin.
  std::vector<uint32_t> parent_of(rows.size(), kNoRow);  // by place in `begun`
  std::vector<uint32_t> begun;                           // rows in the order of their starts
  std::vector<uint32_t> stack;                           // places in `begun`
  for (const Mark& mark : MarksInTime(rows)) {
    if (mark.is_start) {
      const auto place = static_cast<uint32_t>(begun.size());
      parent_of[place] = stack.empty() ? kNoRow : stack.back();
      begun.push_back(mark.row);
      stack.push_back(place);
    } else if (!stack.empty()) {
      stack.pop_back();
    }
  }
  uint32_t last = kNoRow;  // point
  uint32_t last_top = kNoRow;
  size_t depth = 0;
  const auto enter = [&](uint32_t row) {
    if (!HasPoints(row)) return;
    if (depth == 0 && last_top != kNoRow) graph_->AddNew(last_top, Start(row), 0);
    ++depth;
    if (last != kNoRow) {
      graph_->AddNew(last, Start(row), rows_[row].ts - TimeOf(last));
    }
    last = Start(row);
  };
  const auto leave = [&](uint32_t row) {
    if (!HasPoints(row)) return;
    --depth;
    if (last != kNoRow) {
      const double weight = IsBlocking(rows_[row].call) ? 0 : rows_[row].end() - TimeOf(last);
      graph_->AddNew(last, End(row), weight);
    }
    last = depth == 0 ? kNoRow : End(row);
    if (depth == 0) last_top = End(row);
  };
  // Starts come in preorder: rows that do not contain the next one are closed first.
  std::vector<uint32_t> open;
  for (uint32_t place = 0; place < begun.size(); ++place) {
    while (!open.empty() && open.back() != parent_of[place]) {
      leave(begun[open.back()]);
      open.pop_back();
    }
    enter(begun[place]);
    open.push_back(place);
  }
  while (!open.empty()) {
    leave(begun[open.back()]);
    open.pop_back();
  }
}

void Analysis::FindLaunches() {
  std::vector<uint32_t> found;
  for (uint32_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    if (!row.is_kept || !IsLaunch(row.call) || row.partner == kNoRow) continue;
    const Row& kernel = rows_[row.partner];
    if (kernel.is_kept && kernel.stream != -1 && kernel.partner != kNoRow) found.push_back(i);
  }
  launches_ = ByStart(found);
}

Status Analysis::FindQueueLengths() {
  queue_length_.assign(rows_.size(), kNoLength);
  FlatMap launch_count;
  FlatMap kernel_count;
  std::vector<uint32_t> in_queue;  // launches, then their kernels
  for (uint32_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    if (!row.is_kept || !IsLaunch(row.call) || row.partner == kNoRow) continue;
    ++launch_count.Insert(static_cast<uint64_t>(rows_[i].correlation), 0);
    in_queue.push_back(i);
  }
  for (uint32_t i = 0; i < rows_.size(); ++i) {
    if (!rows_[i].is_kept || rows_[i].stream == -1) continue;
    const auto correlation = static_cast<uint64_t>(rows_[i].correlation);
    if (launch_count.Find(correlation) == kNoRow) continue;
    ++kernel_count.Insert(correlation, 0);
    in_queue.push_back(i);
  }
  if (in_queue.empty()) return Fails("no launch of a kernel", "TypeError");
  size_t joined = 0;
  size_t kernels = 0;
  for (const uint32_t row : in_queue) {
    const uint32_t count = kernel_count.Find(static_cast<uint64_t>(rows_[row].correlation));
    if (IsLaunch(rows_[row].call) && rows_[row].stream == -1) {
      joined += count == kNoRow ? 1 : count;
    } else {
      ++kernels;
    }
  }
  if (joined != kernels) return Fails("kernels and launches that do not pair", "AssertionError");
  std::map<int64_t, int64_t> length;
  for (const uint32_t row : ByStart(in_queue)) {
    const bool is_launch = IsLaunch(rows_[row].call) && rows_[row].stream == -1;
    const int64_t stream = is_launch ? rows_[rows_[row].partner].stream : rows_[row].stream;
    queue_length_[row] = length[stream] += is_launch ? 1 : -1;
  }
  return {};
}

void Analysis::FindRecordedLaunches() {
  if (!saw_call_[static_cast<size_t>(Call::kEventRecord)]) return;
  // Queue on which each event was recorded.
  std::map<int64_t, QueueKey> queue_of_record;
  for (uint32_t i = 0; i < rows_.size(); ++i) {
    const DeviceEvent& event = Event(i);
    if (!rows_[i].is_kept || event.wait_on_stream <= -1) continue;
    const QueueKey queue(event.pid, 0, event.wait_on_stream);
    const auto [known, added] = queue_of_record.emplace(event.wait_on_record, queue);
    if (!added && known->second != queue) gives_up_ = true;
  }
  std::map<QueueKey, std::vector<Launch>> launches;
  for (const uint32_t row : launches_) {
    const uint32_t kernel = rows_[row].partner;
    launches[{Event(kernel).pid, 0, rows_[kernel].stream}].push_back({row, rows_[row].ts});
  }
  std::vector<int64_t> seen;
  for (uint32_t i = 0; i < rows_.size(); ++i) {
    if (!rows_[i].is_kept || rows_[i].call != Call::kEventRecord) continue;
    const int64_t correlation = rows_[i].correlation;
    seen.push_back(correlation);
    const auto queue = queue_of_record.find(correlation);
    if (queue == queue_of_record.end()) continue;
    const std::vector<Launch>& before = launches[queue->second];
    const auto after = std::ranges::upper_bound(before, rows_[i].ts, {}, &Launch::ts);
    if (after != before.begin()) launch_of_record_[correlation] = (after - 1)->row;
  }
  std::ranges::sort(seen);
  if (std::ranges::adjacent_find(seen) != seen.end()) gives_up_ = true;
}

void Analysis::FindNextLaunches() {
  if (!saw_call_[static_cast<size_t>(Call::kStreamWaitEvent)] ||
      !saw_call_[static_cast<size_t>(Call::kSyncStreamWait)]) {
    return;
  }
  next_launch_.assign(rows_.size(), kNoRow);
  is_wait_.assign(rows_.size(), 0);
  std::map<QueueKey, std::vector<Launch>> launches;
  for (const uint32_t row : launches_) {
    const int64_t stream = rows_[rows_[row].partner].stream;
    launches[{Event(row).pid, Event(row).tid, stream}].push_back({row, rows_[row].ts});
  }
  bool any = false;
  for (uint32_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    if (!row.is_kept || row.call != Call::kStreamWaitEvent || row.partner == kNoRow) continue;
    const Row& sync = rows_[row.partner];
    if (!sync.is_kept || sync.stream == -1 || sync.partner == kNoRow) continue;
    any = true;
    is_wait_[i] = 1;
    const std::vector<Launch>& after = launches[{Event(i).pid, Event(i).tid, sync.stream}];
    const auto next = std::ranges::upper_bound(after, row.ts, {}, &Launch::ts);
    if (next != after.end()) next_launch_[i] = next->row;
  }
  // pandas fails to concatenate nothing.
  if (!any) gives_up_ = true;
}

Status Analysis::AddGpuToCpu(uint32_t gpu_end, uint32_t row) {
  const uint32_t call = PartnerOrZero(row);
  if (!HasPoints(call)) return Fails("a synchronisation without its call", "AttributeError");
  graph_->Add(gpu_end, End(call), 0, PathEdgeType::kSync);
  return {};
}

Status Analysis::AddSync(uint32_t row, std::map<int64_t, uint32_t>& last) {
  const Row& sync = rows_[row];
  switch (sync.call) {
    case Call::kSyncStreamWait:
    case Call::kSyncEvent: {
      const auto launch = launch_of_record_.find(Event(row).wait_on_record);
      if (launch == launch_of_record_.end()) return {};
      const uint32_t source = rows_[launch->second].partner;
      if (sync.call == Call::kSyncEvent) {
        return HasPoints(source) ? AddGpuToCpu(End(source), row) : Status();
      }
      if (sync.partner == kNoRow || is_wait_.empty() || is_wait_[sync.partner] == 0) {
        return Fails("a stream that waits without cudaStreamWaitEvent",
                     "KeyError or AttributeError");
      }
      const uint32_t next = next_launch_[sync.partner];
      if (next != kNoRow) kernel_sync_.Set(rows_[next].partner, source);
      return {};
    }
    case Call::kSyncStream:
      if (const auto kernel = last.find(sync.stream); kernel != last.end()) {
        return AddGpuToCpu(kernel->second, row);
      }
      return {};
    case Call::kSyncContext:
      for (const int64_t stream : stream_order_) {
        ETUDE_RETURN_IF_ERROR(AddGpuToCpu(last[stream], row));
      }
      return {};
    default: return Fails("a synchronisation of another kind", "AssertionError");
  }
}

Status Analysis::AddKernel(uint32_t row, std::map<int64_t, uint32_t>& last) {
  const Row& kernel = rows_[row];
  graph_->Add(Start(row), End(row), kernel.dur, PathEdgeType::kSpan);
  // The awaited kernel, unless it is outside of the window.
  uint32_t source = kernel_sync_.Find(row);
  if (source != kNoRow && !HasPoints(source)) source = kNoRow;
  if (source != kNoRow) graph_->Add(End(source), Start(row), 0, PathEdgeType::kSync);
  const auto before = last.find(kernel.stream);
  const uint32_t launch = PartnerOrZero(row);
  const double launched = launch != kNoRow ? rows_[launch].ts : 0;
  if (launch != kNoRow && queue_length_[launch] == 1 && queue_length_[row] == 0 &&
      (before == last.end() || TimeOf(before->second) < launched) &&
      (source == kNoRow || rows_[source].end() < launched)) {
    if (!HasPoints(launch)) return Fails("a launch outside of the step", "AssertionError");
    graph_->Add(Start(launch), Start(row), kernel.ts - launched, PathEdgeType::kSpan);
  } else if (before != last.end() &&
             (source == kNoRow || rows_[source].end() < TimeOf(before->second))) {
    graph_->Add(before->second, Start(row), kernel.ts - TimeOf(before->second),
                PathEdgeType::kSpan);
  }
  if (before == last.end()) stream_order_.push_back(kernel.stream);
  last[kernel.stream] = End(row);
  return {};
}

Status Analysis::AddKernels() {
  ETUDE_RETURN_IF_ERROR(FindQueueLengths());
  FindLaunches();
  FindRecordedLaunches();
  if (gives_up_) return {};
  FindNextLaunches();
  if (gives_up_) return {};
  std::vector<uint32_t> rows;
  std::vector<uint64_t> keys;
  for (uint32_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    const bool is_host_sync = row.call == Call::kSyncEvent || row.call == Call::kSyncContext;
    if (!row.in_window || (row.stream == -1 && !is_host_sync)) continue;
    if (row.partner == kNoRow && !row.at_zero) continue;
    rows.push_back(i);
    // Waits count from their end.
    keys.push_back(OrderKey(rows_[i].category == EventCat::kSync ? row.end() : row.ts));
  }
  std::map<int64_t, uint32_t> last;  // by stream: the end of its last kernel
  for (const uint32_t place : StableOrder(keys)) {
    const uint32_t row = rows[place];
    if (rows_[row].category == EventCat::kSync) {
      ETUDE_RETURN_IF_ERROR(AddSync(row, last));
    } else {
      ETUDE_RETURN_IF_ERROR(AddKernel(row, last));
    }
  }
  return {};
}

Result<std::vector<SyncDep>> Analysis::SyncDepsOfPath() {
  if (graph_->empty()) return Fails("nothing", "AssertionError");
  std::vector<SyncDep> deps;
  for (PathEdge& edge : graph_->edges()) {
    if (edge.weight <= -1) edge.weight = 0;
    if (edge.type != PathEdgeType::kSync) continue;
    const int64_t stream = rows_[edge.from / 2].stream;
    if (stream != -1 && stream == rows_[edge.to / 2].stream) return deps;
  }
  const auto path = graph_->LongestPath();
  if (!path) return deps;
  if (path->empty()) return Fails("no path", "AssertionError");
  for (const uint32_t i : *path) {
    const PathEdge& edge = graph_->edges()[i];
    if (edge.type != PathEdgeType::kSync) continue;
    const DeviceEvent& start = Event(edge.from / 2);
    const DeviceEvent& end = Event(edge.to / 2);
    if (!start.has_external || !end.has_external || start.external == end.external) continue;
    deps.push_back({.end = end.external, .start = start.external});
  }
  return deps;
}

}  // namespace

Result<std::vector<SyncDep>> FindCriticalSyncDeps(const DeviceTrace& trace,
                                                  const std::string& name) {
  return Analysis(trace, name).Run();
}

}  // namespace etude::compat
