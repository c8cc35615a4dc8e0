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

// The bytes of messages that were read and are wanted later. Where the source can be read at an
// offset only that and a checksum are kept, and Get reads the file again, by blocks; elsewhere the
// bytes are. Not thread-safe.
class HeldMessages {
 public:
  static constexpr size_t kMaxBytes = UINT32_MAX;  // of one message

  // Where a message is; the caller keeps it.
  struct Place {
    uint64_t offset = 0;  // in the uncompressed file
    uint32_t size = 0;
    uint32_t checksum = 0;
  };

  // `row`: a small number of the caller's that the message goes by until it is dropped.
  Place Hold(uint32_t row, uint64_t offset, std::string_view message, const ByteSource& source);
  // The bytes, valid until the next call of Get or Drop. An error if the file cannot be read or is
  // not what it was.
  Result<std::string_view> Get(uint32_t row, const Place& place, const ByteSource& source);
  void Drop(uint32_t row, const Place& place);

  size_t memory_bytes() const;

 private:
  // A part of the file; which one goes where is fixed by its number.
  struct Block {
    uint64_t number = UINT64_MAX;
    std::string bytes;
  };

  Result<std::string_view> ReadBlock(uint64_t number, size_t wanted, const ByteSource& source);
  Result<std::string_view> ReadAgain(const Place& place, const ByteSource& source);

  std::vector<std::unique_ptr<char[]>> kept_;  // by row; null where the file is read again
  size_t kept_bytes_ = 0;
  std::vector<Block> blocks_;
  std::string joined_;  // a message that spans blocks
};

}  // namespace etude
