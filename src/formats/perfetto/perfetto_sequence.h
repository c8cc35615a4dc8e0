#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "src/base/text/string_pool.h"

namespace etude::perfetto {

// Converts the times of a clock to those of the trace.
struct Clock {
  int64_t factor = 1;
  bool incremental = false;
  int64_t last = 0;                    // last value of an incremental clock, nanoseconds
  std::map<int64_t, int64_t> offsets;  // by the time from which they apply; empty: unknown
};
using Clocks = std::unordered_map<uint32_t, Clock>;  // by number

// A time in nanoseconds.
struct ClockTime {
  int64_t nanos = 0;
  bool is_known = true;  // false if the clock's relation to the trace's clock is unknown
};

// State that the packets of one writer refer to: texts by number, clocks, defaults. Functions that
// read messages throw protozero::exception for malformed bytes.
class Sequence {
 public:
  using Texts = std::unordered_map<uint64_t, StringId>;

  // Reads TracePacketDefaults, InternedData or ClockSnapshot. `shared`: the clocks of all
  // sequences.
  void ReadDefaults(std::string_view bytes);
  void ReadInterned(std::string_view bytes, StringPool& strings);
  void ReadSnapshot(std::string_view bytes, Clocks& shared);

  // Returns a packet's time by the trace's clock, from the closest earlier snapshot that was read,
  // or else the first one. `clock` is the packet's own clock, if it has one. Returns nullopt if the
  // time is out of range.
  std::optional<ClockTime> TimeOf(uint64_t timestamp, std::optional<uint32_t> clock,
                                  Clocks& shared);

  uint64_t default_track() const { return default_track_; }
  const Texts& categories() const { return categories_; }
  const Texts& names() const { return names_; }
  const Texts& argument_names() const { return argument_names_; }
  const Texts& argument_texts() const { return argument_texts_; }

 private:
  // Simultaneous values of a clock and of the others.
  struct Reading {
    uint32_t id = 0;
    int64_t time = 0;
    int64_t factor = 1;
    bool incremental = false;
  };

  static Reading ReadReading(std::string_view bytes);
  // Returns the clocks to which the clock with this number belongs.
  Clocks& ClocksOf(uint32_t id, Clocks& shared);

  Texts categories_;
  Texts names_;
  Texts argument_names_;
  Texts argument_texts_;
  Clocks clocks_;
  uint64_t default_track_ = 0;
  uint32_t default_clock_ = 0;
};

}  // namespace etude::perfetto
