#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "src/base/result.h"

namespace etude {

// Whether a file of this name is written compressed: it ends in .gz or .zst.
bool IsCompressedName(std::string_view path);
// That ending, in small letters; "" of other names.
std::string_view CompressionEndingOf(std::string_view path);

// What becomes of a symbolic link, a pipe or a device that has the name of a file to be written.
enum class Existing : uint8_t {
  kFollow,   // it is written through: the user has named it
  kReplace,  // the file takes its place: a folder has it, in which we name files ourselves
};

// A file that appears under its name complete or not at all: what is written goes to a temporary
// file in the same folder, which Commit renames; without Commit it is removed. Where the file
// system can (O_TMPFILE) it has no name until then, and nothing is left of a killed process. Else,
// and at the moment when it replaces another, it is `.NAME.etude-tmp-0`, locked as long as its
// process lives: who writes NAME next removes what is left of a process that was killed. What its
// name has compressed (IsCompressedName) is compressed reproducibly. "-" is standard output, and
// names of devices and pipes are written directly, unless they are to be replaced. Nothing waits
// for the disk (fsync), which would take a noticeable part of the time of a conversion: after a
// power loss a file may be empty or cut. Not thread-safe.
class AtomicFile {
 public:
  static Result<AtomicFile> Create(const std::string& path, Existing existing = Existing::kFollow);

  AtomicFile(AtomicFile&&) noexcept;
  AtomicFile& operator=(AtomicFile&&) noexcept;
  ~AtomicFile();

  // kIo if the system refuses; after that only destruction is allowed.
  Status Write(std::string_view bytes);
  // Writes out what is left, so that Commit has only the name to give. Nothing may be written
  // afterwards.
  Status Complete();
  // Completes the file and gives it its name.
  Status Commit();

 private:
  class Impl;
  explicit AtomicFile(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

// kUsage if `output` is the same file as one of `inputs`, which it would replace, or what a capture
// folder says beside one (job.json, replay.0.json, compare.0.json). Names that are "" or "-" are no
// files.
Status CheckOutput(const std::string& output, std::initializer_list<std::string> inputs);

// A complete file of these bytes that waits for its Commit.
Result<AtomicFile> CompleteFile(const std::string& path, std::string_view bytes,
                                Existing existing = Existing::kFollow);

// Writes `bytes` to `path` in one go.
Status WriteFile(const std::string& path, std::string_view bytes);
// The same of a file that we name ourselves in a folder: what has the name is replaced.
Status ReplaceFile(const std::string& path, std::string_view bytes);

// kIo if `folder`, in which we name files, is a symbolic link: what is in it lies elsewhere. For a
// folder within one that the user names, which may have come from somebody else.
Status CheckNoLink(const std::string& folder);

}  // namespace etude
