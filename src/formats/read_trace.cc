#include "src/formats/read_trace.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <protozero/pbf_reader.hpp>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/formats/chakra/chakra_reader.h"
#include "src/formats/chakra/chakra_schema.h"
#include "src/formats/io/byte_source.h"
#include "src/formats/io/protobuf.h"
#include "src/formats/job/job_folder.h"
#include "src/formats/json/json_elements.h"
#include "src/formats/kineto/kineto_reader.h"
#include "src/formats/native/capture_format.h"
#include "src/formats/native/capture_reader.h"
#include "src/formats/perfetto/perfetto_reader.h"
#include "src/formats/pytorch_et/et_json_reader.h"

namespace etude {
namespace {

constexpr std::string_view kExpected =
    "expected a trace: PyTorch execution trace, profile, linked JSON, Chakra protobuf or native "
    "capture";

constexpr std::string_view kKinetoKeys[] = {"schemaVersion", "deviceProperties", "distributedInfo",
                                            "traceName", "displayTimeUnit"};
constexpr std::string_view kLinkedKeys[] = {"inclusive_dur", "exclusive_dur", "inter_thread_dep",
                                            "sync_dep", "cat"};

template <size_t N>
bool IsOneOf(std::string_view text, const std::string_view (&names)[N]) {
  for (const std::string_view name : names) {
    if (name == text) return true;
  }
  return false;
}

// Kind of a file, and a description of JSON of unknown kind.
struct Detection {
  FileKind kind = FileKind::kUnknown;
  std::string found;
  std::string problem;  // ":byte 7: …" for invalid JSON
};

enum class NodeShape : uint8_t { kOther, kEt, kLinked };

// Classifies an element of "nodes" by its keys.
NodeShape ShapeOf(std::string_view node) {
  JsonElements members({.name = {}, .array_keys = {}, .bare_array = false, .limits = {}});
  members.Push(node);
  bool has_id = false;
  bool has_name = false;
  while (true) {
    const auto item = members.Next();
    if (!item || item->kind == JsonItem::Kind::kNone) break;
    if (IsOneOf(item->key, kLinkedKeys)) return NodeShape::kLinked;
    has_id = has_id || item->key == "id";
    has_name = has_name || item->key == "name";
  }
  return has_id && has_name ? NodeShape::kEt : NodeShape::kOther;
}

// Keys of a JSON object, for error messages.
class KeyList {
 public:
  void Add(std::string_view key) {
    constexpr size_t kShown = 12;
    if (++count_ > kShown) return;
    text_ += fmt::format("{}'{}'", count_ == 1 ? "" : ", ", key);
    if (count_ == kShown) text_ += ", …";
  }
  // `beginning` is that of the file. The value of its first key may extend beyond it.
  std::string Text(std::string_view beginning) const {
    if (count_ != 0) return "the keys " + text_;
    const std::string_view key = FirstKey(beginning);
    return key.empty() ? "no known key" : fmt::format("the key '{}'", key);
  }

 private:
  // Returns "" if there is none, or for a long or escaped one.
  static std::string_view FirstKey(std::string_view text) {
    constexpr size_t kLong = 64;
    constexpr std::string_view kBlanks = " \n\r\t";
    for (const char expected : {'{', '"'}) {
      const size_t at = text.find_first_not_of(kBlanks);
      if (at == std::string_view::npos || text[at] != expected) return {};
      text.remove_prefix(at + 1);
    }
    text = text.substr(0, kLong);
    const size_t end = text.find_first_of("\"\\");
    return end == std::string_view::npos || text[end] != '"' ? std::string_view()
                                                             : text.substr(0, end);
  }

