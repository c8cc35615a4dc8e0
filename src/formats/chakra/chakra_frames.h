#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "src/base/limits.h"
#include "src/base/result.h"

namespace etude::chakra {

// Cuts a Chakra trace into its messages: each has its length before it, a varint. Feed a chunk,
// then call Next until it has nothing more. Not thread-safe.
class Frames {
 public:
  // `name` appears in messages.
  Frames(std::string name, const Limits& limits)
      : name_(std::move(name)), limit_(limits.element_bytes) {}

  // `chunk` must stay in place until Next has returned nothing, which it must have done before.
  void Feed(std::string_view chunk) { chunk_ = chunk; }
  // The next message, valid until the next call of Next or Feed; nothing if it is not complete.
  // kBadInput for a length that cannot be one or is above the limit 'element_bytes'.
  Result<std::optional<std::string_view>> Next();

  // "file:byte N (node message M)": the message that Next returned last or, where that was
  // nothing, the one that is not complete.
  std::string Where() const;
  // Number of that message in the file; 0 is the metadata.
  uint64_t number() const { return number_; }
  // Offset in the file of what follows the message that Next returned last.
  uint64_t end() const { return end_; }
  // Bytes of a message that is not complete.
  size_t pending() const { return pending_.size(); }

  // Errors, with Where(): that message is none of protobuf; the file ends before it is complete.
  std::string Malformed(std::string_view why) const;
  std::string EndsEarly() const;

 private:
  Result<std::optional<std::string_view>> Cut(std::string_view bytes);
  Result<std::optional<std::string_view>> Complete();

  std::string name_;
  size_t limit_;
  std::string_view chunk_;
  std::string pending_;  // bytes of a message that spans chunks
  size_t wanted_ = 0;    // the message cannot be complete with fewer bytes, its length included
  uint64_t begin_ = 0;   // offset of the message that Where() names
  uint64_t end_ = 0;
  uint64_t number_ = 0;
  uint64_t returned_ = 0;  // messages that Next has returned
};

}  // namespace etude::chakra
