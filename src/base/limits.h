#pragma once

#include <cstddef>
#include <cstdint>

namespace etude {

// Bounds on the resources that a file may require; `--limit NAME=N` changes one. Exceeding a limit
// is ErrorCode::kBadInput with the limit's name.
struct Limits {
  size_t depth = 256;                        // nesting of a JSON value or protobuf message
  size_t element_bytes = size_t{256} << 20;  // text of one node or event
  uint64_t nodes = 500'000'000;              // nodes of one trace
  uint64_t edges = 2'000'000'000;            // dependencies of one trace
  uint64_t ratio = 1000;                     // uncompressed over compressed bytes, past the first
                                             // `ratio_grace_bytes` of output
  uint64_t ratio_grace_bytes = uint64_t{64} << 20;
  uint64_t total_bytes = uint64_t{1} << 40;  // uncompressed bytes of one file
  uint64_t replay_bytes = 0;                 // max memory of a replay; 0: the machine's memory
};

}  // namespace etude
