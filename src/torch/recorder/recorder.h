#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace etude::recorder {

struct Options {
  // Which integer arguments in the CPU's memory are read through for their least and greatest
  // element, which costs what reading them costs, and which of these for their statistics.
  bool integer_ranges = false;
  enum class Statistics { kNone, kIndices, kAllIntegers };
  Statistics statistics = Statistics::kNone;
  // Tensors that have statistics are recorded whole while they are no more bytes in all than that.
  int64_t index_value_bytes = 0;
  bool allocations = false;                      // of the CPU's allocator, see allocations.h
  uint64_t most_file_bytes = uint64_t{8} << 30;  // events beyond are dropped and counted
};

// Records what this process runs into a capture file, from Start to Stop: each operator and label
// with its times, arguments and results, in one pass. One recording at a time. Neither call throws;
// `error` says what went wrong.
//
// Costs per operator are in docs/formats/native_capture.md. Callbacks run on the program's threads;
// they wait for the disk only while more than CaptureWriter::Options::most_waiting_bytes is
// unwritten.
// `header` is a JSON object, see HeaderWithClocks.
bool Start(const std::string& path, std::string_view header, const Options& options,
           std::string& error);
bool Stop(std::string& error);
// The header of a file: the clocks now, and `members` of a JSON object beside them.
std::string HeaderWithClocks(std::string_view members);
// A label as of record_function, without the cost of its way through Python's operators: begins it
// and gives what ends it, nullptr if nothing is recorded. `name` must stay until then. Both on one
// thread.
void* EnterLabel(const char* name);
void LeaveLabel(void* label);
// Takes the time since `begin_ns` of the monotonic clock for the recorder's own: this thread worked
// for it.
void SpentSince(int64_t begin_ns);
// In a forked child: the recording is the parent's. Leaves the parent's file alone.
void CutOffChild();

// For measuring what any callback costs: registers one that does nothing but ask for inputs,
// outputs and ids, or removes it.
void SetEmptyCallback(bool on);

}  // namespace etude::recorder
