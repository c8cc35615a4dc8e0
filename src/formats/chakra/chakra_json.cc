#include "src/formats/chakra/chakra_json.h"

#include <fmt/format.h>
#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>

#include "src/formats/chakra/chakra_node_view.h"
#include "src/formats/chakra/chakra_schema.h"
#include "src/formats/chakra/message_json.h"

namespace etude {
namespace {

constexpr size_t kFlushBytes = size_t{1} << 20;
constexpr size_t kNodeLevel = 2;
constexpr size_t kMetadataLevel = 1;

// Returns the number of fields of `message` beyond Chakra's last one.
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

Status ChakraJson::Push(std::string_view chunk) {
  frames_.Feed(chunk);
  while (true) {
    ETUDE_ASSIGN_OR_RETURN(const auto message, frames_.Next());
    if (!message) return {};
    ETUDE_RETURN_IF_ERROR(TakeMessage(*message));
  }
}

Status ChakraJson::TakeMessage(std::string_view message) {
  const bool is_first = frames_.number() == 0;
  const bool is_metadata = chakra::IsMetadata(message, is_first);
  if (is_metadata != is_first) {
    if (strict_) {
      return BadInput(fmt::format(
          "{}: found {}", frames_.Where(),
          is_first ? "a Node, expected GlobalMetadata" : "GlobalMetadata, expected a Node"));
    }
    if (is_metadata) {
      ++report_.misplaced;
      return {};
    }
    report_.no_metadata = true;
    out_.Append("{\n  \"metadata\": {},\n  \"nodes\": [");
  }
  message_.Clear();
  const bool good = is_metadata ? chakra::AppendMetadataJson(message, kMetadataLevel, message_)
                                : chakra::AppendNodeJson(message, kNodeLevel, message_);
  if (!good) {
    const std::string what = frames_.Where() + ": found bytes that are no message of Chakra";
    if (strict_ || is_metadata) return BadInput(what);
    ++report_.malformed;
    return {};
  }
  const auto last_field = is_metadata ? static_cast<uint32_t>(chakra::MetadataField::kAttr)
                                      : static_cast<uint32_t>(chakra::NodeField::kAttr);
  report_.unknown_fields += CountUnknown(message, last_field);
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
  if (frames_.end() == 0) {
    return BadInput(name_ + ": found no whole message, expected a Chakra trace");
  }
  report_.cut = cut || frames_.pending() != 0;
  if (report_.cut && strict_) return BadInput(frames_.Where() + ": the file ends early");
  out_.Append(report_.nodes == 0 ? "]\n}\n" : "\n  ]\n}\n");
  ETUDE_RETURN_IF_ERROR(Flush());
  return report_;
}

}  // namespace etude
