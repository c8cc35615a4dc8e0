#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace etude {

// Lines to and from another process over a stream socket, which it owns. Moves, does not copy.
class LineChannel {
 public:
  explicit LineChannel(int socket) : socket_(socket) {}
  LineChannel(LineChannel&& other) noexcept;
  LineChannel& operator=(LineChannel&&) = delete;
  ~LineChannel();

  int descriptor() const { return socket_; }
  // Whether the other end can still say something.
  bool open() const { return open_; }
  // False if the other end has gone.
  bool Send(std::string_view line);
  // Says that nothing more will be sent.
  void EndSending();

  // Takes what the other end has sent; waits for something if there is nothing. A line of more than
  // kLongest bytes closes the channel.
  void Receive();
  // The next whole line that was received, without its end.
  std::optional<std::string> NextLine();

  static constexpr size_t kLongest = size_t{16} << 20;

 private:
  int socket_;
  bool open_ = true;
  std::string received_;
};

}  // namespace etude
