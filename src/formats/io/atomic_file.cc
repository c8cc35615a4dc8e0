#include "src/formats/io/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "src/base/open_file.h"
#include "src/base/text/ascii.h"
#include "src/formats/io/byte_source.h"
#include "src/formats/job/job_json.h"

namespace etude {
namespace {

constexpr size_t kWriteBufferBytes = size_t{256} << 10;
constexpr int kGzipLevel = 6;
constexpr int kZstdLevel = 3;

const CompressionEnding* FindEnding(std::string_view path) {
  for (const CompressionEnding& known : kCompressionEndings) {
    if (EndsWithNoCase(path, known.ending)) return &known;
  }
  return nullptr;
}

Compression CompressionOfName(std::string_view path) {
  const CompressionEnding* found = FindEnding(path);
  return found == nullptr ? Compression::kNone : found->compression;
}

// Owns an open file.
class Descriptor {
 public:
  Descriptor(int fd, bool owned) : fd_(fd), owned_(owned) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { Close(); }

  // Returns false and sets errno if a write fails.
  bool Write(std::string_view bytes) const { return WriteAll(fd_, bytes); }

  // Links a nameless file to `name`; returns false and sets errno on failure.
  bool Link(const std::string& name) const {
    const std::string here = PathOfOpen(fd_);
    return ::linkat(AT_FDCWD, here.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
  }

  // Returns false and sets errno if the system reports a late write error, as on closing a
  // descriptor of the file.
  bool Settle() const {
    if (!owned_) return true;
    const int copy = ::dup(fd_);
    return copy >= 0 && ::close(copy) == 0;
  }

  // Marks the file as in use for RemoveAbandoned.
  void Lock() const { etude::Lock(fd_); }

  void Close() {
    const int fd = std::exchange(fd_, -1);
    if (fd >= 0 && owned_) ::close(fd);
  }

 private:
  int fd_;
  bool owned_;
};

// Compresses a stream piece by piece; `finish` ends it. Output is appended to `out`.
class Encoder {
 public:
  virtual ~Encoder() = default;
  // Returns false if the compressor fails.
  virtual bool Encode(std::string_view in, bool finish, std::string& out) = 0;
};

class GzipEncoder : public Encoder {
 public:
  GzipEncoder() {
    // zlib's own header has neither name nor time: equal contents give equal files.
    ready_ = deflateInit2(&stream_, kGzipLevel, Z_DEFLATED, MAX_WBITS + 16, 8,
                          Z_DEFAULT_STRATEGY) == Z_OK;
  }
  ~GzipEncoder() override { deflateEnd(&stream_); }
  GzipEncoder(const GzipEncoder&) = delete;
  GzipEncoder& operator=(const GzipEncoder&) = delete;

  bool Encode(std::string_view in, bool finish, std::string& out) override {
    if (!ready_) return false;
    // zlib counts in 32 bits.
    constexpr size_t kPiece = size_t{1} << 30;
    while (in.size() > kPiece) {
      if (!EncodePiece(in.substr(0, kPiece), Z_NO_FLUSH, out)) return false;
      in.remove_prefix(kPiece);
    }
    return EncodePiece(in, finish ? Z_FINISH : Z_NO_FLUSH, out);
  }

 private:
  bool EncodePiece(std::string_view in, int flush, std::string& out) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream_.avail_in = static_cast<uInt>(in.size());
    do {
      const size_t have = out.size();
      out.resize(have + kWriteBufferBytes);
      stream_.next_out = reinterpret_cast<Bytef*>(out.data() + have);
      stream_.avail_out = kWriteBufferBytes;
      const int status = deflate(&stream_, flush);
      out.resize(out.size() - stream_.avail_out);
      if (status == Z_STREAM_END) return true;
      if (status != Z_OK && status != Z_BUF_ERROR) return false;
    } while (stream_.avail_out == 0 || stream_.avail_in != 0);
    return flush != Z_FINISH;
  }

