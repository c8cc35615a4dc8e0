#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace etude {

// Follows brackets and strings of a JSON container through chunks of any size, 64 bytes at a time
// if possible, and finds the container's end. Not thread-safe.
class BracketScanner {
 public:
  enum class State : uint8_t {
    kOpen,      // the container has not ended
    kClosed,    // it ended
    kMismatch,  // a closing bracket of the wrong kind
    kTooDeep,   // more brackets open than allowed
  };

  // Simdjson's own bound is 1024; this one also keeps recursive readers within the stack.
  static constexpr size_t kMaxDepth = 1000;

  explicit BracketScanner(size_t max_depth) : max_depth_(std::min(max_depth, kMaxDepth)) {}

  // Resets the state; the next byte must be the container's opening bracket.
  void Reset();
  // Continues and returns the number of bytes of `text` consumed: all of them while the state is
  // kOpen; up to and including the closing bracket if it is kClosed; up to the offending bracket if
  // it is kMismatch or kTooDeep.
  size_t Scan(std::string_view text);

  // Sets whether Scan also stops, in state kOpen, soon after the first control byte in a string.
  void set_stops_at_control(bool stops) { stops_at_control_ = stops; }

  State state() const { return state_; }
  size_t depth() const { return depth_; }
  // Returns the bracket that would close the innermost container.
  char expected_closer() const { return depth_ == 0 ? '\0' : closers_[depth_ - 1]; }
  // Return whether the container so far has a backslash, a control byte in a string, or a byte
  // beyond ASCII.
  bool saw_backslash() const { return saw_backslash_; }
  bool saw_control() const { return saw_control_; }
  bool saw_non_ascii() const { return saw_non_ascii_; }

 private:
  // Returns false if the state is no longer kOpen.
  bool Bracket(char c);
  size_t ScanBytes(const char* data, size_t count);

  size_t max_depth_;
  State state_ = State::kOpen;
  size_t depth_ = 0;
  std::array<char, kMaxDepth> closers_;  // of the open brackets, innermost last
  bool in_string_ = false;
  bool escaped_ = false;  // the next byte is escaped
  bool stops_at_control_ = false;
  bool saw_backslash_ = false;
  bool saw_control_ = false;
  bool saw_non_ascii_ = false;
};

}  // namespace etude
