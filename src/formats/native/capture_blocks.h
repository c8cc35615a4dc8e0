#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/formats/native/capture_format.h"

namespace etude {

// Cuts the bytes of a native capture into its blocks and unpacks them
// (docs/formats/native_capture.md).
class CaptureBlocks {
 public:
  // No block is larger than `most_bytes`, packed or not.
  explicit CaptureBlocks(size_t most_bytes) : most_bytes_(most_bytes) {}

  struct Block {
    capture::BlockKind kind;
    std::string records;
    std::string_view damage;  // why there are no records
  };

  // The next bytes of the file, as many as there are.
  void Push(std::string_view chunk);
  // The next block that is there whole; nullopt: there is none yet, or there will be none.
  std::optional<Block> Next();

  bool is_other_file() const { return is_other_file_; }  // which begins with other bytes
  bool is_broken() const { return is_broken_; }          // no block begins where one should
  uint64_t offset() const { return offset_; }            // of the block that Next gave, in the file
  uint64_t end_offset() const { return offset_ + given_; }
  size_t rest() const { return bytes_.size() - begin_ - given_; }  // bytes behind it

 private:
  // Leaves behind what Next gave.
  void Advance();

  size_t most_bytes_;
  std::string bytes_;
  size_t begin_ = 0;  // of what is not given yet, or given last, in `bytes_`
  uint64_t offset_ = 0;
  size_t given_ = 0;  // bytes
  bool saw_magic_ = false;
  bool is_other_file_ = false;
  bool is_broken_ = false;
};

}  // namespace etude
