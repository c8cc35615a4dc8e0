#include "src/formats/perfetto/perfetto_sequence.h"

#include <algorithm>
#include <vector>

#include "src/base/units.h"
#include "src/formats/perfetto/perfetto_schema.h"
#include "src/formats/perfetto/perfetto_wire.h"

namespace etude::perfetto {
namespace {

using protozero::pbf_reader;

constexpr uint32_t kNoClock = 0;   // no clock is named: the trace's clock
constexpr uint32_t kBootTime = 6;  // the number of the trace's clock
// Clocks with these numbers belong to a sequence. All others belong to the trace.
constexpr uint32_t kFirstOfSequence = 64;
constexpr uint32_t kEndOfSequence = 128;

}  // namespace

void Sequence::ReadDefaults(std::string_view bytes) {
  pbf_reader reader(bytes.data(), bytes.size());
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case Varint(DefaultsField::kTimestampClock): default_clock_ = reader.get_uint32(); break;
      case Delimited(DefaultsField::kTrackEvent): {
        pbf_reader event(reader.get_view());
        while (event.next()) {
          if (event.tag_and_type() == Varint(EventDefaultsField::kTrack)) {
            default_track_ = event.get_uint64();
          } else {
            event.skip();
          }
        }
        break;
      }
      default: reader.skip();
    }
  }
}

void Sequence::ReadInterned(std::string_view bytes, StringPool& strings) {
  pbf_reader reader(bytes.data(), bytes.size());
  while (reader.next()) {
    Texts* texts = nullptr;
    switch (reader.tag_and_type()) {
      case Delimited(InternedField::kCategories): texts = &categories_; break;
      case Delimited(InternedField::kEventNames): texts = &names_; break;
      case Delimited(InternedField::kAnnotationNames): texts = &argument_names_; break;
      case Delimited(InternedField::kAnnotationTexts): texts = &argument_texts_; break;
      default: break;
    }
    if (texts == nullptr) {
      reader.skip();
      continue;
    }
    uint64_t id = 0;
    StringId text = strings.Intern("");
    pbf_reader entry(reader.get_view());
    while (entry.next()) {
      switch (entry.tag_and_type()) {
        case Varint(InternedEntry::kId): id = entry.get_uint64(); break;
        case Delimited(InternedEntry::kText): text = InternText(strings, entry.get_view()); break;
        default: entry.skip();
      }
    }
    (*texts)[id] = text;
  }
}

Sequence::Reading Sequence::ReadReading(std::string_view bytes) {
  Reading reading;
  pbf_reader clock(bytes.data(), bytes.size());
  while (clock.next()) {
    switch (clock.tag_and_type()) {
      case Varint(ClockField::kId): reading.id = clock.get_uint32(); break;
      case Varint(ClockField::kTime):
        reading.time = static_cast<int64_t>(clock.get_uint64());
        break;
      case Varint(ClockField::kIncremental): reading.incremental = clock.get_bool(); break;
      case Varint(ClockField::kUnit):
        reading.factor = static_cast<int64_t>(clock.get_uint64());
        break;
      default: clock.skip();
    }
  }
  return reading;
}

Clocks& Sequence::ClocksOf(uint32_t id, Clocks& shared) {
  return id >= kFirstOfSequence && id < kEndOfSequence ? clocks_ : shared;
}

void Sequence::ReadSnapshot(std::string_view bytes, Clocks& shared) {
  std::vector<Reading> readings;
  pbf_reader reader(bytes.data(), bytes.size());
  while (reader.next()) {
    if (reader.tag_and_type() == Delimited(SnapshotField::kClock)) {
      readings.push_back(ReadReading(View(reader.get_view())));
    } else {
      reader.skip();
    }
  }
  const auto boot = std::ranges::find(readings, kBootTime, &Reading::id);
  for (const Reading& reading : readings) {
    if (reading.id == kBootTime) continue;
    const int64_t factor = std::max(reading.factor, int64_t{1});
    int64_t time = 0;
    if (__builtin_mul_overflow(reading.time, factor, &time)) continue;
    Clock& clock = ClocksOf(reading.id, shared)[reading.id];
    clock.factor = factor;
    clock.incremental = reading.incremental;
    clock.last = time;
    if (boot != readings.end()) clock.offsets[time] = (Nanos{boot->time} - Nanos{time}).count;
  }
}

std::optional<ClockTime> Sequence::TimeOf(uint64_t timestamp, std::optional<uint32_t> clock,
                                          Clocks& shared) {
  if (timestamp > uint64_t{INT64_MAX}) return std::nullopt;
  auto time = static_cast<int64_t>(timestamp);
  const uint32_t id = clock.value_or(default_clock_);
  if (id == kNoClock || id == kBootTime) return ClockTime{.nanos = time};
  Clocks& clocks = ClocksOf(id, shared);
  const auto found = clocks.find(id);
  if (found == clocks.end()) return ClockTime{.nanos = time, .is_known = false};
  Clock& own = found->second;
  if (__builtin_mul_overflow(time, own.factor, &time)) return std::nullopt;
  if (own.incremental) {
    if (__builtin_add_overflow(own.last, time, &time)) return std::nullopt;
    own.last = time;
  }
  if (own.offsets.empty()) return ClockTime{.nanos = time, .is_known = false};
  auto snapshot = own.offsets.upper_bound(time);
  if (snapshot != own.offsets.begin()) --snapshot;
  if (__builtin_add_overflow(time, snapshot->second, &time)) return std::nullopt;
  return ClockTime{.nanos = time};
}

}  // namespace etude::perfetto
