#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/formats/io/byte_source.h"

namespace etude {

// Storage for the bytes of messages that are needed later. If the source can be read at an offset,
// keeps only the offset and a checksum, and Get reads the file again by blocks; otherwise keeps the
// bytes. Not thread-safe.
class HeldMessages {
 public:
  static constexpr size_t kMaxBytes = UINT32_MAX;  // per message

  // Location of a message, kept by the caller.
  struct Place {
    uint64_t offset = 0;  // in the uncompressed file
    uint32_t size = 0;
    uint32_t checksum = 0;
  };

  // Stores a message. `row` is a small number of the caller's that identifies it until Drop.
  Place Hold(uint32_t row, uint64_t offset, std::string_view message, const ByteSource& source);
  // Returns the bytes, valid until the next call of Get or Drop. Fails if the file cannot be read
  // or has changed.
  Result<std::string_view> Get(uint32_t row, const Place& place, const ByteSource& source);
  void Drop(uint32_t row, const Place& place);

  size_t memory_bytes() const;

 private:
  // A part of the file; its number determines its slot.
  struct Block {
    uint64_t number = UINT64_MAX;
    std::string bytes;
  };

  Result<std::string_view> ReadBlock(uint64_t number, size_t wanted, const ByteSource& source);
  Result<std::string_view> ReadAgain(const Place& place, const ByteSource& source);

  std::vector<std::unique_ptr<char[]>> kept_;  // by row; null if the file is read again
  size_t kept_bytes_ = 0;
  std::vector<Block> blocks_;
  std::string joined_;  // a message that spans blocks
};

}  // namespace etude
