#include "src/formats/chakra/chakra_reader.h"

#include <protozero/pbf_reader.hpp>

#include <algorithm>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

#include "src/base/text/utf8.h"
#include "src/formats/chakra/chakra_attr.h"
#include "src/formats/chakra/chakra_frames.h"
#include "src/formats/chakra/chakra_node_reader.h"
#include "src/formats/chakra/chakra_node_view.h"
#include "src/formats/chakra/chakra_schema.h"
#include "src/formats/io/protobuf.h"
#include "src/formats/profile/process_groups.h"
#include "src/trace/simulated.h"
#include "src/trace/trace_builder.h"

namespace etude {
namespace {

using chakra::AttrMessage;
using chakra::AttrValue;
using chakra::GlobalAttr;
using chakra::GlobalAttrRow;
using chakra::MetadataField;
using protobuf::Delimited;
using protobuf::View;

class ChakraReader : public TraceReader {
 public:
  ChakraReader(std::string name, const ReadOptions& options, const RunContext& context)
      : name_(std::move(name)),
        options_(options),
        context_(context),
        builder_(context.limits),
        nodes_(builder_, context.limits),
        frames_(name_, context.limits) {
    builder_.info().SetFormat(TraceFormat::kChakra);
    builder_.info().traits.exclusive_durations = true;
  }

  Status Push(std::string_view chunk) override;
  Result<Trace> Finish(bool cut) override;

 private:
  Status TakeMessage(std::string_view message);
  Status TakeMetadata(std::string_view message);
  Status TakeFirstNode();
  Status Malformed(std::string_view why);
  void SayMetadata();
  void ReadMetadata(std::string_view message);
  void ReadMetadataAttr(std::string_view message, std::string_view field);
  bool SetGlobal(GlobalAttr attr, const AttrValue& value);
  bool SetProcessGroups(const AttrValue& value);
  void SettleMetadata();
  void Keep(std::string_view key, std::string_view field);

  std::string name_;
  ReadOptions options_;
  const RunContext& context_;
  TraceBuilder builder_;
  chakra::NodeReader nodes_;
  chakra::Frames frames_;
  std::string first_malformed_;
  bool has_metadata_ = false;
  std::string misplaced_;  // position of the first metadata that is not the first message

