#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/container/byte_buffer.h"
#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/formats/chakra/chakra_frames.h"
#include "src/formats/chakra/chakra_writer.h"

namespace etude {

struct ChakraJsonReport {
  uint64_t nodes = 0;
  uint64_t bytes = 0;
  uint64_t malformed = 0;       // messages that are not nodes: skipped
  uint64_t unknown_fields = 0;  // fields of nodes and metadata that Chakra 1.0.0 lacks: skipped
  bool no_metadata = false;     // the file begins with a node; "metadata" is empty
  uint64_t misplaced = 0;       // metadata after the first message: skipped
  bool cut = false;             // the file ends inside a message
};

// Converts a Chakra trace, received in chunks of any size, to one JSON document: {"metadata": …,
// "nodes": […]}, with each message in protobuf's JSON mapping. Memory is bounded by the largest
// message. Call Push repeatedly, then Finish once; destroy it after an error. Not thread-safe.
class ChakraJson {
 public:
  // `strict`: truncated or malformed data are errors instead of counted.
  ChakraJson(std::string name, bool strict, const Limits& limits, const ByteSink& sink)
      : name_(std::move(name)), strict_(strict), frames_(name_, limits), sink_(sink) {}

  Status Push(std::string_view chunk);
  Result<ChakraJsonReport> Finish(bool cut);

 private:
  Status TakeMessage(std::string_view message);
  Status Flush();

  std::string name_;
  const bool strict_;
  chakra::Frames frames_;
  const ByteSink& sink_;
  ChakraJsonReport report_;
  ByteBuffer out_;
  ByteBuffer message_;
};

}  // namespace etude
