#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "src/base/string_pool.h"

namespace etude::perfetto {

// What the packets of one writer refer to: texts by number, clocks, defaults. Functions that read
// messages throw protozero::exception for bytes that are none.
class Sequence {
 public:
  using Texts = std::unordered_map<uint64_t, StringId>;

  // TracePacketDefaults, InternedData, ClockSnapshot.
  void ReadDefaults(std::string_view bytes);
  void ReadInterned(std::string_view bytes, StringPool& strings);
  void ReadSnapshot(std::string_view bytes);

  // A packet's time by the trace's clock, nanoseconds. `clock` is its own, where it has one.
  // nullopt if it is out of range.
  std::optional<int64_t> TimeOf(uint64_t timestamp, std::optional<uint32_t> clock);

  uint64_t default_track() const { return default_track_; }
  const Texts& categories() const { return categories_; }
  const Texts& names() const { return names_; }
  const Texts& argument_names() const { return argument_names_; }
  const Texts& argument_texts() const { return argument_texts_; }

 private:
  // How the times of a clock become the trace's.
  struct Clock {
    int64_t factor = 1;
    bool incremental = false;
    int64_t last = 0;  // of an incremental clock: where it stands, nanoseconds
    int64_t offset = 0;
  };
  // What a clock showed when the others did.
  struct Reading {
    uint32_t id = 0;
    int64_t time = 0;
    int64_t factor = 1;
    bool incremental = false;
  };

  static Reading ReadReading(std::string_view bytes);

  Texts categories_;
  Texts names_;
  Texts argument_names_;
  Texts argument_texts_;
  std::unordered_map<uint32_t, Clock> clocks_;
  uint64_t default_track_ = 0;
  uint32_t default_clock_ = 0;
};

}  // namespace etude::perfetto
