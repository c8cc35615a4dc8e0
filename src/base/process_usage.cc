#include "src/base/process_usage.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace etude {

ProcessCounts ProcessCounts::Now() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {.minor_faults = usage.ru_minflt,
          .voluntary_switches = usage.ru_nvcsw,
          .involuntary_switches = usage.ru_nivcsw};
}

std::optional<Bytes> ResidentBytes(pid_t pid) {
  const std::string path =
      pid == 0 ? "/proc/self/statm" : "/proc/" + std::to_string(pid) + "/statm";
  std::FILE* file = std::fopen(path.c_str(), "r");
  if (file == nullptr) return std::nullopt;
  long long pages = 0;
  const bool found = std::fscanf(file, "%*d %lld", &pages) == 1;
  std::fclose(file);
  return found ? std::optional(Bytes{pages * sysconf(_SC_PAGESIZE)}) : std::nullopt;
}

void PeakResident::Begin() {
  std::FILE* file = std::fopen("/proc/self/clear_refs", "w");
  begun_ = file != nullptr && std::fputs("5", file) >= 0;
  if (file != nullptr) begun_ = std::fclose(file) == 0 && begun_;
}

std::optional<Bytes> PeakResident::bytes() const {
  if (!begun_) return std::nullopt;
  std::FILE* file = std::fopen("/proc/self/status", "r");
  if (file == nullptr) return std::nullopt;
  char line[256];
  long long kilobytes = -1;
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (std::sscanf(line, "VmHWM: %lld kB", &kilobytes) == 1) break;
  }
  std::fclose(file);
  return kilobytes < 0 ? std::nullopt : std::optional(Bytes{kilobytes * 1024});
}

}  // namespace etude
