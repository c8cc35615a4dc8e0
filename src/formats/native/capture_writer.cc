#include "src/formats/native/capture_writer.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "src/base/open_file.h"

namespace etude::capture {
namespace {

constexpr int kCompressionLevel = 1;

// Writes the bytes; returns "" or the system's error message.
std::string ErrorOfWriting(int file, std::string_view bytes) {
  return WriteAll(file, bytes) ? std::string() : std::string("write: ") + strerror(errno);
}

// Returns header and frame of a block; "" if zstd is out of memory.
std::string PackBlock(BlockKind kind, std::string_view records) {
  std::string block(BlockHeader::kBytes + ZSTD_compressBound(records.size()), '\0');
  const size_t packed =
      ZSTD_compress(block.data() + BlockHeader::kBytes, block.size() - BlockHeader::kBytes,
                    records.data(), records.size(), kCompressionLevel);
  if (ZSTD_isError(packed)) return {};
  block.resize(BlockHeader::kBytes + packed);
  BlockHeader header;
  header.kind = static_cast<uint8_t>(kind);
  header.raw_bytes = static_cast<uint32_t>(records.size());
  header.packed_bytes = static_cast<uint32_t>(packed);
  header.checksum = static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(block.data() + BlockHeader::kBytes), packed));
  std::memcpy(block.data(), &header, sizeof header);
  return block;
}

}  // namespace

std::unique_ptr<CaptureWriter> CaptureWriter::Create(const std::string& path,
                                                     std::string_view header,
                                                     const Options& options, std::string& error) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) {
    error = path + ": " + strerror(errno);
    return nullptr;
  }
  std::unique_ptr<CaptureWriter> writer(new CaptureWriter(file, options));
  error = ErrorOfWriting(file, kMagic);
  if (error.empty()) error = ErrorOfWriting(file, PackBlock(BlockKind::kHeader, header));
  if (!error.empty()) {
    error = path + ": " + error;
    return nullptr;
  }
  writer->thread_ = std::thread([own = writer.get()] { own->Run(); });
  return writer;
}

CaptureWriter::CaptureWriter(int file, const Options& options) : file_(file), options_(options) {}

CaptureWriter::~CaptureWriter() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  work_.notify_all();
  if (thread_.joinable()) thread_.join();
  close(file_);
}

uint32_t CaptureWriter::DefineString(std::string_view text) {
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] =
      strings_.try_emplace(std::string(text), static_cast<uint32_t>(strings_.size()));
  if (is_new) {
    definitions_.Mark(Definition::kString);
    definitions_.Text(text);
  }
  return at->second;
}

uint32_t CaptureWriter::DefineFunction(std::string_view name, std::string_view schema) {
  const uint32_t name_string = DefineString(name);
  const uint32_t schema_string = schema.empty() ? 0 : DefineString(schema) + 1;
  const std::lock_guard lock(mutex_);
  definitions_.Mark(Definition::kFunction);
  definitions_.Varint(name_string);
  definitions_.Varint(schema_string);
  return functions_++;
}

uint32_t CaptureWriter::DefineThread(uint64_t node, uint64_t torch_thread, uint64_t system_thread,
                                     std::optional<uint32_t> posix_thread) {
  const std::lock_guard lock(mutex_);
  definitions_.Mark(Definition::kThread);
  definitions_.Varint(threads_);
  definitions_.Varint(node);
  definitions_.Varint(torch_thread);
  definitions_.Varint(system_thread);
  if (posix_thread) definitions_.Varint(*posix_thread);
  return threads_++;
}

void CaptureWriter::AddEvents(std::string records) {
  std::unique_lock lock(mutex_);
  room_.wait(lock, [&] { return over_ || waiting_bytes_ < options_.most_waiting_bytes; });
  if (over_) return;
  waiting_bytes_ += records.size();
  waiting_.push_back(std::move(records));
  work_.notify_one();
}

bool CaptureWriter::Finish(std::string_view end_members, std::string& error) {
  std::unique_lock lock(mutex_);
  over_ = true;
  work_.notify_all();
  lock.unlock();
  thread_.join();
  lock.lock();
  WriteDefinitions(lock);
  std::string end = "{\"dropped_blocks\": " + std::to_string(dropped_blocks_);
  if (!end_members.empty()) end.append(", ").append(end_members);
  WriteBlock(BlockKind::kEnd, end + "}", lock);
  error = error_;
  return error_.empty();
}

void CaptureWriter::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [&] { return over_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    std::string records = std::move(waiting_.front());
    waiting_.pop_front();
    const size_t bytes = records.size();
    if (written_bytes_ > options_.most_file_bytes || !error_.empty()) {
      ++dropped_blocks_;
    } else {
      WriteDefinitions(lock);
      WriteBlock(BlockKind::kEvents, std::move(records), lock);
    }
    waiting_bytes_ -= bytes;
    room_.notify_all();
  }
}

void CaptureWriter::WriteDefinitions(std::unique_lock<std::mutex>& lock) {
  if (definitions_.empty()) return;
  WriteBlock(BlockKind::kDefinitions, definitions_.Take(), lock);
}

void CaptureWriter::WriteBlock(BlockKind kind, std::string records,
                               std::unique_lock<std::mutex>& lock) {
  if (!error_.empty()) return;
  lock.unlock();
  const std::string block = PackBlock(kind, records);
  std::string error = block.empty() ? "zstd is out of memory" : ErrorOfWriting(file_, block);
  lock.lock();
  written_bytes_ += block.size();
  if (!error.empty()) error_ = std::move(error);
}

}  // namespace etude::capture
