#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/formats/io/byte_source.h"

namespace etude::suite {

// A TFRecord file of TensorFlow: records with a length and checksums each. Records are read when
// they are needed; the file stays open.
class TfRecords {
 public:
  // Finds the records. kUnavailable for a missing file, kIo for an unreadable one, kBadInput if it
  // is compressed, ends within a record or has none, or if a length's checksum is wrong.
  static Result<TfRecords> Open(const std::string& path, const RunContext& context);

  int64_t size() const { return static_cast<int64_t>(places_.size()); }
  // kBadInput for a wrong checksum.
  Result<std::string> Read(int64_t number) const;
  // Names a record in messages: "chairs.tfrecords: record 7".
  std::string PlaceOf(int64_t number) const;

 private:
  struct Place {
    uint64_t begin = 0;
    uint64_t size = 0;  // bytes
  };
  TfRecords(ByteSource source, std::vector<Place> places)
      : source_(std::move(source)), places_(std::move(places)) {}

  ByteSource source_;
  std::vector<Place> places_;
};

// Returns a list of floats of a tf.train.Example, the usual message in such records. kBadInput,
// after `place`, if `record` is another message, lacks the feature or has another number of values
// than `count`.
Result<std::vector<float>> FloatsOf(std::string_view record, std::string_view feature,
                                    int64_t count, const std::string& place);

}  // namespace etude::suite
