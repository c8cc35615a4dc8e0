#include "src/suite/data/records/tf_records.h"

#include <array>
#include <bit>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "src/formats/io/protobuf.h"

namespace etude::suite {
namespace {

constexpr size_t kHeaderBytes = 12;  // length and its checksum
constexpr size_t kChecksumBytes = 4;

// CRC-32C, Castagnoli's polynomial, bits reversed.
constexpr std::array<uint32_t, 256> kCrcTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82F63B78U : 0);
    table[i] = value;
  }
  return table;
}();

// Returns the checksum of TFRecord files: rotated and moved, so that it differs from those in the
// data.
uint32_t ChecksumOf(std::string_view bytes) {
  uint32_t crc = ~uint32_t{0};
  for (const char byte : bytes) {
    crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<unsigned char>(byte)) & 0xFF];
  }
  return std::rotr(~crc, 15) + 0xA282EAD8U;
}

// Returns the number in the first bytes, the lowest first.
uint64_t Number(std::string_view bytes, size_t size) {
  uint64_t number = 0;
  for (size_t i = size; i-- > 0;) number = number << 8 | static_cast<unsigned char>(bytes[i]);
  return number;
}

Result<std::string> BytesAt(const ByteSource& source, uint64_t begin, uint64_t size) {
  std::string bytes(size, '\0');
  ETUDE_ASSIGN_OR_RETURN(const size_t count, source.ReadAt(begin, bytes));
  bytes.resize(count);
  return bytes;
}

// Field numbers of tf.train.Example and what it contains.
constexpr protozero::pbf_tag_type kFeatures = 1;  // of the example
constexpr protozero::pbf_tag_type kFeature = 1;   // of the features: an entry of a map
constexpr protozero::pbf_tag_type kKey = 1;       // of an entry
constexpr protozero::pbf_tag_type kValue = 2;
constexpr protozero::pbf_tag_type kBytesList = 1;  // of a feature
constexpr protozero::pbf_tag_type kFloatList = 2;
constexpr protozero::pbf_tag_type kValues = 1;  // of a list

constexpr auto kDelimited = protozero::pbf_wire_type::length_delimited;

// Returns the last list of the kind `list` of a feature; nullopt if it has none.
std::optional<protozero::pbf_reader> FindList(std::string_view feature,
                                              protozero::pbf_tag_type list) {
  std::optional<protozero::pbf_reader> found;
  protozero::pbf_reader value(feature.data(), feature.size());
  while (value.next(list, kDelimited)) found = value.get_message();
  return found;
}

// Return the values of a feature; nullopt if it is of another kind.
std::optional<std::vector<float>> FindFloats(std::string_view feature) {
  std::optional<protozero::pbf_reader> list = FindList(feature, kFloatList);
  if (!list) return std::nullopt;
  std::vector<float> values;
  while (list->next()) {
    switch (list->tag_and_type()) {
      case protobuf::Delimited(kValues): {
        const auto packed = list->get_packed_float();
        values.insert(values.end(), packed.begin(), packed.end());
        break;
      }
      case protobuf::Tag(kValues, protozero::pbf_wire_type::fixed32):
        values.push_back(list->get_float());
        break;
      default: list->skip();
    }
  }
  return values;
}
std::optional<std::vector<std::string_view>> FindBytes(std::string_view feature) {
  std::optional<protozero::pbf_reader> list = FindList(feature, kBytesList);
  if (!list) return std::nullopt;
  std::vector<std::string_view> values;
  while (list->next(kValues, kDelimited)) values.push_back(protobuf::View(list->get_view()));
  return values;
}

Error NotAnExample(const std::string& place, const protozero::exception& error) {
  return {ErrorCode::kBadInput,
          fmt::format("{}: {}, expected a tf.train.Example", place, error.what())};
}

}  // namespace

