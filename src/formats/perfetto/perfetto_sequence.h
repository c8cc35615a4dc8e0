#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "src/base/text/string_pool.h"

namespace etude::perfetto {

// How the times of a clock become the trace's.
struct Clock {
  int64_t factor = 1;
  bool incremental = false;
  int64_t last = 0;                    // of an incremental clock: where it stands, nanoseconds
  std::map<int64_t, int64_t> offsets;  // what to add from a time of the clock on; empty: not known
};
using Clocks = std::unordered_map<uint32_t, Clock>;  // by number

// A time, nanoseconds.
struct ClockTime {
  int64_t nanos = 0;
  bool is_known = true;  // false: nothing says how its clock stands to the trace's
};

// What the packets of one writer refer to: texts by number, clocks, defaults. Functions that read
// messages throw protozero::exception for bytes that are none.
class Sequence {
 public:
  using Texts = std::unordered_map<uint64_t, StringId>;

  // TracePacketDefaults, InternedData, ClockSnapshot. `shared`: the clocks of all sequences.
  void ReadDefaults(std::string_view bytes);
  void ReadInterned(std::string_view bytes, StringPool& strings);
  void ReadSnapshot(std::string_view bytes, Clocks& shared);

  // A packet's time by the trace's clock: by the closest earlier snapshot that was read, else the
  // first one. `clock` is its own, where it has one. nullopt if it is out of range.
  std::optional<ClockTime> TimeOf(uint64_t timestamp, std::optional<uint32_t> clock,
                                  Clocks& shared);

  uint64_t default_track() const { return default_track_; }
  const Texts& categories() const { return categories_; }
  const Texts& names() const { return names_; }
  const Texts& argument_names() const { return argument_names_; }
  const Texts& argument_texts() const { return argument_texts_; }

 private:
  // What a clock showed when the others did.
  struct Reading {
    uint32_t id = 0;
    int64_t time = 0;
    int64_t factor = 1;
    bool incremental = false;
  };

  static Reading ReadReading(std::string_view bytes);
  // The clocks among which that of a number is.
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
