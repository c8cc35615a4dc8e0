#include "src/compat/chakra_link/device_trace.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "src/base/text/utf8.h"
#include "src/compat/chakra/chakra_fails.h"
#include "src/compat/chakra/json_scanner.h"
#include "src/compat/chakra/node_text.h"
#include "src/compat/chakra_link/stable_order.h"

namespace etude::compat {
namespace {

constexpr auto kLaunches = std::to_array<std::string_view>({
    "cuLaunchKernel",
    "cuLaunchKernelEx",
    "cudaLaunchKernel",
    "cudaLaunchKernelExC",
    "cudaMemcpy",
    "cudaMemcpyAsync",
    "cudaMemcpyFromSymbol",
    "cudaMemcpyToSymbol",
    "cudaLaunchCooperativeKernel",
    "hipLaunchKernel",
    "hipExtLaunchKernel",
    "hipExtModuleLaunchKernel",
    "hipModuleLaunchKernel",
    "hipMemcpyWithStream",
    "hipMemcpyAsync",
});

bool ContainsNccl(std::string_view text) {
  for (size_t at = 0; at + 4 <= text.size(); ++at) {
    const auto is = [&](size_t i, char c) { return (text[at + i] | 0x20) == c; };
    if (is(0, 'n') && is(1, 'c') && is(2, 'c') && is(3, 'l')) return true;
  }
  return false;
}

class DeviceReader {
 public:
  DeviceReader(std::string_view text, const std::string& name, const Limits& limits)
      : scanner_(text, name, limits.depth), text_size_(text.size()), name_(name), limits_(limits) {}

  Result<DeviceTrace> Run() {
    // Unused address space is free; events are rarely shorter than this.
    constexpr size_t kShortEvent = 96;
    trace_.events.reserve(text_size_ / kShortEvent);
    ExternalNumber(-1);  // id of events without one
    bool found = false;
    bool first = true;
    std::string_view key;
    if (!scanner_.EnterObject()) {
      return BadInput(name_ + ": found no JSON object, expected a Kineto trace");
    }
    while (scanner_.NextMember(first, key)) {
      if (key != "\"traceEvents\"" || !scanner_.EnterArray()) {
        scanner_.Value();
        continue;
      }
      found = true;
      trace_.events.clear();
      ReadEvents();
    }
    scanner_.ExpectEnd();
    ETUDE_RETURN_IF_ERROR(scanner_.status());
    if (!found) return ChakraFails(name_, "no traceEvents", "KeyError");
    Sort();
    return std::move(trace_);
  }

 private:
  void ReadEvents() {
    bool first = true;
    while (scanner_.NextElement(first)) {
      if (!scanner_.EnterObject()) {
        scanner_.Fail("found an event that is no object");
        return;
      }
      if (trace_.events.size() >= limits_.nodes) scanner_.Fail("found more events than 'nodes'");
      ReadEvent(trace_.events.emplace_back());
    }
  }

  void ReadEvent(DeviceEvent& event) {
    std::string_view tid = "0";
    bool first = true;
    std::string_view key;
    std::string_view id;
    while (scanner_.NextMember(first, key)) {
      const std::string_view inside = Inside(key);
      if (inside == "args") {
        ReadArgs(event);
        continue;
      }
      const std::string_view value = scanner_.Value();
      if (inside == "ph") {
        event.ph = value;
      } else if (inside == "cat") {
        event.cat = value;
      } else if (inside == "name") {
        event.name = value;
      } else if (inside == "pid") {
        event.pid = value;
      } else if (inside == "tid") {
        tid = value;
      } else if (inside == "ts") {
        event.ts = Time(value);
        event.has_ts = true;
      } else if (inside == "dur") {
        event.dur = Time(value);
        event.has_dur = true;
      } else if (inside == "id") {
        id = value;
      }
    }
    if (scanner_.failed()) return;
    if ((!event.name.empty() && !IsString(event.name)) ||
        (!event.cat.empty() && !IsString(event.cat))) {
      scanner_.Fail("found a name or category that is no string");
      return;
    }
    event.tid = ThreadNumber(tid);
    Classify(event, id);
  }

  void ReadArgs(DeviceEvent& event) {
    if (!scanner_.EnterObject()) {
      scanner_.Fail("found args that are no object; Chakra 1.0.0 fails here too");
      return;
    }
    bool first = true;
    std::string_view key;
    while (scanner_.NextMember(first, key)) {
      const std::string_view inside = Inside(key);
      const std::string_view value = scanner_.Value();
      if (inside == "External id") {
        event.external = ExternalNumber(Whole(value));
        event.has_external = true;
      } else if (inside == "Record function id") {
        event.has_rf_id = !IsNull(value);
        event.rf_id = event.has_rf_id ? Whole(value) : 0;
      } else if (inside == "correlation") {
        event.correlation = Whole(value);
      } else if (inside == "stream") {
        event.stream = value;
      } else if (inside == "Process Group Name") {
        event.pg_name = IsNull(value) ? std::string_view() : value;
      } else if (inside == "wait_on_stream") {
        event.wait_on_stream = TextInt(value).value_or(-1);
      } else if (inside == "wait_on_cuda_event_record_corr_id") {
        event.wait_on_record = TextInt(value).value_or(-1);
      }
    }
  }

