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

// One packet's tag: field 1, with a length.
inline constexpr char kPacketTag = 0x0A;

// Cuts the bytes of a trace into its packets.
class PacketCutter {
 public:
  using Take = std::function<Status(std::string_view packet)>;

  // `name` is that of the file, for messages.
  PacketCutter(std::string name, const Limits& limits)
      : name_(std::move(name)), element_bytes_(limits.element_bytes) {}

  // Gives `take` the packets that are whole now. kBadInput for bytes that are no packet and for a
  // packet that exceeds the limit; errors of `take` end it.
  Status Push(std::string_view chunk, const Take& take);

  // Whether the bytes so far end with a packet.
  bool is_whole() const { return pending_.empty(); }
  // The place of the packet that is next or being taken.
  std::string Where() const;

 private:
  // `bytes` is left at the first packet that is not whole.
  Status TakeWhole(std::string_view& bytes, const Take& take);

  std::string name_;
  size_t element_bytes_;
  std::string pending_;  // bytes of a packet that is not whole yet
  size_t wanted_ = 0;    // pending_ cannot be whole with fewer bytes
  uint64_t offset_ = 0;  // of the next packet
};

// Unpacks what stands compressed (zlib) in packets of a trace.
class PacketInflater {
 public:
  using Take = std::function<Status(std::string_view chunk)>;

  explicit PacketInflater(const Limits& limits) : limits_(limits) {}

  // Gives `take` in chunks what `bytes`, which stand at `where`, unpack to. kBadInput if all that
  // was unpacked so far exceeds a limit; errors of `take` end it. The result says what is wrong
  // with data that is damaged or ends early, "" if nothing is.
  Result<std::string> Inflate(std::string_view bytes, std::string_view where, const Take& take);

 private:
  Status CheckLimits(std::string_view where) const;

  const Limits& limits_;
  uint64_t bytes_in_ = 0;
  uint64_t bytes_out_ = 0;
};

}  // namespace etude::perfetto
