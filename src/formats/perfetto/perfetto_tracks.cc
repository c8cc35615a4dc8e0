#include "src/formats/perfetto/perfetto_tracks.h"

#include "src/formats/json/json_text.h"
#include "src/formats/perfetto/perfetto_schema.h"
#include "src/formats/perfetto/perfetto_wire.h"

namespace etude::perfetto {
namespace {

using protozero::pbf_reader;

constexpr int kMostAbove = 64;  // maximum depth of nested tracks

}  // namespace

void Tracks::Read(std::string_view bytes) {
  uint64_t uuid = 0;
  Track track;
  pbf_reader reader(bytes.data(), bytes.size());
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case Varint(TrackField::kUuid): uuid = reader.get_uint64(); break;
      case Varint(TrackField::kParent): track.parent = reader.get_uint64(); break;
      case Delimited(TrackField::kName):
      case Delimited(TrackField::kStaticName):
        track.name = InternText(strings_, reader.get_view());
        break;
      case Delimited(TrackField::kProcess): ReadProcess(View(reader.get_view()), track); break;
      case Delimited(TrackField::kThread): ReadThread(View(reader.get_view()), track); break;
      default: reader.skip();
    }
  }
  tracks_[uuid] = track;
}

void Tracks::ReadProcess(std::string_view bytes, Track& track) {
  pbf_reader process(bytes.data(), bytes.size());
  while (process.next()) {
    if (process.tag_and_type() == Varint(ProcessField::kPid)) {
      track.pid = process.get_int32();
    } else {
      process.skip();
    }
  }
}

void Tracks::ReadThread(std::string_view bytes, Track& track) {
  pbf_reader thread(bytes.data(), bytes.size());
  while (thread.next()) {
    switch (thread.tag_and_type()) {
      case Varint(ThreadField::kPid): track.pid = thread.get_int32(); break;
      case Varint(ThreadField::kTid): track.tid = thread.get_int64(); break;
      default: thread.skip();
    }
  }
}

Tracks::Lane Tracks::LaneOf(uint64_t track) const {
  Lane lane;
  StringId name;
  for (int i = 0; i < kMostAbove; ++i) {
    const auto found = tracks_.find(track);
    if (found == tracks_.end()) break;
    const Track& at = found->second;
    if (lane.pid.empty() && at.pid) lane.pid = std::to_string(*at.pid);
    if (lane.tid.empty() && at.tid) lane.raw_tid = lane.tid = std::to_string(*at.tid);
    const bool is_process = at.pid && !at.tid;
    if (!name && !is_process) name = at.name;
    if (at.parent == 0 || at.parent == track) break;
    track = at.parent;
  }
  if (lane.tid.empty() && name) {
    lane.tid = strings_.Get(name);
    lane.raw_tid = JsonString(lane.tid);
  }
  return lane;
}

}  // namespace etude::perfetto
