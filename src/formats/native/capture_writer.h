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

// Writes a capture file while its program runs: a thread of its own compresses and writes blocks.
// Thread-safe. Uses nothing of Etude besides the format, so that it can live in other processes.
class CaptureWriter {
 public:
  struct Options {
    size_t most_waiting_bytes = size_t{64} << 20;  // of blocks not written yet; more wait
    uint64_t most_file_bytes = uint64_t{8} << 30;  // events beyond are dropped and counted
  };

  // Creates `path` and writes the header, which is JSON; `error` says what the system refused.
  static std::unique_ptr<CaptureWriter> Create(const std::string& path, std::string_view header,
                                               const Options& options, std::string& error);
  // Without Finish the file ends after the last block that was written.
  ~CaptureWriter();

  // Numbers of definitions, which are in the file before any block that is added afterwards.
  uint32_t DefineString(std::string_view text);
  // An empty schema: none.
  uint32_t DefineFunction(std::string_view name, std::string_view schema);
  // Without `posix_thread` the record is that of versions before 3.
  uint32_t DefineThread(uint64_t node, uint64_t torch_thread, uint64_t system_thread,
                        std::optional<uint32_t> posix_thread = std::nullopt);

  // Gives a block of events to the writing thread; waits while too much is waiting.
  void AddEvents(std::string records);
  // Writes what is waiting and the end, whose JSON object gets the counts of what was dropped.
  // False if not all could be written; `error` says why.
  bool Finish(std::string_view end_members, std::string& error);

 private:
  CaptureWriter(int file, const Options& options);

  void Run();
  // With the lock held; unlocks while it writes.
  void WriteBlock(BlockKind kind, std::string records, std::unique_lock<std::mutex>& lock);
  void WriteDefinitions(std::unique_lock<std::mutex>& lock);

  const int file_;
  const Options options_;
  std::mutex mutex_;
  std::condition_variable work_;  // there is something to write, or it is over
  std::condition_variable room_;  // something was written
  std::deque<std::string> waiting_;
  size_t waiting_bytes_ = 0;
  bool over_ = false;
  RecordBuffer definitions_;  // not written yet
  std::unordered_map<std::string, uint32_t> strings_;
  uint32_t functions_ = 0;
  uint32_t threads_ = 0;
  uint64_t written_bytes_ = 0;
  uint64_t dropped_blocks_ = 0;
  std::string error_;
  std::thread thread_;
};

}  // namespace etude::capture
