#include "src/base/machine/process_usage.h"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>

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

std::optional<Nanos> StolenTime() {
  std::FILE* file = std::fopen("/proc/thread-self/schedstat", "r");
  if (file == nullptr) return std::nullopt;
  unsigned long long ran = 0;
  unsigned long long waited = 0;
  const bool found = std::fscanf(file, "%llu %llu", &ran, &waited) == 2;
  std::fclose(file);
  return found ? std::optional(Nanos{static_cast<int64_t>(waited)}) : std::nullopt;
}

Nanos CpuTimeWithChildren() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto nanos = [](const timeval& time) {
    return time.tv_sec * 1'000'000'000 + time.tv_usec * 1000;
  };
  return CpuTime() + Nanos{nanos(usage.ru_utime) + nanos(usage.ru_stime)};
}

namespace {

// Returns field `index`, from 0, of a file of page counts such as /proc/self/statm; nullopt if
// missing.
std::optional<Bytes> PagesIn(const std::string& path, int index) {
  std::FILE* file = std::fopen(path.c_str(), "r");
  if (file == nullptr) return std::nullopt;
  long long pages = 0;
  bool found = true;
  for (int i = 0; found && i <= index; ++i) found = std::fscanf(file, "%lld", &pages) == 1;
  std::fclose(file);
  return found ? std::optional(Bytes{pages * sysconf(_SC_PAGESIZE)}) : std::nullopt;
}

// Returns the value after `key`, such as "VmHWM:", in a file of lines in kB; nullopt if missing.
std::optional<Bytes> KilobytesIn(const char* path, std::string_view key) {
  std::FILE* file = std::fopen(path, "r");
  if (file == nullptr) return std::nullopt;
  char line[256];
  std::optional<Bytes> found;
  while (!found && std::fgets(line, sizeof line, file) != nullptr) {
    long long kilobytes = 0;
    if (std::string_view(line).starts_with(key) &&
        std::sscanf(line + key.size(), "%lld kB", &kilobytes) == 1) {
      found = Bytes{kilobytes * 1024};
    }
  }
  std::fclose(file);
  return found;
}

}  // namespace

std::optional<Bytes> ResidentBytes(pid_t pid) {
  return PagesIn(pid == 0 ? "/proc/self/statm" : "/proc/" + std::to_string(pid) + "/statm", 1);
}

void PeakResident::Begin() {
  std::FILE* file = std::fopen("/proc/self/clear_refs", "w");
  begun_ = file != nullptr && std::fputs("5", file) >= 0;
  if (file != nullptr) begun_ = std::fclose(file) == 0 && begun_;
}

std::optional<Bytes> PeakResident::bytes() const {
  return begun_ ? KilobytesIn("/proc/self/status", "VmHWM:") : std::nullopt;
}

std::optional<Bytes> AvailableMemory() { return KilobytesIn("/proc/meminfo", "MemAvailable:"); }

void LimitMemory(Bytes most) {
  // RLIMIT_DATA bounds this value.
  const Bytes data = PagesIn("/proc/self/statm", 5).value_or(Bytes{});
  const auto limited =
      static_cast<rlim_t>(data.count) + static_cast<rlim_t>(std::max<int64_t>(most.count, 0));
  rlimit limit{};
  if (getrlimit(RLIMIT_DATA, &limit) != 0) return;
  limit.rlim_cur = std::min(limit.rlim_cur, limited);
  setrlimit(RLIMIT_DATA, &limit);
}

}  // namespace etude
