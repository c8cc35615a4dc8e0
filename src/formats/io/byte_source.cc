#include "src/formats/io/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace etude {
namespace {

constexpr size_t kReadBufferBytes = size_t{64} << 10;
// Max memory reserved in advance for a file read as a whole.
constexpr uint64_t kMostReserved = uint64_t{16} << 20;

// Source of the file's raw bytes: a descriptor or memory.
class Input {
 public:
  Input(int fd, bool owned) : fd_(fd), owned_(owned) {}
  explicit Input(std::string bytes) : memory_(std::move(bytes)), size_(memory_.size()) {}
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;
  ~Input() {
    if (owned_) ::close(fd_);
  }

  // Reads up to `capacity` bytes into `to`; returns 0 at the end, nullopt with errno set on
  // failure.
  std::optional<size_t> Read(char* to, size_t capacity) {
    if (fd_ < 0) {
      const size_t count = std::min(capacity, memory_.size() - position_);
      if (count != 0) std::memcpy(to, memory_.data() + position_, count);
      position_ += count;
      return count;
    }
    if (at_end_) return 0;
    while (true) {
      const ssize_t count = ::read(fd_, to, capacity);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return std::nullopt;
      const auto got = static_cast<size_t>(count);
      position_ += got;
      // A short read at the full size is the end; no further read is needed.
      at_end_ = got < capacity && position_ == size_;
      return got;
    }
  }

  // Reads from `offset` without affecting Read. The input must have a size.
  std::optional<size_t> ReadAt(uint64_t offset, char* to, size_t capacity) const {
    if (fd_ < 0) {
      const size_t begin = std::min<uint64_t>(offset, memory_.size());
      const size_t count = std::min(capacity, memory_.size() - begin);
      if (count != 0) std::memcpy(to, memory_.data() + begin, count);
      return count;
    }
    size_t have = 0;
    while (have < capacity) {
      const ssize_t count =
          ::pread(fd_, to + have, capacity - have, static_cast<off_t>(offset + have));
      if (count == 0) break;
      if (count < 0 && errno != EINTR) return std::nullopt;
      if (count > 0) have += static_cast<size_t>(count);
    }
    return have;
  }

  void set_size(uint64_t size) { size_ = size; }
  std::optional<uint64_t> size() const { return size_; }

 private:
  int fd_ = -1;  // -1: memory
  bool owned_ = false;
  std::string memory_;
  uint64_t position_ = 0;  // bytes delivered so far
  bool at_end_ = false;
  std::optional<uint64_t> size_;
};

// Streaming decoder of one compression.
class Decoder {
 public:
  struct Step {
    size_t consumed = 0;
    size_t produced = 0;
    bool member_end = false;
    const char* error = nullptr;
  };

  virtual ~Decoder() = default;
  virtual Step Decode(std::string_view in, char* out, size_t capacity) = 0;
  // Prepares for the next member; returns true if `next` begins one.
  virtual bool StartsMember(std::string_view next) = 0;
};

class GzipDecoder : public Decoder {
 public:
  GzipDecoder() { ready_ = inflateInit2(&stream_, MAX_WBITS + 16) == Z_OK; }
  ~GzipDecoder() override { inflateEnd(&stream_); }
  GzipDecoder(const GzipDecoder&) = delete;
  GzipDecoder& operator=(const GzipDecoder&) = delete;

  Step Decode(std::string_view in, char* out, size_t capacity) override {
    if (!ready_) return {.error = "zlib is out of memory"};
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream_.avail_in = static_cast<uInt>(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = static_cast<uInt>(capacity);
    const int status = inflate(&stream_, Z_NO_FLUSH);
    Step step{.consumed = in.size() - stream_.avail_in, .produced = capacity - stream_.avail_out};
    step.member_end = status == Z_STREAM_END;
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
      step.error = stream_.msg != nullptr ? stream_.msg : "not gzip data";
    }
    return step;
  }

  bool StartsMember(std::string_view next) override {
    return next.starts_with("\x1f\x8b") && inflateReset(&stream_) == Z_OK;
  }

