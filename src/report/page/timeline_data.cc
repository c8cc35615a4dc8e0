#include "src/report/page/timeline_data.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "src/report/text/page_text.h"

namespace etude {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostNamePoints = 400;

void PutNumber(uint64_t number, std::string& bytes) {
  for (; number >= 0x80; number >>= 7) bytes += static_cast<char>(number | 0x80);
  bytes += static_cast<char>(number);
}

uint64_t ZigZag(uint64_t from, uint64_t to) {
  const uint64_t difference = to - from;
  return difference << 1 ^ (difference >> 63 ? ~uint64_t{0} : 0);
}

class Writer {
 public:
  explicit Writer(const std::vector<Page::Track>& tracks) : tracks_(tracks) {}

  Json Write() {
    std::optional<Interval> span;
    for (const Page::Track& track : tracks_) {
      if (!track.timeline.span) continue;
      const Interval own{track.timeline.span->begin - track.clock_offset,
                         track.timeline.span->end - track.clock_offset};
      if (!span) span = own;
      span->begin = std::min(span->begin, own.begin);
      span->end = std::max(span->end, own.end);
    }
    if (!span) return nullptr;
    origin_ = span->begin;
    Json tracks = Json::array();
    for (const Page::Track& track : tracks_) tracks.push_back(TrackJson(track));
    Json names = Json::array();
    for (const auto& [text, kind] : names_) {
      names.push_back(Json::array({VisibleText(text, kMostNamePoints), Name(kind)}));
    }
    return {{"span_ns", span->length().count},
            {"names", std::move(names)},
            {"tracks", std::move(tracks)}};
  }

 private:
  Json TrackJson(const Page::Track& track) {
    std::vector<uint32_t> names;  // page names by track name
    for (const Timeline::Name& name : track.timeline.names) {
      const auto [at, added] =
          name_index_.try_emplace({name.text, name.kind}, static_cast<uint32_t>(names_.size()));
      if (added) names_.emplace_back(name.text, name.kind);
      names.push_back(at->second);
    }
    Json lanes = Json::array();
    for (const Timeline::Lane& lane : track.timeline.lanes) {
      Json rows = Json::array();
      for (const Timeline::Row& row : lane.rows) {
        rows.push_back({{"count", row.begins.size()}, {"events", Events(row, track, names)}});
      }
      lanes.push_back({{"title", VisibleText(lane.title)},
                       {"place", Name(lane.place)},
                       {"rows", std::move(rows)}});
    }
    return {{"title", VisibleText(track.title)}, {"lanes", std::move(lanes)}};
  }

  std::string Events(const Timeline::Row& row, const Page::Track& track,
                     const std::vector<uint32_t>& names) const {
    std::string bytes;
    Nanos end = origin_;
    uint64_t node = 0;
    for (size_t i = 0; i < row.begins.size(); ++i) {
      const Nanos begin = row.begins[i] - track.clock_offset;
      PutNumber(static_cast<uint64_t>(std::max<int64_t>((begin - end).count, 0)), bytes);
      PutNumber(static_cast<uint64_t>(std::max<int64_t>(row.lengths[i].count, 0)), bytes);
      PutNumber(names[row.names[i]], bytes);
      PutNumber(ZigZag(node, row.nodes[i]), bytes);
      end = begin + row.lengths[i];
      node = row.nodes[i];
    }
    return Base64(bytes);
  }

  const std::vector<Page::Track>& tracks_;
  Nanos origin_;
  std::vector<std::pair<std::string, NodeKind>> names_;
  std::map<std::pair<std::string, NodeKind>, uint32_t> name_index_;
};

}  // namespace

Json TimelineJson(const std::vector<Page::Track>& tracks) { return Writer(tracks).Write(); }

}  // namespace etude
