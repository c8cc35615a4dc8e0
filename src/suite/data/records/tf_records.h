#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
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

// A tf.train.Example, the usual message in such records: lists of values by name. Refers to the
// record's bytes. kBadInput messages begin with `place`.
class TfExample {
 public:
  // kBadInput for another message.
  static Result<TfExample> Parse(std::string_view record, std::string place);

  const std::string& place() const { return place_; }
  // Returns a list of floats. kBadInput if there is none or it has another number of values than
  // `count`.
  Result<std::vector<float>> Floats(std::string_view feature, int64_t count) const;
  // Returns the only value of a list of strings. kBadInput if there is none or another number.
  Result<std::string_view> Bytes(std::string_view feature) const;

 private:
  explicit TfExample(std::string place) : place_(std::move(place)) {}
  // `find` returns the values in the bytes of a feature; nullopt if it is of another kind.
  template <typename Values>
  Result<Values> Read(std::optional<Values> (*find)(std::string_view feature),
                      std::string_view feature, int64_t count, std::string_view kind) const;

  std::string place_;
  std::map<std::string_view, std::string_view> features_;  // their bytes by name
};

}  // namespace etude::suite
