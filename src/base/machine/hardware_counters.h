#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace etude {

// An event that the kernel counts: type and number as in linux/perf_event.h.
struct CounterEvent {
  std::string_view name;
  uint32_t type = 0;
  uint64_t number = 0;
};

inline constexpr size_t kCounterCount = 4;
using CounterEvents = std::array<CounterEvent, kCounterCount>;

// Instructions, cycles, cache misses, branch misses, in this order.
const CounterEvents& HardwareEvents();

// Counts events of a process and of all that it starts later, in user mode. Needs no rights: what
// the kernel, the processor or a virtual machine refuses is absent, with a reason. Owns
// descriptors.
class CounterSet {
 public:
  CounterSet() = default;
  // Attaches to `pid`, a child that is about to become another program: counting begins with that.
  static CounterSet Attach(pid_t pid, const CounterEvents& events = HardwareEvents());

  CounterSet(CounterSet&& other) noexcept { *this = std::move(other); }
  CounterSet& operator=(CounterSet&& other) noexcept;
  ~CounterSet();

  // Reads all counters; what is absent stays so.
  struct Reading {
    struct Value {
      uint64_t count = 0;
      uint64_t enabled_ns = 0;
      uint64_t running_ns = 0;  // less where counters had to share the processor's
    };
    std::array<std::optional<Value>, kCounterCount> values;
  };
  Reading Read() const;

  // Events between two readings, scaled up where a counter did not run all the time; nullopt where
  // one is absent or never ran.
  using Counts = std::array<std::optional<double>, kCounterCount>;
  static Counts Between(const Reading& before, const Reading& after);

  // Why no counter is there; "" if one is.
  std::string why_none() const;

 private:
  std::array<int, kCounterCount> descriptors_ = {-1, -1, -1, -1};
  int refused_ = 0;  // errno of the first one that was refused
};

}  // namespace etude
