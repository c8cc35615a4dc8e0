#include "src/formats/chakra/chakra_frames.h"

#include <algorithm>

namespace etude::chakra {
namespace {

// A message's length: 32 bits, in at most five bytes.
constexpr size_t kMaxFrameLengthBytes = 5;

}  // namespace

std::string Frames::Where() const {
  const std::string message =
      number_ == 0 ? "GlobalMetadata" : "node message " + std::to_string(number_);
  return name_ + ":byte " + std::to_string(begin_) + " (" + message + ")";
}

std::string Frames::Malformed(std::string_view why) const {
  const bool is_metadata = number_ == 0;
  return Where() + ": found " +
         (is_metadata ? "invalid protobuf message (" : "a malformed message (") + std::string(why) +
         "), expected " + (is_metadata ? "a Chakra trace" : "a node");
}

std::string Frames::EndsEarly() const {
  return Where() + ": found the end of the file, expected " +
         (number_ == 0 ? "a Chakra trace" : std::to_string(wanted_) + " bytes");
}

// Returns the message at the beginning of `bytes`; nothing if it is incomplete: then sets wanted_.
Result<std::optional<std::string_view>> Frames::Cut(std::string_view bytes) {
  begin_ = end_;
  number_ = returned_;
  uint64_t length = 0;
  size_t at = 0;
  while (true) {
    wanted_ = at + 1;
    if (at == bytes.size()) return std::nullopt;
    const auto byte = static_cast<uint8_t>(bytes[at]);
    length |= static_cast<uint64_t>(byte & 0x7F) << (7 * at);
    ++at;
    if (byte < 0x80) break;
    if (at == kMaxFrameLengthBytes) {
      return BadInput(Where() +
                      ": found a length of more than five bytes, expected a Chakra trace");
    }
  }
  if (length > limit_) {
    return BadInput(Where() + ": found a message of " + std::to_string(length) +
                    " bytes, expected at most " + std::to_string(limit_) +
                    " (limit 'element_bytes')");
  }
  wanted_ = at + static_cast<size_t>(length);
  if (bytes.size() < wanted_) return std::nullopt;
  end_ += wanted_;
  ++returned_;
  return bytes.substr(at, static_cast<size_t>(length));
}

// Joins a message that spans chunks, without parsing it before it can be complete.
Result<std::optional<std::string_view>> Frames::Complete() {
  while (!chunk_.empty()) {
    const size_t missing = std::min(wanted_ - pending_.size(), chunk_.size());
    pending_.append(chunk_.substr(0, missing));
    chunk_.remove_prefix(missing);
    if (pending_.size() < wanted_) break;
    ETUDE_ASSIGN_OR_RETURN(const auto message, Cut(pending_));
    if (message) return message;
  }
  return std::nullopt;
}

Result<std::optional<std::string_view>> Frames::Next() {
  // The joined message has been returned.
  if (!pending_.empty() && begin_ < end_) pending_.clear();
  if (!pending_.empty()) return Complete();
  ETUDE_ASSIGN_OR_RETURN(const auto message, Cut(chunk_));
  if (message) {
    chunk_.remove_prefix(wanted_);
  } else {
    pending_.assign(chunk_);
    chunk_ = {};
  }
  return message;
}

}  // namespace etude::chakra
