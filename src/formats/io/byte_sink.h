#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "src/base/result.h"

namespace etude {

// Receives the bytes of a file, piece by piece.
using ByteSink = std::function<Status(std::string_view)>;

// Buffers output and passes it on in pieces of about a megabyte. The sink must outlive it. Not
// thread-safe.
class SinkBuffer {
 public:
  explicit SinkBuffer(const ByteSink& sink) : sink_(sink) {}

  // Returns the pending text, to be appended to.
  std::string& text() { return text_; }
  Status Put(std::string_view text) {
    text_ += text;
    return FlushIfFull();
  }
  Status FlushIfFull() { return text_.size() < kPieceBytes ? Status() : Flush(); }
  Status Flush() {
    bytes_ += text_.size();
    ETUDE_RETURN_IF_ERROR(sink_(text_));
    text_.clear();
    return {};
  }
  uint64_t bytes() const { return bytes_; }  // passed on so far

 private:
  static constexpr size_t kPieceBytes = size_t{1} << 20;

  const ByteSink& sink_;
  std::string text_;
  uint64_t bytes_ = 0;
};

}  // namespace etude
