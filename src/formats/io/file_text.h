#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "src/base/limits.h"
#include "src/base/result.h"

namespace etude {

// All bytes of a file, uncompressed: mapped if the file is plain, read if it is compressed or not a
// regular file. Owns the bytes, which views must not outlive. Not thread-safe.
class FileText {
 public:
  static Result<FileText> Open(const std::string& path, const Limits& limits);

  FileText(FileText&& other) noexcept;
  FileText& operator=(FileText&& other) noexcept;
  ~FileText();

  std::string_view text() const {
    return mapped_ != nullptr ? std::string_view(mapped_, size_) : read_;
  }
  // Releases the memory of a mapped file; later accesses read the file again.
  void Release() const;

 private:
  FileText() = default;

  const char* mapped_ = nullptr;
  size_t size_ = 0;
  std::string read_;
};

}  // namespace etude
