#include "src/formats/io/file_text.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "src/formats/io/byte_source.h"

namespace etude {
namespace {

// Returns the mapped bytes of a non-empty plain regular file, or an empty view.
std::string_view MapPlainFile(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  struct stat info {};
  std::string_view bytes;
  if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
    const auto size = static_cast<size_t>(info.st_size);
    void* at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    if (at != MAP_FAILED) bytes = {static_cast<const char*>(at), size};
  }
  ::close(fd);
  if (!bytes.empty() && bytes.size() >= 4 &&
      DetectCompression(bytes.substr(0, 4)) != Compression::kNone) {
    ::munmap(const_cast<char*>(bytes.data()), bytes.size());
    return {};
  }
  return bytes;
}

}  // namespace

Result<FileText> FileText::Open(const std::string& path, const Limits& limits) {
  FileText file;
  if (path != "-") {
    const std::string_view mapped = MapPlainFile(path);
    if (!mapped.empty()) {
      file.mapped_ = mapped.data();
      file.size_ = mapped.size();
      return file;
    }
  }
  ETUDE_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path, limits));
  while (true) {
    ETUDE_ASSIGN_OR_RETURN(const std::string_view chunk, source.Next());
    if (chunk.empty()) break;
    file.read_ += chunk;
  }
  if (source.cut()) return BadInput(path + ": found the end in compressed data");
  return file;
}

void FileText::Release() const {
  if (mapped_ != nullptr) ::madvise(const_cast<char*>(mapped_), size_, MADV_DONTNEED);
}

FileText::FileText(FileText&& other) noexcept
    : mapped_(std::exchange(other.mapped_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      read_(std::move(other.read_)) {}

FileText& FileText::operator=(FileText&& other) noexcept {
  std::swap(mapped_, other.mapped_);
  std::swap(size_, other.size_);
  std::swap(read_, other.read_);
  return *this;
}

FileText::~FileText() {
  if (mapped_ != nullptr) ::munmap(const_cast<char*>(mapped_), size_);
}

}  // namespace etude