  z_stream stream_{};
  bool ready_ = false;
};

class ZstdEncoder : public Encoder {
 public:
  ZstdEncoder() : context_(ZSTD_createCCtx()) {
    if (context_ == nullptr) return;
    ZSTD_CCtx_setParameter(context_, ZSTD_c_compressionLevel, kZstdLevel);
    ZSTD_CCtx_setParameter(context_, ZSTD_c_checksumFlag, 1);
  }
  ~ZstdEncoder() override { ZSTD_freeCCtx(context_); }
  ZstdEncoder(const ZstdEncoder&) = delete;
  ZstdEncoder& operator=(const ZstdEncoder&) = delete;

  bool Encode(std::string_view in, bool finish, std::string& out) override {
    if (context_ == nullptr) return false;
    ZSTD_inBuffer input{in.data(), in.size(), 0};
    size_t left = 0;
    do {
      const size_t have = out.size();
      out.resize(have + kWriteBufferBytes);
      ZSTD_outBuffer output{out.data() + have, kWriteBufferBytes, 0};
      left = ZSTD_compressStream2(context_, &output, &input, finish ? ZSTD_e_end : ZSTD_e_continue);
      out.resize(have + output.pos);
      if (ZSTD_isError(left) != 0) return false;
    } while (finish ? left != 0 : input.pos != input.size);
    return true;
  }

 private:
  ZSTD_CCtx* context_;
};

std::unique_ptr<Encoder> MakeEncoder(Compression compression) {
  switch (compression) {
    case Compression::kNone: return nullptr;
    case Compression::kGzip: return std::make_unique<GzipEncoder>();
    case Compression::kZstd: return std::make_unique<ZstdEncoder>();
  }
  return nullptr;
}

// Returns true if the name belongs to something other than a regular file, which must not be
// renamed over.
bool IsSpecial(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

// Opens a nameless file in `folder`, which is gone with this process unless linked; -1 if the file
// system does not support it.
int OpenNameless(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (fd < 0 || ::access(PathOfOpen(fd).c_str(), F_OK) == 0) return fd;
  ::close(fd);
  return -1;
}

// Removes the temporary file of this name if its writer is gone, that is, if it is unlocked.
bool RemoveAbandoned(const std::string& name) {
  const int fd = ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  const Descriptor file(fd, /*owned=*/true);
  return LockAbandoned(fd, name) && ::unlink(name.c_str()) == 0;
}

// Calls `take` with names that begin with `base` until it returns true. Returns "" with errno set
// if it fails for another reason than an existing name.
template <typename Take>
std::string TakeName(const std::string& base, Take take) {
  for (unsigned attempt = 0; attempt < 1000; ++attempt) {
    std::string name = base + std::to_string(attempt);
    if (take(name)) return name;
    if (errno != EEXIST) break;
    if (RemoveAbandoned(name) && take(name)) return name;
  }
  return {};
}

// Returns the prefix of temporary names of a file in `folder`. Hidden, so that listings of the
// folder ignore them.
std::string TemporaryBase(const std::string& folder, const std::string& name) {
  constexpr size_t kMostOfName = 200;  // of the 255 bytes of a file name
  return folder + "." + name.substr(0, kMostOfName) + ".etude-tmp-";
}

// Returns the file that `path` leads to, so that a symbolic link is kept.
std::string Target(const std::string& path) {
  std::string target = path;
  for (int links = 0; links < 16; ++links) {
    std::vector<char> buffer(4096);
    const ssize_t length = ::readlink(target.c_str(), buffer.data(), buffer.size());
    if (length <= 0) break;
    std::string next(buffer.data(), static_cast<size_t>(length));
    const size_t slash = target.rfind('/');
    const bool relative = next.front() != '/' && slash != std::string::npos;
    target = relative ? target.substr(0, slash + 1) + next : next;
  }
  return target;
}

}  // namespace

bool IsCompressedName(std::string_view path) {
  return CompressionOfName(path) != Compression::kNone;
}

std::string_view CompressionEndingOf(std::string_view path) {
  const CompressionEnding* found = FindEnding(path);
  return found == nullptr ? std::string_view() : found->ending;
}

class AtomicFile::Impl {
 public:
  struct Names {
    std::string path;
    std::string target;     // "": the file is written directly
    std::string base;       // prefix of temporary names
    std::string temporary;  // "": nameless so far
  };
  Impl(Names names, int fd, bool owned)
      : path_(std::move(names.path)),
        target_(std::move(names.target)),
        base_(std::move(names.base)),
        temporary_(std::move(names.temporary)),
        file_(fd, owned),
        encoder_(MakeEncoder(CompressionOfName(path_))) {}

