#include "src/formats/native/capture_blocks.h"

#include <zlib.h>
#include <zstd.h>

#include <cstring>

namespace etude {

using capture::BlockHeader;
using capture::BlockKind;

void CaptureBlocks::Push(std::string_view chunk) {
  bytes_.erase(0, begin_);
  begin_ = 0;
  bytes_ += chunk;
}

void CaptureBlocks::Advance() {
  begin_ += given_;
  offset_ += given_;
  given_ = 0;
}

std::optional<CaptureBlocks::Block> CaptureBlocks::Next() {
  Advance();
  if (is_other_file_ || is_broken_) return std::nullopt;
  std::string_view rest = std::string_view(bytes_).substr(begin_);
  if (!saw_magic_) {
    if (rest.size() < capture::kMagic.size()) return std::nullopt;
    is_other_file_ = !rest.starts_with(capture::kMagic);
    if (is_other_file_) return std::nullopt;
    saw_magic_ = true;
    given_ = capture::kMagic.size();
    rest.remove_prefix(given_);
    Advance();
  }
  if (rest.size() < BlockHeader::kBytes) return std::nullopt;
  BlockHeader header;
  std::memcpy(&header, rest.data(), sizeof header);
  is_broken_ = header.mark != BlockHeader::kMark || header.raw_bytes > most_bytes_ ||
               header.packed_bytes > most_bytes_;
  if (is_broken_ || rest.size() < BlockHeader::kBytes + header.packed_bytes) return std::nullopt;
  given_ = BlockHeader::kBytes + header.packed_bytes;
  const std::string_view frame = rest.substr(BlockHeader::kBytes, header.packed_bytes);
  Block block{.kind = static_cast<BlockKind>(header.kind), .records = {}, .damage = {}};
  const auto sum = crc32_z(0, reinterpret_cast<const Bytef*>(frame.data()), frame.size());
  if (sum != header.checksum) {
    block.damage = "a block's checksum does not match its bytes";
    return block;
  }
  block.records.resize(header.raw_bytes);
  const size_t size =
      ZSTD_decompress(block.records.data(), block.records.size(), frame.data(), frame.size());
  if (ZSTD_isError(size) || size != block.records.size()) {
    block.records.clear();
    block.damage = "a block does not unpack to its stated size";
  }
  return block;
}

}  // namespace etude
