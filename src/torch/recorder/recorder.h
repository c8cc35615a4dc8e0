#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace etude::recorder {

struct Options {
  // Integer arguments in CPU memory that are scanned for their minimum and maximum, and those that
  // get full statistics. The cost is that of reading them.
  bool integer_ranges = false;
  enum class Statistics { kNone, kIndices, kAllIntegers };
  Statistics statistics = Statistics::kNone;
  // Total size of tensors with statistics that are recorded completely.
  int64_t index_value_bytes = 0;
  bool allocations = false;                      // of the CPU allocator, see allocations.h
  uint64_t most_file_bytes = uint64_t{8} << 30;  // later events are dropped and counted
};

// Records this process into a capture file, from Start to Stop: each operator and label with its
// times, arguments and results, in one pass. One recording at a time. Neither call throws; failures
// are described in `error`.
//
// Costs per operator are in docs/formats/native_capture.md. Callbacks run on the program's threads;
// they wait for the disk only while more than CaptureWriter::Options::most_waiting_bytes is
// unwritten. `header` is a JSON object, see HeaderWithClocks.
bool Start(const std::string& path, std::string_view header, const Options& options,
           std::string& error);
bool Stop(std::string& error);
// Returns the header of a file: the current clocks and `members`, the members of a JSON object.
std::string HeaderWithClocks(std::string_view members);
// Begins a label as by record_function, without the cost of Python's operators. Returns a handle
// for LeaveLabel; nullptr if nothing is recorded. `name` must live until LeaveLabel, which must be
// called on the same thread.
void* EnterLabel(const char* name);
void LeaveLabel(void* label);
// Counts the time since `begin_ns` (monotonic clock) on this thread as the recorder's own.
void SpentSince(int64_t begin_ns);
// Disables recording in a forked child without touching the parent's file.
void CutOffChild();

// Registers or removes an empty callback that only requests inputs, outputs and ids, for measuring
// the cost of any callback.
void SetEmptyCallback(bool on);

}  // namespace etude::recorder
