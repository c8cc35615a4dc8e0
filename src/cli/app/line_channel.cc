#include "src/cli/app/line_channel.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace etude {

LineChannel::LineChannel(LineChannel&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      open_(std::exchange(other.open_, false)),
      received_(std::move(other.received_)) {}

LineChannel::~LineChannel() {
  if (socket_ >= 0) close(socket_);
}

bool LineChannel::Send(std::string_view line) {
  std::string text(line);
  text += '\n';
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t sent = send(socket_, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    rest.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

void LineChannel::EndSending() { shutdown(socket_, SHUT_WR); }

void LineChannel::Receive() {
  char bytes[16384];
  ssize_t received = 0;
  do {
    received = read(socket_, bytes, sizeof bytes);
  } while (received < 0 && errno == EINTR);
  if (received > 0) received_.append(bytes, static_cast<size_t>(received));
  if (received <= 0 || received_.size() > kLongest) open_ = false;
}

std::optional<std::string> LineChannel::NextLine() {
  const size_t end = received_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string line = received_.substr(0, end);
  received_.erase(0, end + 1);
  return line;
}

}  // namespace etude
