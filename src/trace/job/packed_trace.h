#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/trace/job/motifs.h"
#include "src/trace/job/packed_numbers.h"
#include "src/trace/trace.h"

namespace etude {

// A trace as a program. Nodes are tokens, in order; a token has the facts that many nodes share
// (kind, place, lane, name without numbers, number of dependencies by kind, which facts are
// present). Repeated token sequences are motifs of motifs. Facts that vary among nodes of a token
// (dependency distances, times, ids, sizes, arguments) are separate numbers, stored as differences
// from predictions. Lossless for every trace: docs/models/job.md. Immutable; const methods are
// thread-safe.
class PackedTrace {
 public:
  // Packs `trace`. Fails only if a limit is exceeded.
  static Result<PackedTrace> Pack(const Trace& trace, const Limits& limits = {});
  // Returns the trace. Its tables may have another order and contain only entries in use. kBadInput
  // if the bytes it was read from are invalid or exceed a limit.
  Result<Trace> Unpack(const Limits& limits = {}) const;

  // Converts to and from the bytes of a file: docs/formats/packed.md.
  std::string ToBytes() const;
  static Result<PackedTrace> FromBytes(std::string_view bytes);

  size_t node_count() const { return node_count_; }
  // Returns the number of distinct tokens.
  size_t token_count() const { return tokens_.size(); }
  const MotifProgram& program() const { return program_; }
  // Returns the total size in bytes.
  size_t memory_bytes() const;

 private:
  friend class PackedTraceReader;
  friend class TracePacker;
  friend class TraceUnpacker;

  // Meaning of a number of a node or a table.
  enum class Field : uint8_t {
    kTextTemplate,
    kTextNumber,
    kIntCount,
    kInt,
    kTensorPart,
    kValueCount,
    kValuePart,
    kLanePart,
    kGroupPart,
    kDanglingPart,
    kId,
    kName,
    kParent,
    kStart,
    kDuration,
    kExclusive,
    kInputs,
    kOutputs,
    kRfId,
    kFwParent,
    kSeqId,
    kFwTid,
    kText,
    kCorrelation,
    kExternalId,
    kDependency,
    kComm,
    kExtra,
    kRepeated,  // reference inside a repeated motif: difference from that in its first occurrence
  };
  static constexpr size_t kFields = static_cast<size_t>(Field::kRepeated) + 1;

  uint64_t source_bytes_ = 0;  // size of the bytes that it was read from; 0: packed in this process
  size_t node_count_ = 0;
  size_t text_count_ = 0;
  size_t int_list_count_ = 0;
  size_t tensor_count_ = 0;
  size_t value_list_count_ = 0;
  size_t lane_count_ = 0;
  size_t group_count_ = 0;
  size_t dangling_count_ = 0;
  TraceInfo info_;
  Stats stats_;
  std::vector<std::string> templates_;         // texts without their numbers
  std::vector<std::vector<uint64_t>> tokens_;  // contents of each, in the order of the nodes' facts
  MotifProgram program_;
  std::array<PackedNumbers, kFields> numbers_;  // by Field
};

}  // namespace etude