 private:
  z_stream stream_{};
  bool ready_ = false;
};

class ZstdDecoder : public Decoder {
 public:
  ZstdDecoder() : stream_(ZSTD_createDStream()) {}
  ~ZstdDecoder() override { ZSTD_freeDStream(stream_); }
  ZstdDecoder(const ZstdDecoder&) = delete;
  ZstdDecoder& operator=(const ZstdDecoder&) = delete;

  Step Decode(std::string_view in, char* out, size_t capacity) override {
    if (stream_ == nullptr) return {.error = "zstd is out of memory"};
    ZSTD_inBuffer input{in.data(), in.size(), 0};
    ZSTD_outBuffer output{out, capacity, 0};
    const size_t status = ZSTD_decompressStream(stream_, &output, &input);
    Step step{.consumed = input.pos, .produced = output.pos};
    if (ZSTD_isError(status) != 0) {
      step.error = ZSTD_getErrorName(status);
    } else {
      step.member_end = status == 0;
    }
    return step;
  }

  bool StartsMember(std::string_view next) override {
    return DetectCompression(next) == Compression::kZstd;
  }

 private:
  ZSTD_DStream* stream_;
};

std::unique_ptr<Decoder> MakeDecoder(Compression compression) {
  switch (compression) {
    case Compression::kNone: return nullptr;
    case Compression::kGzip: return std::make_unique<GzipDecoder>();
    case Compression::kZstd: return std::make_unique<ZstdDecoder>();
  }
  return nullptr;
}

}  // namespace

std::string_view Name(Compression compression) {
  switch (compression) {
    case Compression::kNone: return "none";
    case Compression::kGzip: return "gzip";
    case Compression::kZstd: return "zstd";
  }
  return "none";
}

Compression DetectCompression(std::string_view beginning) {
  if (beginning.starts_with("\x1f\x8b\x08")) return Compression::kGzip;
  if (beginning.starts_with("\x28\xb5\x2f\xfd")) return Compression::kZstd;
  const bool skippable_frame = beginning.size() >= 4 && (beginning[0] & 0xf0) == 0x50 &&
                               beginning.substr(1, 3) == "\x2a\x4d\x18";
  return skippable_frame ? Compression::kZstd : Compression::kNone;
}

class ByteSource::Impl {
  // kReadBufferBytes that stay untouched until they are read.
  using Buffer = std::unique_ptr<char[]>;
  static Buffer NewBuffer() { return std::make_unique_for_overwrite<char[]>(kReadBufferBytes); }

 public:
  Impl(std::string name, std::unique_ptr<Input> input, const Limits& limits)
      : name_(std::move(name)), input_(std::move(input)), limits_(limits) {}

  Result<std::string_view> Next() {
    if (!peeked_.empty()) {
      // The buffer stays valid until the next call.
      current_.swap(peeked_);
      peeked_.clear();
      return std::string_view(current_);
    }
    return Produce();
  }

  Result<std::string_view> Peek(size_t count) {
    while (peeked_.size() < count) {
      ETUDE_ASSIGN_OR_RETURN(const std::string_view chunk, Produce());
      if (chunk.empty()) break;
      peeked_.append(chunk);
    }
    return std::string_view(peeked_).substr(0, count);
  }

  bool can_read_at() const { return started_ && decoder_ == nullptr && input_->size().has_value(); }

  Result<size_t> ReadAt(uint64_t offset, std::span<char> to) const {
    const auto count = input_->ReadAt(offset, to.data(), to.size());
    if (!count) return MakeError(ErrorCode::kIo, name_ + ": cannot read: " + std::strerror(errno));
    return *count;
  }

  const std::string& name() const { return name_; }
  Compression compression() const { return compression_; }
  bool cut() const { return cut_; }
  uint64_t trailing_bytes() const { return trailing_; }
  uint64_t bytes_in() const { return bytes_in_; }
  std::optional<uint64_t> size_in() const { return input_->size(); }
  uint64_t bytes_out() const { return bytes_out_; }

 private:
  Result<std::string_view> Produce() {
    if (error_) return tl::unexpected<Error>(*error_);
    auto chunk = started_ ? Continue() : Start();
    if (!chunk) error_ = chunk.error();
    return chunk;
  }

