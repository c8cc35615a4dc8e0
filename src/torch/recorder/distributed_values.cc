// The only file of the recorder that includes c10d, whose headers are slow to compile.

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include "src/torch/recorder/value_encoder.h"

namespace etude::recorder {
namespace {

// Returns the job's ranks of a group, in the group's order; empty if its backend does not provide
// them, as for the default group.
template <typename Group>
std::vector<uint64_t> RanksOf(const Group& group) {
  // Early versions of torch lack these options.
  if constexpr (requires {
                  group.getDefaultBackend()->getBackendOptions()->global_ranks_in_group;
                }) {
    try {
      const auto options = group.getDefaultBackend()->getBackendOptions();
      if (options) return options->global_ranks_in_group;
    } catch (const std::exception&) {
      return {};
    }
  }
  return {};
}

void EncodeGroup(const c10d::ProcessGroup& group, capture::RecordBuffer& buffer) {
  const std::vector<uint64_t> ranks = RanksOf(group);
  buffer.Mark(ranks.empty() ? capture::Tag::kProcessGroup : capture::Tag::kProcessGroupWithRanks);
  buffer.Text(group.getGroupName());
  buffer.Text(group.getGroupDesc());
  buffer.Text(group.getBackendName());
  buffer.Varint(static_cast<uint64_t>(group.getRank()));
  buffer.Varint(static_cast<uint64_t>(group.getSize()));
  if (ranks.empty()) return;
  buffer.Varint(ranks.size());
  for (const uint64_t rank : ranks) buffer.Varint(rank);
}

}  // namespace

bool EncodeDistributed(const c10::IValue& value, const std::string& class_name,
                       capture::RecordBuffer& buffer) {
  const size_t begin = buffer.size();
  try {
    if (class_name.ends_with(".ProcessGroup")) {
      EncodeGroup(*value.toCustomClass<c10d::ProcessGroup>(), buffer);
      return true;
    }
    if (class_name.ends_with(".ReduceOp")) {
      const auto op = value.toCustomClass<c10d::ReduceOp>();
      buffer.Mark(capture::Tag::kReduceOp);
      buffer.Varint(op->op_);
      return true;
    }
  } catch (const std::exception&) {
    buffer.Truncate(begin);
  }
  return false;
}

}  // namespace etude::recorder
