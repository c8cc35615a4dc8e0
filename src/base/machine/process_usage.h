#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "src/base/units.h"

namespace etude {

// System counters of this process, over all threads and since its start.
struct ProcessCounts {
  int64_t minor_faults = 0;          // page faults that read no disk
  int64_t voluntary_switches = 0;    // a thread waited
  int64_t involuntary_switches = 0;  // a thread was preempted

  static ProcessCounts Now();
  friend ProcessCounts operator-(const ProcessCounts& a, const ProcessCounts& b) {
    return {a.minor_faults - b.minor_faults, a.voluntary_switches - b.voluntary_switches,
            a.involuntary_switches - b.involuntary_switches};
  }
};

// Returns how long this thread was runnable while other threads had its processor; nullopt if the
// system does not provide it.
std::optional<Nanos> StolenTime();

// Return the CPU time of this process over all threads, without and with its terminated children.
Nanos CpuTime();
Nanos CpuTimeWithChildren();

// Returns the resident memory of process `pid` (0: this process); nullopt if the system does not
// provide it.
std::optional<Bytes> ResidentBytes(pid_t pid = 0);

// Peak resident memory of this process since the last Begin; nullopt if the system does not provide
// it or cannot reset the peak.
class PeakResident {
 public:
  void Begin();
  std::optional<Bytes> bytes() const;

 private:
  bool begun_ = false;
};

// Returns the memory that is available without swapping; nullopt if the system does not provide it.
std::optional<Bytes> AvailableMemory();
// Makes allocations that exceed `most` more bytes fail, instead of having the process killed.
void LimitMemory(Bytes most);

}  // namespace etude