  size_t count_ = 0;
  std::string text_;
};

Detection DetectJson(std::string_view beginning) {
  JsonElements elements({.name = {},
                         .array_keys = {"nodes", "traceEvents", "workload_graph"},
                         .bare_array = true,
                         .limits = {},
                         .rules = &EtNodeRules()});
  elements.Push(beginning);
  Detection guess{.kind = FileKind::kOtherJson, .found = {}, .problem = {}};
  KeyList keys;
  bool in_nodes = false;
  bool has_element = false;
  while (true) {
    const auto item = elements.Next();
    if (!item) {
      guess.problem = item.error().message;  // without the file's name, which the splitter lacks
      break;
    }
    if (item->kind == JsonItem::Kind::kNone) break;
    if (item->kind == JsonItem::Kind::kArray) {
      if (item->key == "workload_graph") return {FileKind::kChakraFeeder, {}, {}};
      if (item->key != "nodes") return {FileKind::kKineto, {}, {}};
      in_nodes = true;
      keys.Add(item->key);
    } else if (item->kind == JsonItem::Kind::kElement) {
      if (!in_nodes) break;
      has_element = true;
      const NodeShape shape = ShapeOf(item->text);
      if (shape == NodeShape::kLinked) return {FileKind::kLinked, {}, {}};
      if (shape == NodeShape::kEt) guess.kind = FileKind::kPyTorchEt;
    } else {
      if (item->key == "schema") guess.kind = FileKind::kPyTorchEt;
      if (IsOneOf(item->key, kKinetoKeys)) guess.kind = FileKind::kKineto;
      keys.Add(item->key);
    }
  }
  // An empty list of nodes is an empty execution trace.
  const bool is_empty = elements.complete() && in_nodes && !has_element;
  if (is_empty && guess.kind == FileKind::kOtherJson) guess.kind = FileKind::kPyTorchEt;
  guess.found = "found JSON with " + keys.Text(beginning);
  return guess;
}

// Returns the length before a message; advances `bytes` past it.
std::optional<uint64_t> TakeLength(std::string_view& bytes) {
  uint64_t length = 0;
  for (unsigned i = 0; i < 5 && i < bytes.size(); ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    length |= uint64_t{byte & 0x7Fu} << (7 * i);
    if (byte < 0x80) {
      bytes.remove_prefix(i + 1);
      return length;
    }
  }
  return std::nullopt;
}

// Returns true if `message` has only fields from 1 to `last_field` of plausible wire types.
bool LooksLikeMessage(std::string_view message, uint32_t last_field) {
  try {
    protozero::pbf_reader reader(message.data(), message.size());
    while (reader.next()) {
      if (reader.tag() < 1 || reader.tag() > last_field) return false;
      reader.skip();
    }
    return true;
  } catch (const protozero::exception&) {
    return false;
  }
}

// Returns true if `message` has only fields of a Node, and two of id, name and type.
bool LooksLikeNode(std::string_view message) {
  using chakra::NodeField;
  using protobuf::Delimited;
  using protobuf::Varint;
  bool has_id = false;
  bool has_name = false;
  bool has_type = false;
  try {
    protozero::pbf_reader reader(message.data(), message.size());
    while (reader.next()) {
      switch (reader.tag_and_type()) {
        case Varint(NodeField::kId): has_id = true; break;
        case Delimited(NodeField::kName): has_name = true; break;
        case Varint(NodeField::kType): has_type = true; break;
        case Delimited(NodeField::kCtrlDeps):
        case Varint(NodeField::kCtrlDeps):
        case Delimited(NodeField::kDataDeps):
        case Varint(NodeField::kDataDeps):
        case Varint(NodeField::kStartMicros):
        case Varint(NodeField::kDurationMicros):
        case Delimited(NodeField::kInputs):
        case Delimited(NodeField::kOutputs):
        case Delimited(NodeField::kAttr): break;
        default: return false;
      }
      reader.skip();
    }
  } catch (const protozero::exception&) {
    return false;
  }
  return int{has_id} + int{has_name} + int{has_type} >= 2;
}

// Expects GlobalMetadata (version = 1, attr = 2), then Nodes (fields up to 10; later ones may
// follow). Some generators omit the metadata.
bool LooksLikeChakra(std::string_view beginning) {
  constexpr uint32_t kLastMetadataField = 2;
  constexpr uint32_t kLastNodeField = 15;
  std::string_view rest = beginning;
  const auto length = TakeLength(rest);
  if (!length) return false;
  if (*length > rest.size()) {
    // The metadata extends beyond the beginning: only its first tag can be checked.
    return !rest.empty() && (rest.front() == '\x0a' || rest.front() == '\x12');
  }
  if (LooksLikeNode(rest.substr(0, *length))) return true;
  if (!LooksLikeMessage(rest.substr(0, *length), kLastMetadataField)) return false;
  rest.remove_prefix(*length);
  if (rest.empty()) return *length != 0;
  const auto node_length = TakeLength(rest);
  if (!node_length) return false;
  // An empty message before an empty or truncated one is no evidence: zeros are just zeros.
  if (*node_length == 0 || *node_length > rest.size()) return *length != 0;
  return LooksLikeMessage(rest.substr(0, *node_length), kLastNodeField);
}

// JSON has none; tags and lengths of a Chakra file's first fields usually contain some.
bool HasControlBytes(std::string_view beginning) {
  constexpr size_t kFirstFields = 32;
  return std::ranges::any_of(beginning.substr(0, kFirstFields), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t';
  });
}

// Returns true for the first plane of an XSpace, whose beginning also matches a Perfetto trace: a
// message in field 1 with an optional number (1) and a name (2) in the style of XLA's profiler.
bool LooksLikeXlaProfile(std::string_view beginning) {
  const auto take = [&beginning](char tag) {
    if (!beginning.starts_with(tag)) return std::optional<uint64_t>();
    beginning.remove_prefix(1);
    return TakeLength(beginning);
  };
  if (!take('\x0a')) return false;
  take('\x08');
  return take('\x12') && (beginning.starts_with("/host:") || beginning.starts_with("/device:"));
}

Detection Detect(std::string_view beginning) {
  std::string_view text = beginning;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const size_t first = text.find_first_not_of(" \n\r\t");
  if (first != std::string_view::npos && (text[first] == '{' || text[first] == '[')) {
    // The size of a Chakra file's metadata may be the code of '{' or '['.
    if (HasControlBytes(beginning) && LooksLikeChakra(beginning))
      return {FileKind::kChakra, {}, {}};
    return DetectJson(beginning);
  }
  if (beginning.starts_with(capture::kMagic)) return {FileKind::kNative, {}, {}};
  if (LooksLikeXlaProfile(beginning)) {
    return {FileKind::kUnknown, "found an XLA profile (.xplane.pb), which is not supported", {}};
  }
  if (LooksLikePerfetto(beginning)) return {FileKind::kPerfetto, {}, {}};
  if (LooksLikeChakra(beginning)) return {FileKind::kChakra, {}, {}};
  return {};
}

// Returns the name of an unsupported packing of traces; nullopt: none.
std::optional<std::string_view> ForeignPacking(std::string_view beginning) {
  struct Packing {
    size_t offset;
    std::string_view magic;
    std::string_view what;
  };
  static constexpr Packing kPackings[] = {
      {0, "PK\x03\x04", "a zip archive"},
      {0, "BZh", "bzip2 data"},
      {0,
       "\xFD"
       "7zXZ",
       "xz data"},
      {0, "7z\xBC\xAF", "a 7z archive"},
      {257, "ustar", "a tar archive"},
  };
  for (const Packing& packing : kPackings) {
    if (beginning.size() > packing.offset &&
        beginning.substr(packing.offset).starts_with(packing.magic)) {
      return packing.what;
    }
  }
  return std::nullopt;
}

// Returns the name of a text encoding other than UTF-8, by its mark or by the zeros around its
// first character; nullopt: none.
std::optional<std::string_view> ForeignEncoding(std::string_view beginning) {
  using namespace std::string_view_literals;
  struct Form {
    std::string_view beginning;
    std::string_view encoding;
  };
  static constexpr Form kForms[] = {
      {"\xFF\xFE\0\0"sv, "UTF-32"}, {"\0\0\xFE\xFF"sv, "UTF-32"}, {"{\0\0\0"sv, "UTF-32"},
      {"[\0\0\0"sv, "UTF-32"},      {"\0\0\0{"sv, "UTF-32"},      {"\0\0\0["sv, "UTF-32"},
      {"\xFF\xFE"sv, "UTF-16"},     {"\xFE\xFF"sv, "UTF-16"},     {"{\0"sv, "UTF-16"},
      {"[\0"sv, "UTF-16"},          {"\0{"sv, "UTF-16"},          {"\0["sv, "UTF-16"},
  };
  for (const Form& form : kForms) {
    if (beginning.starts_with(form.beginning)) return form.encoding;
  }
  return std::nullopt;
}

// Returns true for a class of a job (job_folder.h) without the job's classes.json: its groups have
// no names.
bool LacksClasses(const std::string& path, const Trace& trace) {
  const std::filesystem::path parts(path);
  const std::string name = parts.filename().string();
  if (!name.starts_with("class.") || !name.ends_with(".et")) return false;
  const std::filesystem::path folder = parts.parent_path();
  if (IsJobFolder(folder.empty() ? "." : folder.string())) return false;
  return std::ranges::any_of(trace.comms(), [&](const auto& entry) {
    return GroupOfName(trace.text(entry.second.group)).has_value();
  });
}

Error UnknownFile(const ByteSource& source, const Detection& detection,
                  std::string_view beginning) {
  std::string found = detection.found;
  if (detection.kind == FileKind::kChakraFeeder) {
    found = "found a Chakra feeder graph ('workload_graph'), which is not supported";
  } else if (beginning.empty() && source.cut()) {
    found = fmt::format("found truncated {} data without any content", Name(source.compression()));
  } else if (beginning.empty()) {
    found = "found an empty file";
  } else if (const auto encoding = ForeignEncoding(beginning)) {
    found = fmt::format("found {} text", *encoding);
  } else if (!detection.problem.empty()) {
    return {ErrorCode::kBadInput, source.name() + detection.problem};
  } else if (const Compression inside = DetectCompression(beginning);
             inside != Compression::kNone) {
    found = fmt::format("found {} data inside {} data; unpack it first", Name(inside),
                        Name(source.compression()));
  } else if (beginning.starts_with("version https://git-lfs.github.com/")) {
    found = "found a Git LFS pointer; fetch its file first (git lfs pull)";
  } else if (const auto packing = ForeignPacking(beginning)) {
    found = fmt::format("found {}; unpack it first", *packing);
  } else if (found.empty()) {
    found = "found data in an unknown format";
  }
  return {ErrorCode::kBadInput, source.name() + ": " + found + ", " + std::string(kExpected)};
}

// Returns the cause of an error in a file's content. Damaged compressed data may unpack to wrong
// content; their own checks, often at the end, are more specific.
Error Cause(ByteSource& source, const Error& error) {
  if (source.compression() == Compression::kNone) return error;
  while (true) {
    const Result<std::string_view> chunk = source.Next();
    if (!chunk) return chunk.error();
    if (chunk->empty()) return error;
  }
}

}  // namespace

