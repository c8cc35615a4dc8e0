#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/formats/native/capture_format.h"

namespace etude {

// Splits a native capture into its blocks and unpacks them (docs/formats/native_capture.md).
class CaptureBlocks {
 public:
  // `most_bytes` bounds the size of a block, packed or not.
  explicit CaptureBlocks(size_t most_bytes) : most_bytes_(most_bytes) {}

  struct Block {
    capture::BlockKind kind;
    std::string records;
    std::string_view damage;  // reason for missing records
  };

  // Appends the next bytes of the file, in pieces of any size.
  void Push(std::string_view chunk);
  // Returns the next complete block; nullopt if there is none yet, or if there will be none.
  std::optional<Block> Next();

  bool is_other_file() const { return is_other_file_; }  // begins with other bytes
  bool is_broken() const { return is_broken_; }          // no block begins at the expected position
  uint64_t offset() const { return offset_; }            // of the last block of Next, in the file
  uint64_t end_offset() const { return offset_ + given_; }
  size_t rest() const { return bytes_.size() - begin_ - given_; }  // number of bytes after it

 private:
  // Discards the last block of Next.
  void Advance();

  size_t most_bytes_;
  std::string bytes_;
  size_t begin_ = 0;  // of the bytes in `bytes_` not yet returned, or returned last
  uint64_t offset_ = 0;
  size_t given_ = 0;  // in bytes
  bool saw_magic_ = false;
  bool is_other_file_ = false;
  bool is_broken_ = false;
};

}  // namespace etude
