#pragma once

#include <cstdint>
#include <vector>

#include "src/sim/sim_input.h"

namespace etude {

// What has come to a class of ranks at one time and was planned at one time: from where. The order
// of what comes from several ranks is not known, unless all of it is for one stream, which takes it
// in any order.
class Coincidences {
 public:
  explicit Coincidences(const SimInput& input)
      : by_class_(input.by_class), ranks_(by_class_ ? input.rank_count() : 0) {}

  // Something comes to a rank now that was sent to `to` by `source`, for `stream` or kNoIndex.
  void Add(SimIndex at, int64_t now, int64_t planned, SimIndex source, int64_t to,
           SimIndex stream) {
    if (by_class_) AddTo(ranks_[at], now, {planned, source, to, stream});
  }
  // The rank has planned it itself.
  void AddOwn(SimIndex at, int64_t now, int64_t planned) {
    if (by_class_) AddTo(ranks_[at], now, {.planned = planned});
  }
  // Whether classes of ranks were not enough to know what happens.
  bool ambiguous() const { return ambiguous_; }

 private:
  struct Arrivals {
    int64_t planned = 0;
    SimIndex source = kNoIndex;
    int64_t to = -1;
    SimIndex stream = kNoIndex;
    bool one_source = true;
    bool one_stream = true;
  };
  struct Rank {
    int64_t time = -1;
    std::vector<Arrivals> arrivals;
  };

  void AddTo(Rank& rank, int64_t now, const Arrivals& arrival) {
    if (rank.time != now) {
      rank.time = now;
      rank.arrivals.clear();
    }
    for (Arrivals& other : rank.arrivals) {
      if (other.planned != arrival.planned) continue;
      other.one_source =
          other.one_source && other.source == arrival.source && other.to == arrival.to;
      other.one_stream =
          other.one_stream && arrival.stream != kNoIndex && other.stream == arrival.stream;
      ambiguous_ = ambiguous_ || (!other.one_source && !other.one_stream);
      return;
    }
    rank.arrivals.push_back(arrival);
  }

  const bool by_class_;
  std::vector<Rank> ranks_;
  bool ambiguous_ = false;
};

}  // namespace etude
