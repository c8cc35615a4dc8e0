#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "src/base/limits.h"
#include "src/base/result.h"

namespace etude::perfetto {

// Tag of a packet: field 1, with a length.
inline constexpr char kPacketTag = 0x0A;

// Divides the bytes of a trace into packets.
class PacketCutter {
 public:
  using Take = std::function<Status(std::string_view packet)>;

  // `name` is the name of the file, for messages.
  PacketCutter(std::string name, const Limits& limits)
      : name_(std::move(name)), element_bytes_(limits.element_bytes) {}

  // Passes complete packets to `take`. Returns kBadInput for bytes that are not a packet and for a
  // packet that exceeds the limit. An error of `take` ends the call.
  Status Push(std::string_view chunk, const Take& take);

  // Returns whether the bytes so far end with a packet.
  bool is_whole() const { return pending_.empty(); }
  // Returns the place of the current or next packet, for messages.
  std::string Where() const;

 private:
  // Takes complete packets from `bytes`, and leaves it at the first incomplete one.
  Status TakeWhole(std::string_view& bytes, const Take& take);

  std::string name_;
  size_t element_bytes_;
  std::string pending_;  // bytes of an incomplete packet
  size_t wanted_ = 0;    // minimum size of the complete packet in pending_
  uint64_t offset_ = 0;  // of the next packet
};

// Decompresses (zlib) the compressed packets of a trace.
class PacketInflater {
 public:
  using Take = std::function<Status(std::string_view chunk)>;

  explicit PacketInflater(const Limits& limits) : limits_(limits) {}

  // Decompresses `bytes`, which are at `where` in the file, and passes the result to `take` in
  // chunks. Returns kBadInput if all data decompressed so far exceed a limit. An error of `take`
  // ends the call. The result describes damaged or truncated data, and is "" otherwise.
  Result<std::string> Inflate(std::string_view bytes, std::string_view where, const Take& take);

 private:
  Status CheckLimits(std::string_view where) const;

  const Limits& limits_;
  uint64_t bytes_in_ = 0;
  uint64_t bytes_out_ = 0;
};

}  // namespace etude::perfetto
