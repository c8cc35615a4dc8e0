// PackedTrace as bytes: docs/formats/packed.md.

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "src/trace/job/packed_trace.h"

namespace etude {
namespace {

constexpr std::string_view kPackedMagic = "etude-packed\n";
constexpr uint64_t kPackedVersion = 2;

void PutNumber(uint64_t value, std::string& bytes) {
  while (value >= 0x80) {
    bytes += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  bytes += static_cast<char>(value);
}

void PutText(std::string_view text, std::string& bytes) {
  PutNumber(text.size(), bytes);
  bytes += text;
}

void PutKnown(const std::optional<int64_t>& value, std::string& bytes) {
  PutNumber(value ? 1 : 0, bytes);
  if (value) PutNumber(static_cast<uint64_t>(*value), bytes);
}

template <typename Numbers>
void PutNumbers(const Numbers& numbers, std::string& bytes) {
  PutNumber(numbers.size(), bytes);
  for (const uint64_t number : numbers) PutNumber(number, bytes);
}

}  // namespace

std::string PackedTrace::ToBytes() const {
  std::string bytes(kPackedMagic);
  PutNumber(kPackedVersion, bytes);
  for (const size_t count : {node_count_, text_count_, int_list_count_, tensor_count_,
                             value_list_count_, lane_count_, group_count_, dangling_count_}) {
    PutNumber(count, bytes);
  }
  PutNumber(static_cast<uint64_t>(info_.format), bytes);
  PutText(info_.schema, bytes);
  PutText(info_.time, bytes);
  for (const auto& fact :
       {info_.pid, info_.start_ts, info_.finish_ts, info_.rank, info_.world_size}) {
    PutKnown(fact, bytes);
  }
  PutNumber(info_.traits.exclusive_durations ? 1 : 0, bytes);
  PutNumber(info_.extras.size(), bytes);
  for (const Extra& extra : info_.extras) {
    PutNumber(extra.key.value(), bytes);
    PutNumber(extra.text.value(), bytes);
    PutNumber(static_cast<uint64_t>(extra.form), bytes);
  }
  const auto counted = [&](const StatInfo& info) { return stats_[info.stat] != 0; };
  PutNumber(static_cast<uint64_t>(std::ranges::count_if(StatTable(), counted)), bytes);
  for (const StatInfo& info : StatTable()) {
    if (!counted(info)) continue;
    PutText(info.name, bytes);
    PutNumber(stats_[info.stat], bytes);
  }
  PutNumber(templates_.size(), bytes);
  for (const std::string& form : templates_) PutText(form, bytes);
  PutNumber(tokens_.size(), bytes);
  for (const auto& token : tokens_) PutNumbers(token, bytes);
  PutNumber(program_.motifs.size(), bytes);
  for (const auto& motif : program_.motifs) PutNumbers(motif, bytes);
  PutNumbers(program_.parts, bytes);
  for (const PackedNumbers& numbers : numbers_) {
    PutNumber(static_cast<uint64_t>(numbers.expect), bytes);
    PutText(numbers.bytes, bytes);
  }
  return bytes;
}

// Reads the output of ToBytes. Sizes beyond the remaining bytes and references to missing entries
// are faults. The numbers in the columns are checked when they are unpacked.
class PackedTraceReader {
 public:
  explicit PackedTraceReader(std::string_view bytes) : bytes_(bytes) {}