  AttrMessage attr_;
  std::string version_;
  chakra::AttrLayout layout_;
  bool inclusive_ = false;
};

Status ChakraReader::Push(std::string_view chunk) {
  frames_.Feed(chunk);
  while (true) {
    ETUDE_ASSIGN_OR_RETURN(const auto message, frames_.Next());
    if (!message) return {};
    ETUDE_RETURN_IF_ERROR(TakeMessage(*message));
  }
}

Status ChakraReader::TakeMessage(std::string_view message) {
  try {
    const bool is_first = frames_.number() == 0;
    if (chakra::IsMetadata(message, is_first)) return TakeMetadata(message);
    if (is_first) ETUDE_RETURN_IF_ERROR(TakeFirstNode());
    nodes_.Read(message);
  } catch (const protozero::exception& error) {
    return Malformed(error.what());
  } catch (const std::exception& error) {
    return MakeError(ErrorCode::kInternal, frames_.Where() + ": " + error.what());
  }
  return {};
}

// Some generators write it twice; others write it last, where it still applies.
Status ChakraReader::TakeMetadata(std::string_view message) {
  if (frames_.number() != 0) {
    if (options_.strict) {
      return BadInput(frames_.Where() + ": found GlobalMetadata, expected a Node");
    }
    builder_.stats().Count(Stat::kMisplacedMetadata);
    if (misplaced_.empty()) misplaced_ = frames_.Where();
  }
  if (!has_metadata_) ReadMetadata(message);
  has_metadata_ = true;
  return {};
}

// The file begins with a node.
Status ChakraReader::TakeFirstNode() {
  if (options_.strict) return BadInput(name_ + ":byte 0: found a Node, expected GlobalMetadata");
  nodes_.SetDefaults(StringId(), inclusive_, HostComputes(builder_));
  return {};
}

void ChakraReader::SayMetadata() {
  if (!has_metadata_) {
    builder_.stats().Count(Stat::kMissingMetadata);
    context_.Warn(name_ +
                  ":byte 0: found a Node, expected GlobalMetadata; the metadata is missing, so "
                  "schema, process and rank are unknown");
  }
  if (!misplaced_.empty()) {
    context_.Warn(misplaced_ + ": found GlobalMetadata, expected it once, as the first message; " +
                  "the first one is used");
  }
}

Status ChakraReader::Malformed(std::string_view why) {
  const std::string message = frames_.Malformed(why);
  if (options_.strict || frames_.number() == 0) return BadInput(message);
  if (first_malformed_.empty()) first_malformed_ = message;
  builder_.stats().Count(Stat::kMalformedElement);
  return {};
}

void ChakraReader::Keep(std::string_view key, std::string_view field) {
  builder_.info().extras.push_back({.key = builder_.Intern(key),
                                    .text = builder_.Intern(field),
                                    .form = Extra::Form::kProtobuf});
}

void ChakraReader::ReadMetadata(std::string_view message) {
  protozero::pbf_reader reader(message.data(), message.size());
  while (true) {
    const char* begin = reader.data().data();
    if (!reader.next()) break;
    const auto field = [&] {
      return std::string_view(begin, static_cast<size_t>(reader.data().data() - begin));
    };
    const uint32_t number = reader.tag();
    switch (reader.tag_and_type()) {
      case Delimited(MetadataField::kVersion):
        version_ = utf8::Repair(View(reader.get_view()));
        Keep("version", field());
        break;
      case Delimited(MetadataField::kAttr): {
        const std::string_view attr = View(reader.get_view());
        ReadMetadataAttr(attr, field());
        break;
      }
      default: reader.skip(); Keep("field " + std::to_string(number), field());
    }
  }
  SettleMetadata();
}

void ChakraReader::ReadMetadataAttr(std::string_view message, std::string_view field) {
  DecodeAttr(message, attr_);
  const auto row = std::ranges::find(chakra::kGlobalAttrs, attr_.name, &GlobalAttrRow::name);
  const bool known = attr_.plain && row != chakra::kGlobalAttrs.end();
  if (!known || layout_.Has(row->attr) || !SetGlobal(row->attr, attr_.value)) {
    builder_.info().extras.push_back(ExtraOf(attr_, field, builder_));
    return layout_.AddExtra();
  }
  layout_.Add(*row, attr_.value.type);
}

bool ChakraReader::SetGlobal(GlobalAttr attr, const AttrValue& value) {
  TraceInfo& info = builder_.info();
  const auto set_int = [&](std::optional<int64_t>& to) {
    to = value.AsInt64();
    return to.has_value();
  };
  const auto set_text = [&](std::string& to) {
    const bool valid = value.form == AttrValue::Form::kText && utf8::IsValid(value.text);
    if (valid) to = value.text;
    return valid;
  };
  switch (attr) {
    case GlobalAttr::kSchema: return set_text(info.schema);
    case GlobalAttr::kPid: return set_int(info.pid);
    case GlobalAttr::kTime: return set_text(info.time);
    case GlobalAttr::kStartTs: return set_int(info.start_ts);
    case GlobalAttr::kFinishTs: return set_int(info.finish_ts);
    case GlobalAttr::kRank: return set_int(info.rank);
    case GlobalAttr::kWorldSize: return set_int(info.world_size);
    case GlobalAttr::kInclusive:
      if (!value.AsInt64()) return false;
      inclusive_ = *value.AsInt64() != 0;
      return true;
    case GlobalAttr::kProcessGroups: return SetProcessGroups(value);
  }
  return false;
}

bool ChakraReader::SetProcessGroups(const AttrValue& value) {
  if (value.form != AttrValue::Form::kText || !utf8::IsValid(value.text)) return false;
  const auto groups = ParseProcessGroups(builder_, value.text);
  if (!groups) return false;
  for (const NumberedGroup& entry : *groups) builder_.AddProcessGroup(entry.group);
  return true;
}

void ChakraReader::SettleMetadata() {
  TraceInfo& info = builder_.info();
  // A schema attribute has precedence over the version of the container, which stays among the
  // extras.
  if (!layout_.Has(GlobalAttr::kSchema)) info.schema = version_;
  const bool schema_expected = !info.schema.empty() && info.schema != version_;
  const bool empty_time = layout_.Has(GlobalAttr::kTime) && info.time.empty();
  const bool as_written =
      layout_.is_usual() && !empty_time && schema_expected == layout_.Has(GlobalAttr::kSchema);
  if (!as_written) Keep("layout", layout_.Note());
  info.traits.exclusive_durations = !inclusive_;
  StringId process;
  if (info.pid) process = builder_.Intern(std::to_string(*info.pid));
  nodes_.SetDefaults(process, inclusive_, HostComputes(builder_));
}

Result<Trace> ChakraReader::Finish(bool cut) {
  if (frames_.number() == 0) return BadInput(frames_.EndsEarly());
  if (cut || frames_.pending() != 0) {
    const std::string message = frames_.EndsEarly();
    if (options_.strict) return BadInput(message);
    builder_.stats().Count(Stat::kTruncated);
    context_.Warn(message + "; kept the nodes before it");
  }
  const uint64_t malformed = builder_.stats()[Stat::kMalformedElement];
  if (malformed != 0 && builder_.node_count() == 0) return BadInput(first_malformed_);
  if (malformed != 0) {
    context_.Warn(first_malformed_ + "; " + std::to_string(malformed) + " left out");
  }
  SayMetadata();
  nodes_.Finish();
  Result<Trace> trace = builder_.Finish();
  if (!trace) return MakeError(trace.error().code, name_ + ": " + trace.error().message);
  return trace;
}

}  // namespace

std::unique_ptr<TraceReader> MakeChakraReader(std::string name, const ReadOptions& options,
                                              const RunContext& context) {
  return std::make_unique<ChakraReader>(std::move(name), options, context);
}

}  // namespace etude
