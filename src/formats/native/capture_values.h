#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/limits.h"
#include "src/formats/native/capture_format.h"
#include "src/trace/index_statistics.h"
#include "src/trace/trace_builder.h"

namespace etude {

// Reads arguments and results in native captures, with the type names of PyTorch's observer.
class CaptureValues {
 public:
  // Both must outlive it; `strings` are those defined in the file so far.
  CaptureValues(TraceBuilder& builder, const std::vector<StringId>& strings, const Limits& limits)
      : builder_(builder), strings_(strings), limits_(limits) {}

  // Reads a count and the values; nullopt if the records are invalid.
  std::optional<ValueListId> Read(capture::RecordView& records);
  // Returns the ranges among the values read last, as the observer writes them: {"0":[min,max],…}
  // by tensor index; "" if there are none.
  std::string ranges() const { return ranges_.empty() ? ranges_ : ranges_ + "}"; }
  // Returns the statistics among the values read last, in tensor order.
  const std::vector<IndexStatistics>& statistics() const { return statistics_; }
  // Returns the elements among the values read last, see index_statistics.h; "" if there are none.
  std::string index_values() const {
    return index_values_.empty() ? index_values_ : index_values_ + "}";
  }
  // Returns the process group among the values read last, nullptr if there was none.
  const ProcessGroup* group() const { return group_ ? &*group_ : nullptr; }
  // Returns all distinct process groups so far.
  const std::vector<ProcessGroup>& groups() const { return groups_; }

 private:
  std::optional<Value> ReadValue(capture::RecordView& records, size_t depth);
  std::optional<Value> ReadList(capture::RecordView& records, std::string_view word, size_t depth);
  std::optional<Value> ReadTensor(capture::RecordView& records);
  // Read facts of the tensor `number` of these values; return false if the records are invalid.
  bool ReadIndexValues(capture::RecordView& records, uint64_t number);
  bool ReadIntegerFacts(capture::RecordView& records, uint64_t number, bool with_statistics);
  std::optional<Value> ReadGroup(capture::RecordView& records, bool with_ranks);
  bool ReadNumber(capture::RecordView& records, TensorUse& use);
  std::optional<IntListId> ReadInts(capture::RecordView& records, uint64_t count, bool with_sign);
  std::optional<StringId> ReadString(capture::RecordView& records);
  Value Opaque(std::string_view type, std::string_view text);
  StringId Type(std::string_view name) { return builder_.Intern(name); }

  TraceBuilder& builder_;
  const std::vector<StringId>& strings_;
  const Limits& limits_;
  std::vector<int64_t> ints_;
  uint64_t tensors_ = 0;  // among the current values
  std::string ranges_;
  std::vector<IndexStatistics> statistics_;
  std::string index_values_;
  std::optional<ProcessGroup> group_;
  std::vector<ProcessGroup> groups_;
};

}  // namespace etude
