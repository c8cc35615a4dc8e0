#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>

#include "src/formats/native/capture_format.h"

namespace etude::capture {

// Writes a capture file while its program runs; a thread of its own compresses and writes blocks.
// Thread-safe. Depends only on the format header, so that it can be used in other processes.
class CaptureWriter {
 public:
  struct Options {
    size_t most_waiting_bytes = size_t{64} << 20;  // max size of pending blocks; callers wait
                                                   // beyond it
    uint64_t most_file_bytes = uint64_t{8} << 30;  // events beyond are dropped and counted
  };

  // Creates `path` and writes the header, which is JSON; `error` receives the system's error
  // message.
  static std::unique_ptr<CaptureWriter> Create(const std::string& path, std::string_view header,
                                               const Options& options, std::string& error);
  // Without Finish the file ends after the last written block.
  ~CaptureWriter();

  // Returns the number of a definition, which precedes all later blocks in the file.
  uint32_t DefineString(std::string_view text);
  // Returns the number of a function; an empty schema means none.
  uint32_t DefineFunction(std::string_view name, std::string_view schema);
  // Returns the number of a thread. Without `posix_thread` the record is that of versions before 3.
  uint32_t DefineThread(uint64_t node, uint64_t torch_thread, uint64_t system_thread,
                        std::optional<uint32_t> posix_thread = std::nullopt);

  // Passes a block of events to the writing thread; waits while too much is pending.
  void AddEvents(std::string records);
  // Writes pending data and the end, whose JSON object gets the counts of dropped events. Returns
  // false and sets `error` if a write failed.
  bool Finish(std::string_view end_members, std::string& error);

 private:
  CaptureWriter(int file, const Options& options);

  void Run();
  // Requires the lock; unlocks while it writes.
  void WriteBlock(BlockKind kind, std::string records, std::unique_lock<std::mutex>& lock);
  void WriteDefinitions(std::unique_lock<std::mutex>& lock);

  const int file_;
  const Options options_;
  std::mutex mutex_;
  std::condition_variable work_;  // signalled if there is something to write, or at the end
  std::condition_variable room_;  // signalled after a write
  std::deque<std::string> waiting_;
  size_t waiting_bytes_ = 0;
  bool over_ = false;
  RecordBuffer definitions_;  // pending
  std::unordered_map<std::string, uint32_t> strings_;
  uint32_t functions_ = 0;
  uint32_t threads_ = 0;
  uint64_t written_bytes_ = 0;
  uint64_t dropped_blocks_ = 0;
  std::string error_;
  std::thread thread_;
};

}  // namespace etude::capture
