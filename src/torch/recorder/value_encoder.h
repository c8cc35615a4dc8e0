#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include <ATen/core/ivalue.h>

#include "src/formats/native/capture_format.h"
#include "src/formats/native/capture_writer.h"
#include "src/formats/pytorch_et/integer_facts.h"

namespace etude::recorder {

// Arguments of an operator that are scanned if they are integer tensors in CPU memory: one bit
// each; the last bit covers all from the 64th on. `statistics` is a subset of `ranges`.
struct IntegerArguments {
  uint64_t ranges = 0;      // minimum and maximum
  uint64_t statistics = 0;  // other members of IntegerFacts
};

// Encodes arguments and results of operators into records. One per thread and session.
class ValueEncoder {
 public:
  // Both must outlive the encoder. `value_bytes`: remaining bytes of index tensors to record
  // completely, shared by all threads.
  ValueEncoder(capture::CaptureWriter& writer, std::atomic<int64_t>& value_bytes)
      : writer_(writer), value_bytes_(value_bytes) {}

  // Appends the number of `values` and the values. Unreadable values, such as a tensor subclass
  // whose sizes throw, become kOpaque.
  void Encode(c10::ArrayRef<const c10::IValue> values, const IntegerArguments& integers,
              capture::RecordBuffer& buffer);

 private:
  void Encode(const c10::IValue& value, capture::RecordBuffer& buffer, int depth);
  void EncodeTensor(const at::Tensor& tensor, capture::RecordBuffer& buffer);
  void EncodeList(capture::Tag tag, c10::ArrayRef<c10::IValue> values,
                  capture::RecordBuffer& buffer, int depth);
  void EncodeObject(const c10::IValue& value, capture::RecordBuffer& buffer);
  void EncodeStatistics(const c10::TensorImpl& impl, const c10::StorageImpl& storage,
                        const capture::IntegerFacts& facts, capture::RecordBuffer& buffer);
  bool TakeValueBytes(int64_t bytes);
  uint64_t TypeString(caffe2::TypeMeta type);
  uint64_t DeviceString(c10::Device device);

  capture::CaptureWriter& writer_;
  std::atomic<int64_t>& value_bytes_;
  bool with_ranges_ = false;
  bool with_statistics_ = false;
  capture::IntegerReader reader_;
  // String number + 1, by number of the type or device; 0: none yet.
  std::vector<uint32_t> types_;
  std::vector<uint32_t> devices_;
};

// Appends a c10d process group or reduction. Returns false for objects of other classes.
bool EncodeDistributed(const c10::IValue& value, const std::string& class_name,
                       capture::RecordBuffer& buffer);

}  // namespace etude::recorder
