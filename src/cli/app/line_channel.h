#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace etude {

// Lines to and from another process over a stream socket, which the object owns. Movable, not
// copyable.
class LineChannel {
 public:
  explicit LineChannel(int socket) : socket_(socket) {}
  LineChannel(LineChannel&& other) noexcept;
  LineChannel& operator=(LineChannel&&) = delete;
  ~LineChannel();

  int descriptor() const { return socket_; }
  // Returns whether the other end can still send.
  bool open() const { return open_; }
  // Sends a line. Returns false if the other end has gone.
  bool Send(std::string_view line);
  // Closes the sending direction.
  void EndSending();

  // Receives available data, blocking if there are none. A line of more than kLongest bytes closes
  // the channel.
  void Receive();
  // Returns the next complete line, without its line end.
  std::optional<std::string> NextLine();

  static constexpr size_t kLongest = size_t{16} << 20;

 private:
  int socket_;
  bool open_ = true;
  std::string received_;
};

}  // namespace etude