  Result<PackedTrace> Run() {
    if (!bytes_.starts_with(kPackedMagic)) {
      return BadInput("found unknown content, expected a packed trace");
    }
    at_ = kPackedMagic.size();
    const uint64_t version = Number();
    if (version != kPackedVersion) {
      return BadInput(
          fmt::format("found version {} of a packed trace, expected {}", version, kPackedVersion));
    }
    PackedTrace& to = packed_;
    to.source_bytes_ = bytes_.size();
    for (size_t* count :
         {&to.node_count_, &to.text_count_, &to.int_list_count_, &to.tensor_count_,
          &to.value_list_count_, &to.lane_count_, &to.group_count_, &to.dangling_count_}) {
      *count = Number(UINT32_MAX - 1);
    }
    ReadInfo();
    ReadStats();
    to.templates_.resize(Count());
    for (std::string& form : to.templates_) form = Text();
    to.tokens_.resize(Count());
    for (auto& token : to.tokens_) ReadNumbers(token, UINT64_MAX);
    to.program_.tokens = static_cast<uint32_t>(to.tokens_.size());
    to.program_.motifs.resize(Count());
    for (auto& motif : to.program_.motifs) ReadNumbers(motif, UINT32_MAX);
    ReadNumbers(to.program_.parts, UINT32_MAX);
    for (PackedNumbers& numbers : to.numbers_) {
      numbers.expect = static_cast<PackedNumbers::Expect>(
          Number(static_cast<uint64_t>(PackedNumbers::Expect::kNext)));
      numbers.bytes = Text();
    }
    if (fault_ || at_ != bytes_.size()) {
      return BadInput(fmt::format(
          "found invalid content at byte {}, expected a complete packed trace of {} bytes",
          fault_ ? fault_at_ : at_, bytes_.size()));
    }
    return std::move(packed_);
  }

 private:
  void Fault() {
    if (!fault_) fault_at_ = at_;
    fault_ = true;
  }

  uint64_t Number(uint64_t most = UINT64_MAX) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !fault_; shift += 7) {
      if (at_ == bytes_.size()) break;
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte >= 0x80) continue;
      if (value <= most) return value;
      break;
    }
    Fault();
    return 0;
  }
  // Returns a count of items that take at least one byte each.
  size_t Count() { return Number(bytes_.size() - at_); }

  std::string Text() {
    const size_t size = Count();
    if (size > bytes_.size() - at_) Fault();
    if (fault_) return "";
    at_ += size;
    return std::string(bytes_.substr(at_ - size, size));
  }

  template <typename T>
  void ReadNumbers(std::vector<T>& numbers, uint64_t most) {
    numbers.resize(Count());
    for (T& number : numbers) number = static_cast<T>(Number(most));
  }

  std::optional<int64_t> Known() {
    if (Number(1) == 0) return std::nullopt;
    return static_cast<int64_t>(Number());
  }

  void ReadInfo() {
    TraceInfo& info = packed_.info_;
    info.SetFormat(static_cast<TraceFormat>(Number(static_cast<uint64_t>(kLastTraceFormat))));
    info.schema = Text();
    info.time = Text();
    for (auto* fact : {&info.pid, &info.start_ts, &info.finish_ts, &info.rank, &info.world_size}) {
      *fact = Known();
    }
    info.traits.exclusive_durations = Number(1) != 0;
    info.extras.resize(Count());
    for (Extra& extra : info.extras) {
      extra.key = StringId(static_cast<uint32_t>(Number(UINT32_MAX)));
      extra.text = StringId(static_cast<uint32_t>(Number(UINT32_MAX)));
      extra.form = static_cast<Extra::Form>(Number(static_cast<uint64_t>(Extra::Form::kProtobuf)));
    }
  }

  void ReadStats() {
    const size_t count = Count();
    for (size_t i = 0; i < count && !fault_; ++i) {
      const std::string name = Text();
      const auto stat = std::ranges::find(StatTable(), name, &StatInfo::name);
      const uint64_t times = Number();
      if (stat == StatTable().end()) {
        Fault();
      } else {
        packed_.stats_.Count(stat->stat, times);
      }
    }
  }

  std::string_view bytes_;
  size_t at_ = 0;
  bool fault_ = false;
  size_t fault_at_ = 0;
  PackedTrace packed_;
};

Result<PackedTrace> PackedTrace::FromBytes(std::string_view bytes) {
  return PackedTraceReader(bytes).Run();
}

}  // namespace etude