  ~Impl() {
    // While it is locked: afterwards another process may use the name.
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Status Write(std::string_view bytes) {
    if (encoder_ == nullptr && pending_.empty() && bytes.size() >= kWriteBufferBytes) {
      return file_.Write(bytes) ? Status() : Failure("write");
    }
    pending_.append(bytes);
    return pending_.size() < kWriteBufferBytes ? Status() : Flush(/*finish=*/false);
  }

  Status Complete() {
    if (is_complete_) return {};
    ETUDE_RETURN_IF_ERROR(Flush(/*finish=*/true));
    if (!file_.Settle()) return Failure("write");
    is_complete_ = true;
    return {};
  }

  Status Commit() {
    ETUDE_RETURN_IF_ERROR(Complete());
    if (target_.empty()) return {};
    if (temporary_.empty()) {
      file_.Lock();
      // A file that replaces none gets its name at once.
      if (file_.Link(target_)) {
        RemoveAbandoned(base_ + "0");
        return {};
      }
      temporary_ = TakeName(base_, [&](const std::string& name) { return file_.Link(name); });
      if (temporary_.empty()) return Failure("name");
    }
    if (::rename(temporary_.c_str(), target_.c_str()) != 0) return Failure("rename to");
    temporary_.clear();
    return {};
  }

 private:
  Status Flush(bool finish) {
    if (encoder_ == nullptr) {
      if (!file_.Write(pending_)) return Failure("write");
    } else {
      encoded_.clear();
      if (!encoder_->Encode(pending_, finish, encoded_)) {
        return MakeError(ErrorCode::kInternal, path_ + ": the compressor failed");
      }
      if (!file_.Write(encoded_)) return Failure("write");
    }
    pending_.clear();
    return {};
  }

  tl::unexpected<Error> Failure(std::string_view verb) const {
    return MakeError(ErrorCode::kIo,
                     path_ + ": cannot " + std::string(verb) + " it: " + std::strerror(errno));
  }

  std::string path_;
  std::string target_;
  std::string base_;
  std::string temporary_;  // "" before it has one, once renamed, or if written directly
  Descriptor file_;
  std::unique_ptr<Encoder> encoder_;
  bool is_complete_ = false;
  std::string pending_;  // bytes given to Write that are not yet in the file
  std::string encoded_;
};

AtomicFile::AtomicFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AtomicFile::AtomicFile(AtomicFile&&) noexcept = default;
AtomicFile& AtomicFile::operator=(AtomicFile&&) noexcept = default;
AtomicFile::~AtomicFile() = default;

Result<AtomicFile> AtomicFile::Create(const std::string& path, Existing existing) {
  const bool follows = existing == Existing::kFollow;
  if (follows && (path == "-" || path == "/dev/stdout")) {
    return AtomicFile(
        std::make_unique<Impl>(Impl::Names{.path = path}, STDOUT_FILENO, /*owned=*/false));
  }
  const auto failure = [&](int error) {
    return MakeError(ErrorCode::kIo, path + ": cannot create it: " + std::strerror(error));
  };
  struct stat replaced {};
  const bool replaces =
      follows ? ::stat(path.c_str(), &replaced) == 0 : ::lstat(path.c_str(), &replaced) == 0;
  if (replaces && S_ISDIR(replaced.st_mode)) return failure(EISDIR);
  if (follows && IsSpecial(path)) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return failure(errno);
    return AtomicFile(std::make_unique<Impl>(Impl::Names{.path = path}, fd, /*owned=*/true));
  }
  const std::string target = follows ? Target(path) : path;
  const size_t slash = target.rfind('/');
  const size_t name = slash == std::string::npos ? 0 : slash + 1;
  Impl::Names names{.path = path,
                    .target = target,
                    .base = TemporaryBase(target.substr(0, name), target.substr(name))};
  int fd = OpenNameless(name == 0 ? "." : target.substr(0, name));
  if (fd < 0) {
    names.temporary = TakeName(names.base, [&fd](const std::string& temporary) {
      fd = OpenLocked(temporary, [&temporary] {
        return ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      });
      return fd >= 0;
    });
    if (fd < 0) return failure(errno);
  }
  auto impl = std::make_unique<Impl>(std::move(names), fd, /*owned=*/true);
  // Keeps the mode of the replaced file.
  if (replaces && S_ISREG(replaced.st_mode) && ::fchmod(fd, replaced.st_mode & 0777) != 0)
    return failure(errno);
  return AtomicFile(std::move(impl));
}

Status AtomicFile::Write(std::string_view bytes) { return impl_->Write(bytes); }
Status AtomicFile::Complete() { return impl_->Complete(); }
Status AtomicFile::Commit() { return impl_->Commit(); }

// Returns true if the file `path` belongs to a capture in the folder of `trace`.
static bool IsKeptBeside(const std::string& trace, const std::string& path) {
  const std::string name = std::filesystem::path(path).filename();
  const bool is_result =
      (name.starts_with("replay.") || name.starts_with("compare.")) && name.ends_with(".json");
  if (name != kJobFile && !is_result) return false;
  const auto folder_of = [](const std::string& file) {
    std::error_code error;
    const auto whole = std::filesystem::weakly_canonical(file, error);
    return error ? std::filesystem::path() : whole.parent_path();
  };
  const std::filesystem::path folder = folder_of(trace);
  std::error_code error;
  return !folder.empty() && folder == folder_of(path) &&
         std::filesystem::exists(folder / kJobFile, error);
}

Status CheckOutput(const std::string& output, std::initializer_list<std::string> inputs) {
  for (const std::string& input : inputs) {
    std::error_code error;
    if (input.empty() || output == "-" || !std::filesystem::is_regular_file(output, error))
      continue;
    if (std::filesystem::equivalent(input, output, error) && !error) {
      return MakeError(ErrorCode::kUsage,
                       output + ": is the input " + input + ", expected another file");
    }
    if (IsKeptBeside(input, output)) {
      return MakeError(ErrorCode::kUsage, output + ": belongs to the capture of the input " +
                                              input + ", expected another file");
    }
  }
  return {};
}

Result<AtomicFile> CompleteFile(const std::string& path, std::string_view bytes,
                                Existing existing) {
  ETUDE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path, existing));
  ETUDE_RETURN_IF_ERROR(file.Write(bytes));
  ETUDE_RETURN_IF_ERROR(file.Complete());
  return file;
}

Status WriteFile(const std::string& path, std::string_view bytes) {
  ETUDE_ASSIGN_OR_RETURN(AtomicFile file, CompleteFile(path, bytes));
  return file.Commit();
}

Status ReplaceFile(const std::string& path, std::string_view bytes) {
  ETUDE_ASSIGN_OR_RETURN(AtomicFile file, CompleteFile(path, bytes, Existing::kReplace));
  return file.Commit();
}

Status CheckNoLink(const std::string& folder) {
  std::error_code error;
  if (!std::filesystem::is_symlink(folder, error)) return {};
  return MakeError(ErrorCode::kIo, folder + ": found a symbolic link, expected a folder");
}

}  // namespace etude
