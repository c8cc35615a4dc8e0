#include "src/formats/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace etude {
namespace {

constexpr size_t kBufferBytes = size_t{256} << 10;
constexpr int kZstdLevel = 3;

Status IoError(const std::string& path, int error) {
  return MakeError(ErrorCode::kIo, path + ": " + std::strerror(error));
}

Status WriteAll(int fd, const std::string& path, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return IoError(path, errno);
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

}  // namespace

class AtomicFile::Impl {
 public:
  explicit Impl(std::string path) : path_(std::move(path)) {}

  ~Impl() {
    if (deflating_) deflateEnd(&deflate_);
    ZSTD_freeCCtx(zstd_);
    if (fd_ >= 0 && fd_ != STDOUT_FILENO) ::close(fd_);
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Status Open() {
    if (path_ == "-") {
      fd_ = STDOUT_FILENO;
      return {};
    }
    struct stat facts {};
    const bool exists = ::stat(path_.c_str(), &facts) == 0;
    if (exists && S_ISDIR(facts.st_mode)) return IoError(path_, EISDIR);
    if (exists && !S_ISREG(facts.st_mode)) {
      fd_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
      if (fd_ < 0) return IoError(path_, errno);
    } else {
      ETUDE_RETURN_IF_ERROR(OpenTemporary(exists ? facts.st_mode & 07777 : 0666 & ~Umask()));
    }
    if (path_.ends_with(".gz")) return StartGzip();
    if (path_.ends_with(".zst")) zstd_ = ZSTD_createCCtx();
    if (zstd_ != nullptr) ZSTD_CCtx_setParameter(zstd_, ZSTD_c_compressionLevel, kZstdLevel);
    return {};
  }

  Status Write(std::string_view bytes) {
    if (deflating_) return Deflate(bytes, Z_NO_FLUSH);
    if (zstd_ != nullptr) return Zstd(bytes, ZSTD_e_continue);
    if (buffer_.size() + bytes.size() < kBufferBytes) {
      buffer_.append(bytes);
      return {};
    }
    ETUDE_RETURN_IF_ERROR(FlushBuffer());
    return WriteAll(fd_, path_, bytes);
  }

  Status Commit() {
    if (deflating_) ETUDE_RETURN_IF_ERROR(Deflate({}, Z_FINISH));
    if (zstd_ != nullptr) ETUDE_RETURN_IF_ERROR(Zstd({}, ZSTD_e_end));
    ETUDE_RETURN_IF_ERROR(FlushBuffer());
    if (fd_ == STDOUT_FILENO) return {};
    // Some file systems report a full disk only now.
    if (::close(std::exchange(fd_, -1)) != 0) return IoError(path_, errno);
    if (temporary_.empty()) return {};
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) return IoError(path_, errno);
    temporary_.clear();
    return {};
  }

 private:
  static mode_t Umask() {
    const mode_t mask = ::umask(0);
    ::umask(mask);
    return mask;
  }

  Status OpenTemporary(mode_t mode) {
    const size_t slash = path_.rfind('/');
    const size_t name = slash == std::string::npos ? 0 : slash + 1;
    temporary_ = path_.substr(0, name) + "." + path_.substr(name) + ".XXXXXX";
    fd_ = ::mkostemp(temporary_.data(), O_CLOEXEC);
    if (fd_ < 0) {
      const int error = errno;
      temporary_.clear();
      return IoError(path_, error);
    }
    if (::fchmod(fd_, mode) != 0) return IoError(path_, errno);
    return {};
  }

  Status StartGzip() {
    constexpr int kGzipWindow = 15 + 16;
    constexpr int kMemoryLevel = 8;
    // No name and no time in the header: the same bytes give the same file.
    if (deflateInit2(&deflate_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, kMemoryLevel,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
      return MakeError(ErrorCode::kInternal, path_ + ": zlib could not start");
    }
    deflating_ = true;
    return {};
  }

  Status Deflate(std::string_view bytes, int flush) {
    std::vector<char> out(kBufferBytes);
    // zlib counts input in 32 bits.
    constexpr size_t kSliceBytes = size_t{1} << 30;
    do {
      const std::string_view slice = bytes.substr(0, kSliceBytes);
      bytes.remove_prefix(slice.size());
      deflate_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(slice.data()));
      deflate_.avail_in = static_cast<uInt>(slice.size());
      do {
        deflate_.next_out = reinterpret_cast<Bytef*>(out.data());
        deflate_.avail_out = static_cast<uInt>(out.size());
        if (deflate(&deflate_, bytes.empty() ? flush : Z_NO_FLUSH) == Z_STREAM_ERROR) {
          return MakeError(ErrorCode::kInternal, path_ + ": zlib failed");
        }
        ETUDE_RETURN_IF_ERROR(
            WriteAll(fd_, path_, {out.data(), out.size() - deflate_.avail_out}));
      } while (deflate_.avail_out == 0);
    } while (!bytes.empty());
    return {};
  }

  Status Zstd(std::string_view bytes, ZSTD_EndDirective end) {
    std::vector<char> out(ZSTD_CStreamOutSize());
    ZSTD_inBuffer input{bytes.data(), bytes.size(), 0};
    while (true) {
      ZSTD_outBuffer output{out.data(), out.size(), 0};
      const size_t left = ZSTD_compressStream2(zstd_, &output, &input, end);
      if (ZSTD_isError(left) != 0) {
        return MakeError(ErrorCode::kInternal, path_ + ": zstd: " + ZSTD_getErrorName(left));
      }
      ETUDE_RETURN_IF_ERROR(WriteAll(fd_, path_, {out.data(), output.pos}));
      if (end == ZSTD_e_end ? left == 0 : input.pos == input.size) return {};
    }
  }

  Status FlushBuffer() {
    const Status status = WriteAll(fd_, path_, buffer_);
    buffer_.clear();
    return status;
  }

  std::string path_;
  std::string temporary_;  // "" if none exists
  int fd_ = -1;
  std::string buffer_;  // of uncompressed files
  bool deflating_ = false;
  z_stream deflate_{};
  ZSTD_CCtx* zstd_ = nullptr;
};

AtomicFile::AtomicFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AtomicFile::AtomicFile(AtomicFile&&) noexcept = default;
AtomicFile& AtomicFile::operator=(AtomicFile&&) noexcept = default;
AtomicFile::~AtomicFile() = default;

Result<AtomicFile> AtomicFile::Create(const std::string& path) {
  auto impl = std::make_unique<Impl>(path);
  ETUDE_RETURN_IF_ERROR(impl->Open());
  return AtomicFile(std::move(impl));
}

Status AtomicFile::Write(std::string_view bytes) { return impl_->Write(bytes); }
Status AtomicFile::Commit() { return impl_->Commit(); }

Status WriteFile(const std::string& path, std::string_view bytes) {
  ETUDE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  ETUDE_RETURN_IF_ERROR(file.Write(bytes));
  return file.Commit();
}

}  // namespace etude
