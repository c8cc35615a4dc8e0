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

// Endings of compressed files' names.
struct CompressionEnding {
  std::string_view ending;
  Compression compression;
};
inline constexpr CompressionEnding kCompressionEndings[] = {{".gz", Compression::kGzip},
                                                            {".zst", Compression::kZstd}};

// Detects the compression from the first bytes, at least four. Only one layer is undone: a gzip
// member in a gzip member is data.
Compression DetectCompression(std::string_view beginning);

// Uncompressed bytes of a file, of standard input or of memory, in chunks; the compression is
// detected by content. Enforces the limits `ratio` and `total_bytes`. Not thread-safe.
class ByteSource {
 public:
  // Opens `path`; "-" is standard input. kIo if the system fails, kBadInput for a directory.
  static Result<ByteSource> Open(const std::string& path, const Limits& limits);
  // Reads `bytes`; `name` is used in messages.
  static ByteSource FromMemory(std::string name, std::string bytes, const Limits& limits);

  ByteSource(ByteSource&&) noexcept;
  ByteSource& operator=(ByteSource&&) noexcept;
  ~ByteSource();

  // Returns the next uncompressed bytes, valid until the next call of Next or Peek; empty at the
  // end. kBadInput for damaged data and exceeded limits, kIo for failed reads.
  Result<std::string_view> Next();
  // Returns the next `count` bytes, or fewer at the end, without consuming them. Valid until the
  // next call of Next or Peek.
  Result<std::string_view> Peek(size_t count);

  // Returns true if ReadAt works: for an uncompressed regular file or memory. Valid after the first
  // Next or Peek.
  bool can_read_at() const;
  // Reads up to `to.size()` bytes from `offset`, without affecting Next; returns their number. kIo
  // if the system fails.
  Result<size_t> ReadAt(uint64_t offset, std::span<char> to) const;

  const std::string& name() const;
  Compression compression() const;
  // Returns true if the compressed data ended within a member. Valid once Next returned nothing.
  bool cut() const;
  // Returns the number of uncompressed bytes after the last compressed member. Valid like cut().
  uint64_t trailing_bytes() const;
  // Return the number of bytes read from the file so far, and its size (nullopt: unknown).
  uint64_t bytes_in() const;
  std::optional<uint64_t> size_in() const;
  // Returns the number of uncompressed bytes so far.
  uint64_t bytes_out() const;

 private:
  class Impl;
  explicit ByteSource(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

// Returns kBadInput for a pipe, a device, a socket and "-", which may never end. For files named by
// a folder or another file, not by the user. A file that cannot be inspected is left to the error
// on opening it.
Status CheckRegular(const std::string& path);

// Returns all uncompressed bytes of a file. In addition to errors of ByteSource, kBadInput for more
// than `most` bytes; `remark` ends that message: ", expected a recipe in TOML".
Result<std::string> ReadWholeFile(const std::string& path, const Limits& limits, uint64_t most,
                                  std::string_view remark = {});
// Reads all bytes of an open file.
Result<std::string> ReadWholeFile(ByteSource& source, uint64_t most, std::string_view remark);
// Reads a file that is one element, of at most Limits::element_bytes, which the error names.
Result<std::string> ReadWholeFile(const std::string& path, const Limits& limits);

}  // namespace etude
