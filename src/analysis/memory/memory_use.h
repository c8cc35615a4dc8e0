#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/base/units.h"
#include "src/trace/trace.h"

namespace etude {

// Memory of one device over time. Views point into the trace.
struct DeviceMemory {
  // Memory in use from `node` on.
  struct Point {
    NodeId node;
    std::optional<Nanos> time;  // when the node began
    Bytes live;
  };
  // What is live at the peak, by what made it.
  struct Holder {
    std::string_view op;      // kOutsideMemory: it was there before
    std::string_view module;  // kNoModule if unknown
    uint64_t count = 0;
    Bytes bytes;
  };

  std::string device;  // "cpu", "cuda:0"
  Bytes peak;
  Point at_peak;                  // where it is first reached
  std::optional<Bytes> at_start;  // there before the first node; nullopt: unknown, and not counted
  Bytes at_end;                   // still in use after the last node
  // Whether it is said what is in use. Otherwise figures are the least that can have been, by what
  // was given out and taken back. Only an allocator's events may not say it.
  bool has_totals = true;
  std::optional<Bytes> reserved;  // the most that the allocator had taken; allocator's events only
  uint64_t allocations = 0;       // pieces of memory made, those from before not counted
  std::vector<Point> timeline;    // a point per change
  std::vector<Holder> holders;    // most bytes first
};

inline constexpr std::string_view kOutsideMemory = "(outside the step)";

// Memory of the tensors of one recorded step (RecordedStep), by the storages in which they lie. A
// lower bound: a piece of memory counts from the operator that made it, or from the beginning if it
// was there before, to the last operator that is seen to use it; gradients, and what was there
// before and was changed (parameters, an optimizer's state), to the end; its size is
// what the tensors seen in it need. What operators need inside, what an allocator rounds up or
// keeps, and tensors that no operator takes or gives, are not in a trace. By device name.
// kBadInput if there are no operators with tensors.
Result<std::vector<DeviceMemory>> TensorMemory(const Trace& trace);

// What generated traces say of their nodes (etude generate --memory), in the order of the file;
// nothing says what holds it. Empty if the trace says nothing.
std::vector<DeviceMemory> StatedMemory(const Trace& trace);

// The same as PyTorch's allocators reported it to the profiler (profile_memory=True): exact for
// what they gave out. Empty if the trace has no such events. What was allocated before the first
// event and is not freed is one holder. Of the CPU it is unknown, and in no figure: PyTorch counts
// what it gives out there only while a profiler runs. It is also unknown of allocators that do not
// say how much is in use (PyTorch 1.9).
std::vector<DeviceMemory> AllocatorMemory(const Trace& trace);

}  // namespace etude
