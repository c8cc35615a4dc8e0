#include "src/trace/reference_forecast.h"

#include <utility>

namespace etude {

ReferenceForecast::ReferenceForecast(const MotifProgram& program) {
  const std::vector<uint64_t> lengths = program.Lengths();
  std::vector<std::optional<size_t>> first(program.motifs.size());
  program.Walk(
      [&](uint32_t /*token*/) {
        earlier_.emplace_back();
        return true;
      },
      [&](uint32_t motif) {
        if (!first[motif]) {
          first[motif] = earlier_.size();
          return true;
        }
        // Motifs inside it already occurred in its first occurrence.
        const size_t begin = *first[motif];
        const size_t end = begin + lengths[motif];
        for (size_t node = begin; node < end; ++node) {
          earlier_.push_back({.begin = begin, .end = end, .node = node});
        }
        return false;
      });
}

std::optional<uint64_t> ReferenceForecast::Expected() const {
  const size_t node = begins_.size() - 1;
  const Earlier& earlier = earlier_[node];
  if (earlier.begin == earlier.end) return std::nullopt;
  const size_t at = begins_[earlier.node] + (distances_.size() - begins_[node]);
  if (at >= begins_[earlier.node + 1]) return std::nullopt;
  const uint64_t target = earlier.node - distances_[at];
  if (target < earlier.begin || target >= earlier.end) return std::nullopt;
  return distances_[at];
}

}  // namespace etude
