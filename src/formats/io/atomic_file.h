#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "src/base/result.h"

namespace etude {

// Returns true if a file of this name is written compressed: it ends in .gz or .zst.
bool IsCompressedName(std::string_view path);
// Returns that ending in lower case; "" for other names.
std::string_view CompressionEndingOf(std::string_view path);

// Treatment of an existing symbolic link, pipe or device with the name of the output file.
enum class Existing : uint8_t {
  kFollow,   // write through it: the user named it
  kReplace,  // replace it: names chosen by Etude in a folder
};

// File that appears complete or not at all. Data is written to a temporary file in the same folder,
// which Commit renames; without Commit it is removed. If the file system supports O_TMPFILE, the
// file has no name until then, and a killed process leaves nothing behind. Otherwise, and at the
// moment of replacing another file, its name is `.NAME.etude-tmp-0`, locked while its process
// lives; the next writer of NAME removes abandoned ones. Names with a compression ending
// (IsCompressedName) are compressed reproducibly. "-" is standard output; devices and pipes are
// written directly, unless they are to be replaced. There is no fsync, which would slow conversions
// noticeably: after a power loss a file may be empty or truncated. Not thread-safe.
class AtomicFile {
 public:
  static Result<AtomicFile> Create(const std::string& path, Existing existing = Existing::kFollow);

  AtomicFile(AtomicFile&&) noexcept;
  AtomicFile& operator=(AtomicFile&&) noexcept;
  ~AtomicFile();

  // Returns kIo if a write fails; after that only destruction is allowed.
  Status Write(std::string_view bytes);
  // Flushes all data, so that Commit only renames. No writes are allowed afterwards.
  Status Complete();
  // Completes the file and gives it its name.
  Status Commit();

 private:
  class Impl;
  explicit AtomicFile(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

// Returns kUsage if `output` would overwrite one of `inputs`, or a file that a capture folder keeps
// beside one (job.json, replay.0.json, compare.0.json). "" and "-" are not files.
Status CheckOutput(const std::string& output, std::initializer_list<std::string> inputs);

// Returns a complete file of these bytes, ready for Commit.
Result<AtomicFile> CompleteFile(const std::string& path, std::string_view bytes,
                                Existing existing = Existing::kFollow);

// Writes `bytes` to `path` atomically.
Status WriteFile(const std::string& path, std::string_view bytes);
// Writes a file whose name Etude chose in a folder; replaces any existing one.
Status ReplaceFile(const std::string& path, std::string_view bytes);

// Returns kIo if `folder`, an output folder, is a symbolic link, which leads elsewhere. For folders
// inside a user-named folder that may come from somebody else.
Status CheckNoLink(const std::string& folder);

}  // namespace etude