  PyNumber Time(std::string_view value) {
    const auto number = ParsePyNumber(value);
    if (!number) scanner_.Fail("found a ts or dur that is no number of 64 bits");
    return number.value_or(PyNumber());
  }

  // Returns an id as an integer; floats and digits in strings are converted like int().
  int64_t Whole(std::string_view value) {
    if (const auto whole = TextInt(value)) return *whole;
    if (IsString(value)) {
      if (const auto whole = TextInt(Inside(value))) return *whole;
    } else if (const auto number = ParsePyNumber(value)) {
      if (const auto whole = WholeOf(*number)) return *whole;
    }
    scanner_.Fail("found an id that is no whole number of 64 bits");
    return 0;
  }

  uint32_t ExternalNumber(int64_t id) {
    const auto fresh = static_cast<uint32_t>(trace_.external_ids.size());
    const uint32_t number = external_numbers_.Insert(static_cast<uint64_t>(id), fresh);
    if (number == fresh) trace_.external_ids.push_back(id);
    return number;
  }

  uint32_t ThreadNumber(std::string_view tid) {
    if (!trace_.tids.empty() && tid == trace_.tids[last_thread_]) return last_thread_;
    const auto fresh = static_cast<uint32_t>(trace_.tids.size());
    const auto [found, added] = threads_.emplace(tid, fresh);
    if (added) {
      trace_.tids.push_back(tid);
      if (tid == "0" || tid == "-0") trace_.tid_zero = found->second;
    }
    last_thread_ = found->second;
    return found->second;
  }

  void Classify(DeviceEvent& event, std::string_view id) {
    const std::string_view cat = Inside(event.cat);
    const std::string_view name = Inside(event.name);
    if (cat.empty()) return;
    event.category = EventCat::kOther;
    if (cat == "cpu_op" || cat == "user_annotation") {
      if (cat == "cpu_op") event.category = EventCat::kCpuOp;
      event.is_profiler_step = Contains(name, "ProfilerStep");
      if (!event.is_profiler_step) event.role = EventRole::kCpu;
      event.is_coalesced = name == "nccl:coalesced";
    } else if (cat == "cuda_runtime" || cat == "cuda_driver") {
      event.category = cat == "cuda_runtime" ? EventCat::kRuntime : EventCat::kDriver;
      if (std::ranges::count(kLaunches, name) != 0) event.role = EventRole::kLaunch;
    } else if (cat == "kernel" || cat == "gpu_memcpy") {
      event.role = EventRole::kGpu;
      event.is_nccl = ContainsNccl(name);
    } else if (cat == "cuda_sync") {
      event.category = EventCat::kSync;
    } else if (cat == "Trace") {
      event.category = EventCat::kTrace;
    } else if (cat == "ac2g") {
      if (event.ph != "\"s\"" && event.ph != "\"f\"") {
        scanner_.Fail("found an arrow that neither starts nor ends; Chakra 1.0.0 fails here too");
      } else if (id.empty() || IsNull(id)) {
        scanner_.Fail("found an arrow without id; Chakra 1.0.0 fails here too (KeyError)");
      }
    }
    if (event.role == EventRole::kOther && !event.is_profiler_step) {
      event.is_profiler_step = Contains(name, "ProfilerStep");
    }
  }

  void Sort() {
    const std::vector<DeviceEvent>& events = trace_.events;
    const bool all_float =
        std::ranges::all_of(events, [](const DeviceEvent& event) { return event.ts.is_float; });
    const bool all_whole =
        std::ranges::none_of(events, [](const DeviceEvent& event) { return event.ts.is_float; });
    std::vector<uint64_t> keys;
    keys.reserve(events.size());
    if (all_whole) {
      for (const DeviceEvent& event : events) keys.push_back(OrderKey(event.ts.whole));
    } else {
      for (const DeviceEvent& event : events) keys.push_back(OrderKey(event.ts.AsDouble()));
    }
    trace_.order = StableOrder(keys);
    if (all_whole || all_float) return;
    std::ranges::stable_sort(trace_.order,
                             [&](uint32_t a, uint32_t b) { return events[a].ts < events[b].ts; });
  }

  JsonScanner scanner_;
  size_t text_size_;
  const std::string& name_;
  const Limits& limits_;
  DeviceTrace trace_;
  std::unordered_map<std::string_view, uint32_t> threads_;
  uint32_t last_thread_ = 0;
  FlatMap external_numbers_;  // of external ids
};

}  // namespace

bool HasPgName(const DeviceEvent& op) {
  return !op.pg_name.empty() && Contains(op.name, "ncclDevKernel");
}

Result<DeviceTrace> ReadDeviceTrace(std::string_view text, const std::string& name,
                                    const Limits& limits) {
  if (!utf8::IsValid(text)) {
    return ChakraFails(name, "bytes that are not UTF-8", "UnicodeDecodeError");
  }
  return DeviceReader(text, name, limits).Run();
}

}  // namespace etude::compat