  Result<std::string_view> Start() {
    started_ = true;
    ETUDE_RETURN_IF_ERROR(Need(4));
    compression_ = DetectCompression(pending_);
    decoder_ = MakeDecoder(compression_);
    if (decoder_ != nullptr) out_buffer_ = NewBuffer();
    return Continue();
  }

  Result<std::string_view> Continue() {
    if (done_) return std::string_view();
    return decoder_ == nullptr ? ContinuePlain() : ContinueCompressed();
  }

  Result<std::string_view> ContinuePlain() {
    if (pending_.empty()) ETUDE_RETURN_IF_ERROR(Need(1));
    const std::string_view chunk = std::exchange(pending_, {});
    done_ = chunk.empty();
    bytes_out_ += chunk.size();
    ETUDE_RETURN_IF_ERROR(CheckLimits());
    return chunk;
  }

  Result<std::string_view> ContinueCompressed() {
    size_t produced = 0;
    while (produced < kReadBufferBytes && !done_) {
      if (between_members_) {
        ETUDE_RETURN_IF_ERROR(BeginMember());
        continue;
      }
      if (pending_.empty()) ETUDE_RETURN_IF_ERROR(Need(1));
      const bool at_end = pending_.empty();
      const Decoder::Step step =
          decoder_->Decode(pending_, out_buffer_.get() + produced, kReadBufferBytes - produced);
      pending_.remove_prefix(step.consumed);
      consumed_ += step.consumed;
      produced += step.produced;
      bytes_out_ += step.produced;
      if (step.error != nullptr) return BadInput(DamageMessage(step.error));
      ETUDE_RETURN_IF_ERROR(CheckLimits());
      if (step.member_end) {
        between_members_ = true;
      } else if (at_end && step.produced == 0) {
        cut_ = true;
        done_ = true;
      }
    }
    return std::string_view(out_buffer_.get(), produced);
  }

  // Checks what follows a complete member: another one, nothing, or foreign bytes.
  Status BeginMember() {
    if (pending_.size() < 4) ETUDE_RETURN_IF_ERROR(Need(4));
    if (decoder_->StartsMember(pending_)) {
      between_members_ = false;
      return {};
    }
    while (!pending_.empty()) {
      trailing_ += pending_.size();
      pending_ = {};
      ETUDE_RETURN_IF_ERROR(Need(1));
    }
    done_ = true;
    return {};
  }

  // Reads until `count` bytes are pending or the file ends.
  Status Need(size_t count) {
    if (!pending_.empty()) std::memmove(in_buffer_.get(), pending_.data(), pending_.size());
    size_t have = pending_.size();
    while (have < count && !input_ended_) {
      const auto got = input_->Read(in_buffer_.get() + have, kReadBufferBytes - have);
      if (!got) {
        return MakeError(ErrorCode::kIo, name_ + ": cannot read: " + std::strerror(errno));
      }
      input_ended_ = *got == 0;
      bytes_in_ += *got;
      have += *got;
    }
    pending_ = std::string_view(in_buffer_.get(), have);
    return {};
  }

  Status CheckLimits() const {
    if (bytes_out_ > limits_.total_bytes) {
      return BadInput(name_ + ": more than " + std::to_string(limits_.total_bytes) +
                      " uncompressed bytes (limit 'total_bytes')");
    }
    const bool past_grace = decoder_ != nullptr && bytes_out_ > limits_.ratio_grace_bytes;
    if (past_grace && bytes_out_ / std::max<uint64_t>(consumed_, 1) > limits_.ratio) {
      return BadInput(name_ + ":compressed byte " + std::to_string(consumed_) +
                      ": expands more than " + std::to_string(limits_.ratio) +
                      " times (limit 'ratio'): a compression bomb?");
    }
    return {};
  }

  std::string DamageMessage(const char* reason) const {
    return name_ + ":compressed byte " + std::to_string(consumed_) + ": damaged " +
           std::string(Name(compression_)) + " data: " + reason;
  }

