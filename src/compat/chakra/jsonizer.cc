#include "src/compat/chakra/jsonizer.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>

#include "src/compat/chakra/chakra_fails.h"
#include "src/formats/chakra/message_json.h"

namespace etude::compat {
namespace {

// Reads messages from a Chakra file like its Python library.
class MessageReader {
 public:
  explicit MessageReader(std::string_view bytes) : rest_(bytes) {}

  // Returns the next message; nullopt at the end, and for a zero or invalid length.
  std::optional<std::string_view> Next() {
    uint64_t size = 0;
    for (uint32_t shift = 0;; shift += 7) {
      if (rest_.empty() || shift >= 64) return std::nullopt;
      const auto byte = static_cast<uint8_t>(rest_[0]);
      rest_.remove_prefix(1);
      size |= uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) break;
    }
    size &= 0xFFFFFFFF;
    if (size == 0) return std::nullopt;
    const std::string_view message = rest_.substr(0, size);
    rest_.remove_prefix(message.size());
    return message;
  }

 private:
  std::string_view rest_;
};

}  // namespace

Status WriteChakraJson(std::string_view et, const std::string& name, const Sink& sink) {
  MessageReader reader(et);
  ByteBuffer out;
  uint64_t count = 0;
  const auto write = [&](std::string_view message, auto append) -> Status {
    if (!append(message, 0, out)) {
      return ChakraFails(fmt::format("{}: message {}", name, count),
                         "bytes that are no message of Chakra", "DecodeError");
    }
    ++count;
    if (out.size() < kFlushBytes) return {};
    const Status status = sink(out.view());
    out.Clear();
    return status;
  };
  // Missing metadata are empty.
  ETUDE_RETURN_IF_ERROR(
      write(reader.Next().value_or(std::string_view()), chakra::AppendMetadataJson));
  while (const auto message = reader.Next())
    ETUDE_RETURN_IF_ERROR(write(*message, chakra::AppendNodeJson));
  return sink(out.view());
}

}  // namespace etude::compat
