// The one file of the recorder that includes c10d, whose headers take long to compile.

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include "src/torch/recorder/value_encoder.h"

namespace etude::recorder {

bool EncodeDistributed(const c10::IValue& value, const std::string& class_name,
                       capture::RecordBuffer& buffer) {
  const size_t begin = buffer.size();
  try {
    if (class_name.ends_with(".ProcessGroup")) {
      const auto group = value.toCustomClass<c10d::ProcessGroup>();
      buffer.Mark(capture::Tag::kProcessGroup);
      buffer.Text(group->getGroupName());
      buffer.Text(group->getGroupDesc());
      buffer.Text(group->getBackendName());
      buffer.Varint(static_cast<uint64_t>(group->getRank()));
      buffer.Varint(static_cast<uint64_t>(group->getSize()));
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
