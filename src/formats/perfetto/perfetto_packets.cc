#include "src/formats/perfetto/perfetto_packets.h"

#include <zlib.h>

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "src/base/text/format_count.h"

namespace etude::perfetto {
namespace {

constexpr size_t kMaxPacketLengthBytes = 10;
constexpr size_t kInflateBytes = size_t{64} << 10;

// Owns the state of zlib.
class Inflater {
 public:
  Inflater() { ready_ = inflateInit(&stream_) == Z_OK; }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  bool ready() const { return ready_; }
  z_stream& stream() { return stream_; }

 private:
  z_stream stream_{};
  bool ready_ = false;
};

}  // namespace

std::string PacketCutter::Where() const { return fmt::format("{}:byte {}", name_, offset_); }

Status PacketCutter::Push(std::string_view chunk, const Take& take) {
  while (!pending_.empty() && !chunk.empty()) {
    const size_t missing = std::min(wanted_ - pending_.size(), chunk.size());
    pending_.append(chunk.substr(0, missing));
    chunk.remove_prefix(missing);
    if (pending_.size() < wanted_) return {};
    std::string_view bytes = pending_;
    ETUDE_RETURN_IF_ERROR(TakeWhole(bytes, take));
    if (bytes.empty()) pending_.clear();
  }
  if (chunk.empty()) return {};
  ETUDE_RETURN_IF_ERROR(TakeWhole(chunk, take));
  pending_.assign(chunk);
  return {};
}

Status PacketCutter::TakeWhole(std::string_view& bytes, const Take& take) {
  while (!bytes.empty()) {
    if (bytes.front() != kPacketTag) {
      return BadInput(Where() + ": found bytes that are not a packet, expected a Perfetto trace");
    }
    uint64_t length = 0;
    size_t at = 1;
    for (unsigned shift = 0;; shift += 7) {
      if (at == bytes.size()) {
        wanted_ = at + 1;
        return {};
      }
      const auto byte = static_cast<unsigned char>(bytes[at++]);
      if (shift < 64) length |= uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) break;
      if (at > kMaxPacketLengthBytes) {
        return BadInput(Where() + ": found a length of more than ten bytes");
      }
    }
    if (length > element_bytes_) {
      return BadInput(
          fmt::format("{}: found a packet of {} bytes, expected at most {} (limit 'element_bytes')",
                      Where(), length, element_bytes_));
    }
    wanted_ = at + static_cast<size_t>(length);
    if (bytes.size() < wanted_) return {};
    ETUDE_RETURN_IF_ERROR(take(bytes.substr(at, static_cast<size_t>(length))));
    bytes.remove_prefix(wanted_);
    offset_ += wanted_;
  }
  return {};
}

Status PacketInflater::CheckLimits(std::string_view where) const {
  if (bytes_out_ > limits_.total_bytes) {
    return BadInput(
        fmt::format("{}: compressed packets of more than {} bytes (limit 'total_bytes')", where,
                    limits_.total_bytes));
  }
  if (bytes_out_ > limits_.ratio_grace_bytes && bytes_out_ / bytes_in_ > limits_.ratio) {
    return BadInput(fmt::format(
        "{}: compressed packets expand more than {} times (limit 'ratio'): a compression bomb?",
        where, limits_.ratio));
  }
  return {};
}

Result<std::string> PacketInflater::Inflate(std::string_view bytes, std::string_view where,
                                            const Take& take) {
  Inflater inflater;
  if (!inflater.ready()) return std::string("zlib is out of memory");
  z_stream& stream = inflater.stream();
  std::vector<char> out(kInflateBytes);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  size_t left = bytes.size();  // bytes that zlib has not received yet; it counts in 32 bits
  for (int status = Z_OK; status != Z_STREAM_END;) {
    if (stream.avail_in == 0) {
      stream.avail_in = static_cast<uInt>(std::min<size_t>(left, UINT32_MAX));
      left -= stream.avail_in;
    }
    const uInt offered = stream.avail_in;
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    status = inflate(&stream, Z_NO_FLUSH);
    if (status == Z_BUF_ERROR) return std::string("the compressed packets end early");
    if (status != Z_OK && status != Z_STREAM_END) {
      return fmt::format("compressed packets: {}",
                         stream.msg != nullptr ? stream.msg : "not zlib data");
    }
    const size_t produced = out.size() - stream.avail_out;
    bytes_in_ += offered - stream.avail_in;
    bytes_out_ += produced;
    ETUDE_RETURN_IF_ERROR(CheckLimits(where));
    ETUDE_RETURN_IF_ERROR(take({out.data(), produced}));
  }
  if (stream.avail_in + left == 0) return std::string();
  return FormatCount(stream.avail_in + left, "byte follows", "bytes follow") +
         " the compressed packets";
}

}  // namespace etude::perfetto
