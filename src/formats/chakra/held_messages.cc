#include "src/formats/chakra/held_messages.h"

#include <algorithm>
#include <cstring>

#include "src/base/container/hash.h"

namespace etude {
namespace {

constexpr size_t kBlockBytes = size_t{16} << 10;
constexpr size_t kBlocks = 64;

uint32_t Checksum(std::string_view bytes) { return static_cast<uint32_t>(HashBytes(bytes) >> 32); }

}  // namespace

HeldMessages::Place HeldMessages::Hold(uint32_t row, uint64_t offset, std::string_view message,
                                       const ByteSource& source) {
  const Place place{.offset = offset,
                    .size = static_cast<uint32_t>(message.size()),
                    .checksum = Checksum(message)};
  if (source.can_read_at()) return place;
  if (row >= kept_.size()) kept_.resize(size_t{row} + 1);
  // Never null, which would mean no message.
  kept_[row] = std::make_unique<char[]>(std::max<size_t>(message.size(), 1));
  if (!message.empty()) std::memcpy(kept_[row].get(), message.data(), message.size());
  kept_bytes_ += place.size;
  return place;
}

void HeldMessages::Drop(uint32_t row, const Place& place) {
  if (row >= kept_.size() || kept_[row] == nullptr) return;
  kept_bytes_ -= place.size;
  kept_[row].reset();
}

Result<std::string_view> HeldMessages::Get(uint32_t row, const Place& place,
                                           const ByteSource& source) {
  if (row < kept_.size() && kept_[row] != nullptr) {
    return std::string_view(kept_[row].get(), place.size);
  }
  ETUDE_ASSIGN_OR_RETURN(const std::string_view message, ReadAgain(place, source));
  if (message.size() != place.size || Checksum(message) != place.checksum) {
    return MakeError(ErrorCode::kIo, source.name() + ":byte " + std::to_string(place.offset) +
                                         ": the file changed while it was read");
  }
  return message;
}

// Returns a block of at least `wanted` bytes, or the rest of the file.
Result<std::string_view> HeldMessages::ReadBlock(uint64_t number, size_t wanted,
                                                 const ByteSource& source) {
  if (blocks_.empty()) blocks_.resize(kBlocks);
  Block& block = blocks_[number % kBlocks];
  // The last block of a file may have grown since.
  if (block.number == number && block.bytes.size() >= wanted) return std::string_view(block.bytes);
  block.number = UINT64_MAX;
  block.bytes.resize(kBlockBytes);
  ETUDE_ASSIGN_OR_RETURN(const size_t count, source.ReadAt(number * kBlockBytes, block.bytes));
  block.bytes.resize(count);
  block.number = number;
  return std::string_view(block.bytes);
}

Result<std::string_view> HeldMessages::ReadAgain(const Place& place, const ByteSource& source) {
  if (place.size > kBlockBytes) {
    joined_.resize(place.size);
    ETUDE_ASSIGN_OR_RETURN(const size_t count, source.ReadAt(place.offset, joined_));
    return std::string_view(joined_).substr(0, count);
  }
  const uint64_t first = place.offset / kBlockBytes;
  const size_t at = place.offset % kBlockBytes;
  const size_t end = std::min(at + place.size, kBlockBytes);
  ETUDE_ASSIGN_OR_RETURN(std::string_view block, ReadBlock(first, end, source));
  const std::string_view head = block.substr(std::min(at, block.size()), place.size);
  if (head.size() == place.size) return head;
  joined_.assign(head);
  const size_t rest = place.size - head.size();
  ETUDE_ASSIGN_OR_RETURN(block, ReadBlock(first + 1, rest, source));
  joined_.append(block.substr(0, rest));
  return std::string_view(joined_);
}

size_t HeldMessages::memory_bytes() const {
  size_t bytes = kept_bytes_ + joined_.capacity();
  bytes += kept_.capacity() * sizeof(kept_[0]);
  for (const Block& block : blocks_) bytes += block.bytes.capacity();
  return bytes;
}

}  // namespace etude