Result<TfRecords> TfRecords::Open(const std::string& path, const RunContext& context) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return Unavailable(path + ": missing");
  ETUDE_RETURN_IF_ERROR(CheckRegular(path));
  ETUDE_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path, context.limits));
  ETUDE_RETURN_IF_ERROR(source.Peek(1));
  if (!source.can_read_at()) {
    return BadInput(path + ": compressed, expected an uncompressed TFRecord file");
  }
  std::vector<Place> places;
  for (uint64_t at = 0;;) {
    ETUDE_ASSIGN_OR_RETURN(const std::string header, BytesAt(source, at, kHeaderBytes));
    if (header.empty()) break;
    const auto wrong = [&](std::string_view what) {
      return BadInput(fmt::format("{}: byte {}: {}", path, at, what));
    };
    if (header.size() < kHeaderBytes) return wrong("ends within a record");
    const uint64_t size = Number(header, sizeof(uint64_t));
    if (ChecksumOf(std::string_view(header).substr(0, sizeof(uint64_t))) !=
        Number(std::string_view(header).substr(sizeof(uint64_t)), kChecksumBytes)) {
      return wrong("wrong checksum of a record's length, expected a TFRecord file");
    }
    if (size > context.limits.element_bytes) {
      return wrong(fmt::format("a record of {} bytes, expected {} at most (element_bytes)", size,
                               context.limits.element_bytes));
    }
    const uint64_t end = at + kHeaderBytes + size + kChecksumBytes;
    ETUDE_ASSIGN_OR_RETURN(const std::string last, BytesAt(source, end - 1, 1));
    if (last.empty()) return wrong("ends within a record");
    places.push_back({at + kHeaderBytes, size});
    at = end;
  }
  if (places.empty()) return BadInput(path + ": found no records, expected a TFRecord file");
  return TfRecords(std::move(source), std::move(places));
}

std::string TfRecords::PlaceOf(int64_t number) const {
  return fmt::format("{}: record {}", source_.name(), number);
}

Result<std::string> TfRecords::Read(int64_t number) const {
  const Place& place = places_[static_cast<size_t>(number)];
  ETUDE_ASSIGN_OR_RETURN(std::string bytes,
                         BytesAt(source_, place.begin, place.size + kChecksumBytes));
  if (bytes.size() < place.size + kChecksumBytes) {
    return BadInput(PlaceOf(number) + ": cut since the run began");
  }
  const uint64_t expected = Number(std::string_view(bytes).substr(place.size), kChecksumBytes);
  bytes.resize(place.size);
  if (ChecksumOf(bytes) != expected) return BadInput(PlaceOf(number) + ": wrong checksum");
  return bytes;
}

Result<TfExample> TfExample::Parse(std::string_view record, std::string place) {
  TfExample parsed(std::move(place));
  try {
    protozero::pbf_reader example(record.data(), record.size());
    while (example.next(kFeatures, kDelimited)) {
      protozero::pbf_reader features = example.get_message();
      while (features.next(kFeature, kDelimited)) {
        protozero::pbf_reader entry = features.get_message();
        std::string_view key;
        std::string_view value;
        while (entry.next()) {
          switch (entry.tag_and_type()) {
            case protobuf::Delimited(kKey): key = protobuf::View(entry.get_view()); break;
            case protobuf::Delimited(kValue): value = protobuf::View(entry.get_view()); break;
            default: entry.skip();
          }
        }
        parsed.features_.insert_or_assign(key, value);
      }
    }
  } catch (const protozero::exception& error) {
    return tl::unexpected(NotAnExample(parsed.place_, error));
  }
  return parsed;
}

template <typename Values>
Result<Values> TfExample::Read(std::optional<Values> (*find)(std::string_view feature),
                               std::string_view feature, int64_t count,
                               std::string_view kind) const {
  std::optional<Values> found;
  try {
    const auto entry = features_.find(feature);
    if (entry != features_.end()) found = find(entry->second);
  } catch (const protozero::exception& error) {
    return tl::unexpected(NotAnExample(place_, error));
  }
  if (!found) return BadInput(fmt::format("{}: found no {} '{}'", place_, kind, feature));
  if (std::ssize(*found) != count) {
    return BadInput(fmt::format("{}: found {} {} '{}', expected {}", place_, found->size(), kind,
                                feature, count));
  }
  return *std::move(found);
}

Result<std::vector<float>> TfExample::Floats(std::string_view feature, int64_t count) const {
  return Read(FindFloats, feature, count, "floats");
}

Result<std::string_view> TfExample::Bytes(std::string_view feature) const {
  ETUDE_ASSIGN_OR_RETURN(const std::vector<std::string_view> values,
                         Read(FindBytes, feature, 1, "strings"));
  return values.front();
}

}  // namespace etude::suite
