#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/units.h"
#include "src/trace/trace.h"

namespace etude {

// Key figures of a trace. Views point into the trace.
struct Summary {
  struct Op {
    std::string_view name;
    uint64_t count = 0;
    std::optional<Nanos> total;  // sum of known durations; nullopt if none is known
  };
  struct Collective {
    std::string_view type;   // Name(CollectiveType), or "send", "recv"
    std::string_view group;  // "" if not recorded
    uint64_t count = 0;
    std::optional<Bytes> bytes;  // sum of the known sizes; nullopt if none is known
    std::optional<Nanos> time;   // sum of the known durations; nullopt if none is known
  };

  uint64_t nodes = 0;
  std::array<uint64_t, kNodeKindCount> by_kind{};
  uint64_t dependencies = 0;         // excluding parents
  uint64_t timed = 0;                // nodes with a known duration
  std::optional<Nanos> span;         // last end minus first start
  std::optional<Nanos> device_busy;  // union of device nodes' times, over all streams
  std::optional<Nanos> device_comm;  // the part that is communication
  uint64_t threads = 0;              // lanes with work
  uint64_t streams = 0;
  uint64_t tensors = 0;                 // distinct uses
  std::vector<Op> operators;            // topmost operators by total time, then count, then name
  std::vector<Op> device_ops;           // in the same order
  std::vector<Collective> collectives;  // by type and group
  std::vector<std::string_view>
      steps;  // names of the host's step marks, else of the device's, in order
  uint64_t memory_bytes = 0;
};

// Summarises `trace`. Topmost operators are those without an operator above them. O(nodes log
// nodes).
Summary Summarise(const Trace& trace);

}  // namespace etude