std::string_view Name(FileKind kind) {
  switch (kind) {
    case FileKind::kUnknown: return "unknown";
    case FileKind::kPyTorchEt: return "pytorch-et";
    case FileKind::kKineto: return "kineto";
    case FileKind::kLinked: return "linked";
    case FileKind::kChakra: return "chakra";
    case FileKind::kPerfetto: return "perfetto";
    case FileKind::kNative: return "native";
    case FileKind::kChakraFeeder: return "chakra-feeder";
    case FileKind::kOtherJson: return "json";
  }
  return "unknown";
}

FileKind DetectFileKind(std::string_view beginning) { return Detect(beginning).kind; }

Result<Trace> ReadTrace(ByteSource& source, const ReadOptions& options, const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const std::string_view beginning, source.Peek(kDetectBytes));
  const Detection detection = Detect(beginning);
  std::unique_ptr<TraceReader> reader;
  switch (detection.kind) {
    case FileKind::kPyTorchEt:
    case FileKind::kLinked: reader = MakeEtJsonReader(source.name(), options, context); break;
    case FileKind::kKineto: reader = MakeKinetoReader(source.name(), options, context); break;
    case FileKind::kPerfetto: reader = MakePerfettoReader(source.name(), options, context); break;
    case FileKind::kNative: reader = MakeCaptureReader(source.name(), options, context); break;
    case FileKind::kChakra: reader = MakeChakraReader(source.name(), options, context); break;
    case FileKind::kUnknown:
    case FileKind::kChakraFeeder:
    case FileKind::kOtherJson:
      return tl::unexpected<Error>(UnknownFile(source, detection, beginning));
  }
  while (true) {
    ETUDE_ASSIGN_OR_RETURN(const std::string_view chunk, source.Next());
    if (chunk.empty()) break;
    if (context.stopped()) return MakeError(ErrorCode::kInterrupted, source.name() + ": stopped");
    if (const Status pushed = reader->Push(chunk); !pushed) {
      return tl::unexpected<Error>(Cause(source, pushed.error()));
    }
    context.Progress("read " + source.name(), source.bytes_in(), source.size_in().value_or(0));
  }
  reader->set_foreign_bytes(source.trailing_bytes());
  return reader->Finish(source.cut());
}

Result<Trace> ReadTrace(const std::string& path, const ReadOptions& options,
                        const RunContext& context) {
  if (const auto rank = JobRankOfPath(path)) return ReadJobRank(*rank, context);
  ETUDE_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path, context.limits));
  Result<Trace> trace = ReadTrace(source, options, context);
  if (trace && LacksClasses(path, *trace)) {
    return BadInput(
        fmt::format("{}: found the trace of a rank class, expected {} in the same folder; writing "
                    "the job did not complete",
                    path, kClassesFile));
  }
  return trace;
}

}  // namespace etude
