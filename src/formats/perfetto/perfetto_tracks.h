#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "src/base/text/string_pool.h"

namespace etude::perfetto {

// The tracks of a trace, from their descriptors.
class Tracks {
 public:
  explicit Tracks(StringPool& strings) : strings_(strings) {}

  // Reads a TrackDescriptor. Throws protozero::exception for malformed bytes.
  void Read(std::string_view bytes);

  // The process and thread of a track: its own, or else those of the tracks above it. For a track
  // without a thread, the thread is the name of the track.
  struct Lane {
    std::string pid;      // "" if unknown
    std::string tid;      // a number or a name
    std::string raw_tid;  // the same as JSON; "" if unknown
  };
  Lane LaneOf(uint64_t track) const;

 private:
  struct Track {
    uint64_t parent = 0;  // 0: none
    StringId name;
    std::optional<int64_t> pid;
    std::optional<int64_t> tid;
  };

  static void ReadProcess(std::string_view bytes, Track& track);
  static void ReadThread(std::string_view bytes, Track& track);

  StringPool& strings_;
  std::unordered_map<uint64_t, Track> tracks_;
};

}  // namespace etude::perfetto
