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

// A trace as a program: nodes in their order as tokens, which say what is alike in many nodes
// (kind, place, lane, the name but for its numbers, how many dependencies of which kind, which
// facts there are), repeated ones as motifs of motifs; and what differs from one node of a token to
// the next (how far back its dependencies are, times, ids, sizes, arguments) as numbers beside it,
// each as far from what the nodes before let expect. Lossless for every trace: docs/models/job.md.
// Immutable; const methods may be called from several threads.
class PackedTrace {
 public:
  // Errors are those of Limits.
  static Result<PackedTrace> Pack(const Trace& trace, const Limits& limits = {});
  // The trace again; tables have another order and nothing that no node uses. kBadInput if bytes
  // were of none, or of one beyond the limits.
  Result<Trace> Unpack(const Limits& limits = {}) const;

  // All of it as bytes, for files: docs/formats/packed.md.
  std::string ToBytes() const;
  static Result<PackedTrace> FromBytes(std::string_view bytes);

  size_t node_count() const { return node_count_; }
  // Kinds of nodes.
  size_t token_count() const { return tokens_.size(); }
  const MotifProgram& program() const { return program_; }
  // Bytes that all of it takes.
  size_t memory_bytes() const;

 private:
  friend class PackedTraceReader;
  friend class TracePacker;
  friend class TraceUnpacker;

  // What a number of a node or of a table says.
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
    kRepeated,  // reference of a node inside a motif that was there before: how far from it
  };
  static constexpr size_t kFields = static_cast<size_t>(Field::kRepeated) + 1;

  uint64_t source_bytes_ = 0;  // that it was read from; 0: it was packed here
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
  std::vector<std::string> templates_;         // of texts, without their numbers
  std::vector<std::vector<uint64_t>> tokens_;  // what each says, in the order of the nodes' facts
  MotifProgram program_;
  std::array<PackedNumbers, kFields> numbers_;  // by Field
};

}  // namespace etude
