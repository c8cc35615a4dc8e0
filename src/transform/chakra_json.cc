#include "src/transform/chakra_json.h"

#include <algorithm>
#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>

#include <fmt/format.h>

#include "src/compat/jsonizer.h"

namespace etude {
namespace {

constexpr size_t kFlushBytes = size_t{1} << 20;
constexpr size_t kMaxLengthBytes = 5;
constexpr size_t kNodeLevel = 2;
constexpr size_t kMetadataLevel = 1;

// Fields of `message` beyond the last one that Chakra has.
uint64_t CountUnknown(std::string_view message, uint32_t last_field) {
  uint64_t count = 0;
  protozero::pbf_reader reader(message.data(), message.size());
  while (reader.next()) {
    count += reader.tag() > last_field ? 1 : 0;
    reader.skip();
  }
  return count;
}

}  // namespace

std::string ChakraJson::Where() const {
  const std::string message =
      messages_ == 0 ? "GlobalMetadata" : fmt::format("node message {}", messages_);
  return fmt::format("{}:byte {} ({})", name_, offset_, message);
}

Status ChakraJson::Push(std::string_view chunk) {
  while (!pending_.empty() && !chunk.empty()) {
    const size_t missing = std::min(wanted_ - pending_.size(), chunk.size());
    pending_.append(chunk.substr(0, missing));
    chunk.remove_prefix(missing);
    if (pending_.size() < wanted_) return {};
    std::string_view bytes = pending_;
    ETUDE_RETURN_IF_ERROR(TakeMessages(bytes));
    if (bytes.empty()) pending_.clear();
  }
  if (chunk.empty()) return {};
  ETUDE_RETURN_IF_ERROR(TakeMessages(chunk));
  pending_.assign(chunk);
  return {};
}

Status ChakraJson::TakeMessages(std::string_view& bytes) {
  while (!bytes.empty()) {
    uint64_t length = 0;
    size_t at = 0;
    while (true) {
      if (at == bytes.size()) {
        wanted_ = at + 1;
        return {};
      }
      if (at == kMaxLengthBytes) {
        return BadInput(Where() + ": found a length of more than five bytes, expected a message");
      }
      const auto byte = static_cast<unsigned char>(bytes[at]);
      length |= uint64_t{byte & 0x7FU} << (7 * at);
      ++at;
      if (byte < 0x80) break;
    }
    if (length > limits_.element_bytes) {
      return BadInput(fmt::format(
          "{}: found a message of {} bytes, expected at most {} (limit 'element_bytes')", Where(),
          length, limits_.element_bytes));
    }
    wanted_ = at + static_cast<size_t>(length);
    if (bytes.size() < wanted_) return {};
    ETUDE_RETURN_IF_ERROR(TakeMessage(bytes.substr(at, static_cast<size_t>(length))));
    bytes.remove_prefix(wanted_);
    offset_ += wanted_;
    ++messages_;
  }
  return {};
}

Status ChakraJson::TakeMessage(std::string_view message) {
  constexpr uint32_t kLastNodeField = 10;
  constexpr uint32_t kLastMetadataField = 2;
  const bool is_metadata = messages_ == 0;
  message_.Clear();
  const bool good = is_metadata ? compat::AppendMetadataJson(message, kMetadataLevel, message_)
                                : compat::AppendNodeJson(message, kNodeLevel, message_);
  if (!good) {
    const std::string what = Where() + ": found bytes that are no message of Chakra";
    if (strict_ || is_metadata) return BadInput(what);
    ++report_.malformed;
    return {};
  }
  report_.unknown_fields +=
      CountUnknown(message, is_metadata ? kLastMetadataField : kLastNodeField);
  if (is_metadata) {
    out_.Append("{\n  \"metadata\": ");
    out_.Append(message_.view());
    out_.Append(",\n  \"nodes\": [");
  } else {
    out_.Append(report_.nodes == 0 ? "\n    " : ",\n    ");
    out_.Append(message_.view());
    ++report_.nodes;
  }
  return out_.size() < kFlushBytes ? Status() : Flush();
}

Status ChakraJson::Flush() {
  report_.bytes += out_.size();
  const Status status = sink_(out_.view());
  out_.Clear();
  return status;
}

Result<ChakraJsonReport> ChakraJson::Finish(bool cut) {
  if (messages_ == 0) {
    return BadInput(name_ + ": found no whole message, expected a Chakra trace");
  }
  report_.cut = cut || !pending_.empty();
  if (report_.cut && strict_) return BadInput(Where() + ": the file ends early");
  out_.Append(report_.nodes == 0 ? "]\n}\n" : "\n  ]\n}\n");
  ETUDE_RETURN_IF_ERROR(Flush());
  return report_;
}

}  // namespace etude
