#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "src/base/limits.h"
#include "src/base/result.h"

namespace etude {

enum class Compression : uint8_t { kNone, kGzip, kZstd };
std::string_view Name(Compression compression);

// How the names of compressed files end.
struct CompressionEnding {
  std::string_view ending;
  Compression compression;
};
inline constexpr CompressionEnding kCompressionEndings[] = {{".gz", Compression::kGzip},
                                                            {".zst", Compression::kZstd}};

// What a beginning of at least four bytes is compressed with. A gzip member in a gzip member is
// data: only one layer is undone.
Compression DetectCompression(std::string_view beginning);

// The uncompressed bytes of a file, of standard input or of memory, in chunks; the compression is
// found by content. Limits `ratio` and `total_bytes` are enforced. Not thread-safe.
class ByteSource {
 public:
  // `path` "-" is standard input. kIo if the system refuses, kBadInput for a directory.
  static Result<ByteSource> Open(const std::string& path, const Limits& limits);
  // Reads `bytes`; `name` appears in messages.
  static ByteSource FromMemory(std::string name, std::string bytes, const Limits& limits);

  ByteSource(ByteSource&&) noexcept;
  ByteSource& operator=(ByteSource&&) noexcept;
  ~ByteSource();

  // The next uncompressed bytes, valid until the next call of Next or Peek; empty at the end.
  // kBadInput for damaged data and exceeded limits, kIo for failed reads.
  Result<std::string_view> Next();
  // The first bytes that Next will deliver, without consuming them: `count` of them, or as many as
  // there are. Valid until the next call of Next or Peek.
  Result<std::string_view> Peek(size_t count);

  // Whether ReadAt works: the bytes are those of a regular file or of memory, not compressed.
  // Meaningful after the first Next or Peek.
  bool can_read_at() const;
  // Reads bytes from `offset` on, `to.size()` or as many as there are, without moving what Next
  // delivers; returns how many. kIo if the system refuses.
  Result<size_t> ReadAt(uint64_t offset, std::span<char> to) const;

  const std::string& name() const;
  Compression compression() const;
  // The compressed data ended in the middle of a member. Meaningful once Next returned nothing.
  bool cut() const;
  // Bytes after the last compressed member that are not compressed data. Meaningful like cut().
  uint64_t trailing_bytes() const;
  // Bytes read from the file so far, and how many it has in all (nullopt: not known).
  uint64_t bytes_in() const;
  std::optional<uint64_t> size_in() const;
  // Uncompressed bytes so far.
  uint64_t bytes_out() const;

 private:
  class Impl;
  explicit ByteSource(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

// Refuses (kBadInput) a pipe, a device, a socket and "-": reading them may never end. For files
// that a folder or another file names; what the user names is read. Of what cannot be looked at,
// opening it says why.
Status CheckRegular(const std::string& path);

// All uncompressed bytes of a file. kBadInput, besides what ByteSource has, for more than `most`;
// `remark` ends that message: ", expected a recipe in TOML".
Result<std::string> ReadWholeFile(const std::string& path, const Limits& limits, uint64_t most,
                                  std::string_view remark = {});
// The same of an open file.
Result<std::string> ReadWholeFile(ByteSource& source, uint64_t most, std::string_view remark);
// The same of a file that is one element: at most Limits::element_bytes, which the message names.
Result<std::string> ReadWholeFile(const std::string& path, const Limits& limits);

}  // namespace etude
