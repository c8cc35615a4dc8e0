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

// Role of a Kineto event in chakra_trace_link.
enum class EventRole : uint8_t { kCpu, kLaunch, kGpu, kOther };

// Event categories that the critical path analysis uses.
enum class EventCat : uint8_t { kNone, kCpuOp, kRuntime, kDriver, kSync, kTrace, kOther };

// An event of a Kineto trace. Texts are pieces of JSON, with quotes for strings; empty for missing
// keys.
struct DeviceEvent {
  std::string_view name;
  std::string_view cat;
  std::string_view ph;
  std::string_view stream;
  std::string_view pg_name;
  std::string_view pid;
  PyNumber ts;            // microseconds; 0 if missing
  PyNumber dur;           // microseconds; 0 if missing
  uint32_t tid = 0;       // index in DeviceTrace::tids
  uint32_t external = 0;  // index in DeviceTrace::external_ids
  int64_t rf_id = 0;
  int64_t correlation = -1;  // -1 if missing
  int64_t wait_on_stream = -1;
  int64_t wait_on_record = -1;  // correlation of the awaited cudaEventRecord
  EventRole role = EventRole::kOther;
  EventCat category = EventCat::kNone;
  bool has_rf_id = false;
  bool has_external = false;  // otherwise `external` is the index of id -1
  bool has_ts = false;
  bool has_dur = false;
  bool is_nccl = false;           // its name contains "nccl", in any case
  bool is_coalesced = false;      // its name is nccl:coalesced
  bool is_profiler_step = false;  // its name contains "ProfilerStep"
};

// A Kineto trace in file order. Views point into its text.
struct DeviceTrace {
  std::vector<DeviceEvent> events;
  std::vector<uint32_t> order;         // events by time, stable
  std::vector<int64_t> external_ids;   // by number
  std::vector<std::string_view> tids;  // JSON text of each thread's tid
  uint32_t tid_zero = kNoRow;          // index of tid 0
};

Result<DeviceTrace> ReadDeviceTrace(std::string_view text, const std::string& name,
                                    const Limits& limits);

// Returns whether the linked trace includes the process group of this device operation.
bool HasPgName(const DeviceEvent& op);

}  // namespace etude::compat
