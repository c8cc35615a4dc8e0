#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "src/base/units.h"

namespace etude {

// What the system counts for this process, all threads together, since it began.
struct ProcessCounts {
  int64_t minor_faults = 0;          // pages that were given without reading a disk
  int64_t voluntary_switches = 0;    // a thread waited
  int64_t involuntary_switches = 0;  // a thread had to give way

  static ProcessCounts Now();
  friend ProcessCounts operator-(const ProcessCounts& a, const ProcessCounts& b) {
    return {a.minor_faults - b.minor_faults, a.voluntary_switches - b.voluntary_switches,
            a.involuntary_switches - b.involuntary_switches};
  }
};

// For how long this thread could have run while other work had its processor; nullopt where the
// system does not say.
std::optional<Nanos> StolenTime();

// CPU time of this process, all threads together; the same with its children that have ended.
Nanos CpuTime();
Nanos CpuTimeWithChildren();

// Memory that a process has in use (its resident set); nullopt if the system does not say. 0: this
// process.
std::optional<Bytes> ResidentBytes(pid_t pid = 0);

// The most memory this process had in use since the last Begin; nullopt if the system does not
// say or if the kernel keeps the peak of the whole life only.
class PeakResident {
 public:
  void Begin();
  std::optional<Bytes> bytes() const;

 private:
  bool begun_ = false;
};

// Memory the machine can give without swapping; nullopt if the system does not say.
std::optional<Bytes> AvailableMemory();
// Lets allocations of more than `most` from now on fail, instead of having the process killed.
void LimitMemory(Bytes most);

}  // namespace etude
