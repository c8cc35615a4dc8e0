#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/compat/chakra/flat_map.h"
#include "src/compat/python/py_number.h"

namespace etude::compat {

// What chakra_trace_link takes an event of a Kineto trace for.
enum class EventRole : uint8_t { kCpu, kLaunch, kGpu, kOther };

// Categories that mean something to the critical path.
enum class EventCat : uint8_t { kNone, kCpuOp, kRuntime, kDriver, kSync, kTrace, kOther };

// An event of a Kineto trace. Texts are pieces of JSON, strings with their quotes; empty where the
// event has no such key.
struct DeviceEvent {
  std::string_view name;
  std::string_view cat;
  std::string_view ph;
  std::string_view stream;
  std::string_view pg_name;
  std::string_view pid;
  PyNumber ts;            // microseconds; 0 if absent
  PyNumber dur;           // likewise
  uint32_t tid = 0;       // into DeviceTrace's threads
  uint32_t external = 0;  // into DeviceTrace's external ids
  int64_t rf_id = 0;
  int64_t correlation = -1;  // -1 if absent
  int64_t wait_on_stream = -1;
  int64_t wait_on_record = -1;  // correlation of the cudaEventRecord that is waited for
  EventRole role = EventRole::kOther;
  EventCat category = EventCat::kNone;
  bool has_rf_id = false;
  bool has_external = false;  // else its external id is the one of -1
  bool has_ts = false;
  bool has_dur = false;
  bool is_nccl = false;           // "nccl" in its name, in any case
  bool is_coalesced = false;      // is named nccl:coalesced
  bool is_profiler_step = false;  // "ProfilerStep" in its name
};

// A Kineto trace in the order of the file. Views point into the text it was read from.
struct DeviceTrace {
  std::vector<DeviceEvent> events;
  std::vector<uint32_t> order;         // of events by time, equal ones as they stand
  std::vector<int64_t> external_ids;   // by number
  std::vector<std::string_view> tids;  // the JSON text of each thread's tid, by number
  uint32_t tid_zero = kNoRow;          // number of the thread with tid 0
};

Result<DeviceTrace> ReadDeviceTrace(std::string_view text, const std::string& name,
                                    const Limits& limits);

// Whether the linked trace names the process group of this device operation.
bool HasPgName(const DeviceEvent& op);

}  // namespace etude::compat
