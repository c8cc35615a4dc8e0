#include "src/base/process_usage.h"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
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

Nanos CpuTime() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return Nanos{now.tv_sec * 1'000'000'000 + now.tv_nsec};
}

Nanos CpuTimeWithChildren() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto nanos = [](const timeval& time) {
    return time.tv_sec * 1'000'000'000 + time.tv_usec * 1000;
  };
  return CpuTime() + Nanos{nanos(usage.ru_utime) + nanos(usage.ru_stime)};
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

std::optional<Bytes> AvailableMemory() {
  std::FILE* file = std::fopen("/proc/meminfo", "r");
  if (file == nullptr) return std::nullopt;
  char line[256];
  long long kilobytes = -1;
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (std::sscanf(line, "MemAvailable: %lld kB", &kilobytes) == 1) break;
  }
  std::fclose(file);
  return kilobytes < 0 ? std::nullopt : std::optional(Bytes{kilobytes * 1024});
}

namespace {

// Bytes of this process's data: what RLIMIT_DATA bounds. 0 if the system does not say.
int64_t DataBytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  long long pages = 0;
  const int got = std::fscanf(file, "%*d %*d %*d %*d %*d %lld", &pages);
  std::fclose(file);
  return got == 1 ? int64_t{pages} * sysconf(_SC_PAGESIZE) : 0;
}

}  // namespace

void LimitMemory(Bytes most) {
  const auto limited =
      static_cast<rlim_t>(DataBytes()) + static_cast<rlim_t>(std::max<int64_t>(most.count, 0));
  rlimit limit{};
  if (getrlimit(RLIMIT_DATA, &limit) != 0) return;
  limit.rlim_cur = std::min(limit.rlim_cur, limited);
  setrlimit(RLIMIT_DATA, &limit);
}

}  // namespace etude
