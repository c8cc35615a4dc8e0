#include "src/base/machine/hardware_counters.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace etude {
namespace {

int Open(const CounterEvent& event, pid_t pid, bool on_exec) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = event.type;
  attributes.config = event.number;
  attributes.disabled = on_exec ? 1 : 0;
  attributes.enable_on_exec = on_exec ? 1 : 0;
  attributes.inherit = 1;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  return static_cast<int>(
      syscall(SYS_perf_event_open, &attributes, pid, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

// Returns the value of /proc/sys/kernel/perf_event_paranoid; nullopt if the file is missing.
std::optional<int> ParanoidLevel() {
  std::FILE* file = std::fopen("/proc/sys/kernel/perf_event_paranoid", "r");
  if (file == nullptr) return std::nullopt;
  int level = 0;
  const bool found = std::fscanf(file, "%d", &level) == 1;
  std::fclose(file);
  return found ? std::optional(level) : std::nullopt;
}

}  // namespace

const CounterEvents& HardwareEvents() {
  static constexpr CounterEvents kEvents = {{
      {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
      {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
      {"cache_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
      {"branch_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
  }};
  return kEvents;
}

CounterSet CounterSet::Attach(pid_t pid, const CounterEvents& events) {
  return OpenAll(pid, /*on_exec=*/true, events);
}

CounterSet CounterSet::OfThisThread(const CounterEvents& events) {
  return OpenAll(0, /*on_exec=*/false, events);
}

CounterSet CounterSet::OpenAll(pid_t pid, bool on_exec, const CounterEvents& events) {
  CounterSet set;
  for (size_t i = 0; i < kCounterCount; ++i) {
    set.descriptors_[i] = Open(events[i], pid, on_exec);
    if (set.descriptors_[i] < 0 && set.refused_ == 0) set.refused_ = errno;
  }
  return set;
}

CounterSet& CounterSet::operator=(CounterSet&& other) noexcept {
  std::swap(descriptors_, other.descriptors_);
  std::swap(refused_, other.refused_);
  return *this;
}

CounterSet::~CounterSet() {
  for (const int descriptor : descriptors_) {
    if (descriptor >= 0) close(descriptor);
  }
}

CounterSet::Reading CounterSet::Read() const {
  Reading reading;
  for (size_t i = 0; i < kCounterCount; ++i) {
    if (descriptors_[i] < 0) continue;
    std::array<uint64_t, 3> words{};
    if (read(descriptors_[i], words.data(), sizeof words) != sizeof words) continue;
    reading.values[i] = {.count = words[0], .enabled_ns = words[1], .running_ns = words[2]};
  }
  return reading;
}

CounterSet::Counts CounterSet::Between(const Reading& before, const Reading& after) {
  Counts counts;
  for (size_t i = 0; i < kCounterCount; ++i) {
    const auto &from = before.values[i], &to = after.values[i];
    if (!from || !to || to->running_ns <= from->running_ns || to->count < from->count) continue;
    const auto enabled = static_cast<double>(to->enabled_ns - from->enabled_ns);
    const auto running = static_cast<double>(to->running_ns - from->running_ns);
    counts[i] = static_cast<double>(to->count - from->count) * std::max(1.0, enabled / running);
  }
  return counts;
}

std::string CounterSet::why_none() const {
  if (std::ranges::any_of(descriptors_, [](int descriptor) { return descriptor >= 0; })) return "";
  switch (refused_) {
    case 0: return "not requested";
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP: return "this processor or virtual machine has no such counters";
    case ENOSYS: return "this kernel does not support performance events";
    case EACCES:
    case EPERM: {
      const auto level = ParanoidLevel();
      return "the system forbids access to counters" +
             (level ? " (kernel.perf_event_paranoid is " + std::to_string(*level) + ")" : "");
    }
    default: return std::strerror(refused_);
  }
}

}  // namespace etude
