#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/compat/chakra/byte_buffer.h"
#include "src/formats/chakra/chakra_frames.h"
#include "src/formats/chakra/chakra_writer.h"

namespace etude {

struct ChakraJsonReport {
  uint64_t nodes = 0;
  uint64_t bytes = 0;
  uint64_t malformed = 0;       // messages that are no nodes: left out
  uint64_t unknown_fields = 0;  // of nodes and metadata, that Chakra 1.0.0 does not have: left out
  bool no_metadata = false;     // the file begins with a node; "metadata" is empty
  uint64_t misplaced = 0;       // metadata that is not the first message: left out
  bool cut = false;             // the file ends within a message
};

// Makes one JSON document of a Chakra trace that comes in chunks of any size:
// {"metadata": …, "nodes": […]}, each message as protobuf's JSON mapping has it. Memory grows with
// the largest message only. Push, then Finish once; after an error nothing but destruction is
// allowed. Not thread-safe.
class ChakraJson {
 public:
  // `strict`: what is cut or malformed is an error instead of counted.
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
  compat::ByteBuffer out_;
  compat::ByteBuffer message_;
};

}  // namespace etude
