#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace etude {

// Event counted by the kernel; type and number as in linux/perf_event.h.
struct CounterEvent {
  std::string_view name;
  uint32_t type = 0;
  uint64_t number = 0;
};

inline constexpr size_t kCounterCount = 4;
using CounterEvents = std::array<CounterEvent, kCounterCount>;

// Returns instructions, cycles, cache misses and branch misses, in this order.
const CounterEvents& HardwareEvents();

// Counts user-mode events of a process and of its later descendants. Needs no privileges: a counter
// that the kernel, the processor or a virtual machine refuses is absent, with a reason. Owns file
// descriptors.
class CounterSet {
 public:
  CounterSet() = default;
  // Attaches to the child `pid`, which is about to call exec: counting begins at the exec.
  static CounterSet Attach(pid_t pid, const CounterEvents& events = HardwareEvents());

  // Attaches to the calling thread and to threads and processes that it starts later; counting
  // begins at once.
  static CounterSet OfThisThread(const CounterEvents& events = HardwareEvents());

  CounterSet(CounterSet&& other) noexcept { *this = std::move(other); }
  CounterSet& operator=(CounterSet&& other) noexcept;
  ~CounterSet();

  // Reads all counters; absent counters stay absent.
  struct Reading {
    struct Value {
      uint64_t count = 0;
      uint64_t enabled_ns = 0;
      uint64_t running_ns = 0;  // less if counters shared the processor's registers
    };
    std::array<std::optional<Value>, kCounterCount> values;
  };
  Reading Read() const;

  // Events between two readings, scaled up if a counter did not run all the time; nullopt for a
  // counter that is absent or never ran.
  using Counts = std::array<std::optional<double>, kCounterCount>;
  static Counts Between(const Reading& before, const Reading& after);

  // Returns the reason why all counters are absent; "" if there is one.
  std::string why_none() const;

 private:
  static CounterSet OpenAll(pid_t pid, bool on_exec, const CounterEvents& events);

  std::array<int, kCounterCount> descriptors_ = {-1, -1, -1, -1};
  int refused_ = 0;  // errno of the first refused counter
};

}  // namespace etude