  std::string name_;
  std::unique_ptr<Input> input_;
  Limits limits_;
  std::optional<Error> error_;
  bool started_ = false;
  bool done_ = false;
  bool input_ended_ = false;
  bool between_members_ = false;
  bool cut_ = false;
  Compression compression_ = Compression::kNone;
  std::unique_ptr<Decoder> decoder_;
  Buffer in_buffer_ = NewBuffer();
  std::string_view pending_;  // unconsumed bytes of in_buffer_
  Buffer out_buffer_;
  std::string peeked_;
  std::string current_;  // last result of Next, if it was peeked before
  uint64_t bytes_in_ = 0;
  uint64_t consumed_ = 0;  // compressed bytes consumed by the decoder
  uint64_t bytes_out_ = 0;
  uint64_t trailing_ = 0;
};

ByteSource::ByteSource(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ByteSource::ByteSource(ByteSource&&) noexcept = default;
ByteSource& ByteSource::operator=(ByteSource&&) noexcept = default;
ByteSource::~ByteSource() = default;

Result<ByteSource> ByteSource::Open(const std::string& path, const Limits& limits) {
  if (path == "-") {
    return ByteSource(
        std::make_unique<Impl>("stdin", std::make_unique<Input>(STDIN_FILENO, false), limits));
  }
  if (path.empty()) {
    return MakeError(ErrorCode::kUsage, "found an empty file name, expected a file name");
  }
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return MakeError(ErrorCode::kIo, path + ": cannot open: " + std::strerror(errno));
  }
  auto input = std::make_unique<Input>(fd, true);
  struct stat info {};
  if (::fstat(fd, &info) == 0) {
    if (S_ISDIR(info.st_mode)) return BadInput(path + ": found a folder, expected a file");
    if (S_ISREG(info.st_mode)) input->set_size(static_cast<uint64_t>(info.st_size));
  }
  return ByteSource(std::make_unique<Impl>(path, std::move(input), limits));
}

ByteSource ByteSource::FromMemory(std::string name, std::string bytes, const Limits& limits) {
  auto input = std::make_unique<Input>(std::move(bytes));
  return ByteSource(std::make_unique<Impl>(std::move(name), std::move(input), limits));
}

Result<std::string_view> ByteSource::Next() { return impl_->Next(); }
Result<std::string_view> ByteSource::Peek(size_t count) { return impl_->Peek(count); }
bool ByteSource::can_read_at() const { return impl_->can_read_at(); }
Result<size_t> ByteSource::ReadAt(uint64_t offset, std::span<char> to) const {
  return impl_->ReadAt(offset, to);
}
const std::string& ByteSource::name() const { return impl_->name(); }
Compression ByteSource::compression() const { return impl_->compression(); }
bool ByteSource::cut() const { return impl_->cut(); }
uint64_t ByteSource::trailing_bytes() const { return impl_->trailing_bytes(); }
uint64_t ByteSource::bytes_in() const { return impl_->bytes_in(); }
std::optional<uint64_t> ByteSource::size_in() const { return impl_->size_in(); }
uint64_t ByteSource::bytes_out() const { return impl_->bytes_out(); }

Status CheckRegular(const std::string& path) {
  if (path == "-") return BadInput("found '-', standard input, expected a file");
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) return {};
  const char* kind = S_ISFIFO(info.st_mode)   ? "a pipe"
                     : S_ISSOCK(info.st_mode) ? "a socket"
                                              : "a device";
  return BadInput(path + ": found " + kind + ", expected a file");
}

Result<std::string> ReadWholeFile(const std::string& path, const Limits& limits, uint64_t most,
                                  std::string_view remark) {
  ETUDE_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path, limits));
  return ReadWholeFile(source, most, remark);
}

Result<std::string> ReadWholeFile(ByteSource& source, uint64_t most, std::string_view remark) {
  std::string bytes;
  while (true) {
    ETUDE_ASSIGN_OR_RETURN(const std::string_view chunk, source.Next());
    if (chunk.empty()) return bytes;
    if (bytes.empty()) bytes.reserve(std::min({source.size_in().value_or(0), most, kMostReserved}));
    if (bytes.size() + chunk.size() > most) {
      return BadInput(source.name() + ": more than " + std::to_string(most) + " bytes" +
                      std::string(remark));
    }
    bytes += chunk;
  }
}

Result<std::string> ReadWholeFile(const std::string& path, const Limits& limits) {
  return ReadWholeFile(path, limits, limits.element_bytes, " (--limit element_bytes=N)");
}

}  // namespace etude
