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

// Splits a Chakra trace into its messages, each of which follows its length as a varint. Feed a
// chunk, then call Next until it returns nothing. Not thread-safe.
class Frames {
 public:
  // `name` is the file's name in error messages.
  Frames(std::string name, const Limits& limits)
      : name_(std::move(name)), limit_(limits.element_bytes) {}

  // Sets the next bytes. `chunk` must stay valid until Next returns nothing. Next must have
  // returned nothing before.
  void Feed(std::string_view chunk) { chunk_ = chunk; }
  // Returns the next message, valid until the next call of Next or Feed; nothing if it is
  // incomplete. kBadInput for an invalid length or one above the limit 'element_bytes'.
  Result<std::optional<std::string_view>> Next();

  // Returns "file:byte N (node message M)" for the last message of Next or, if that was nothing,
  // for the incomplete one.
  std::string Where() const;
  // Returns the index of that message in the file; 0 is the metadata.
  uint64_t number() const { return number_; }
  // Returns the offset in the file after the last message of Next.
  uint64_t end() const { return end_; }
  // Returns the number of bytes of an incomplete message.
  size_t pending() const { return pending_.size(); }

  // Return errors with Where(): malformed protobuf message; end of the file within the message.
  std::string Malformed(std::string_view why) const;
  std::string EndsEarly() const;

 private:
  Result<std::optional<std::string_view>> Cut(std::string_view bytes);
  Result<std::optional<std::string_view>> Complete();

  std::string name_;
  size_t limit_;
  std::string_view chunk_;
  std::string pending_;  // bytes of a message that spans chunks
  size_t wanted_ = 0;    // min size of the message, its length prefix included
  uint64_t begin_ = 0;   // offset of the message in Where()
  uint64_t end_ = 0;
  uint64_t number_ = 0;
  uint64_t returned_ = 0;  // number of messages returned by Next
};

}  // namespace etude::chakra
