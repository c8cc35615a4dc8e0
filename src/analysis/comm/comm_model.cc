#include "src/analysis/comm/comm_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "src/base/statistics/median.h"
#include "src/run/calls/comm_log.h"
#include "src/run/step/recorded_step.h"
#include "src/trace/words/comm_backend.h"

namespace etude {
namespace {

// Weighted by 1 / time², to minimize relative errors: time = a + b * wire.
CommModel Fit(const std::vector<std::pair<double, double>>& points) {
  double s = 0, sx = 0, sxx = 0, sy = 0, sxy = 0;
  for (const auto& [wire, time] : points) {
    const double weight = 1 / (time * time);
    s += weight;
    sx += weight * wire;
    sxx += weight * wire * wire;
    sy += weight * time;
    sxy += weight * wire * time;
  }
  const double spread = s * sxx - sx * sx;
  double latency = 0;
  double per_byte = sxx > 0 ? sxy / sxx : 0;
  if (sxx == 0) latency = sy / s;
  if (spread > 1e-9 * s * sxx) {
    const double slope = (s * sxy - sx * sy) / spread;
    const double offset = (sy - slope * sx) / s;
    // Neither can be negative: if one would be, the other alone is the best fit.
    if (slope < 0) {
      latency = sy / s;
      per_byte = 0;
    } else if (offset >= 0) {
      latency = offset;
      per_byte = slope;
    }
  }
  CommModel model{.latency = Nanos{static_cast<int64_t>(std::llround(latency))}};
  if (per_byte > 0) model.bytes_per_second = 1e9 / per_byte;
  return model;
}

}  // namespace

double WireBytes(const CommSize& size) {
  const auto bytes = static_cast<double>(size.bytes.count);
  const auto n = static_cast<double>(std::max<int64_t>(size.ranks, 1));
  if (size.kind != NodeKind::kCollective) return bytes;
  switch (size.type) {
    case CollectiveType::kAllReduce: return 2 * bytes * (n - 1) / n;
    case CollectiveType::kAllGather:
    case CollectiveType::kGather: return bytes * (n - 1);
    case CollectiveType::kReduceScatter:
    case CollectiveType::kReduceScatterBlock:
    case CollectiveType::kAllToAll:
    case CollectiveType::kScatter: return bytes * (n - 1) / n;
    case CollectiveType::kBarrier: return 0;
    case CollectiveType::kReduce:
    case CollectiveType::kBroadcast:
    case CollectiveType::kUnknown: return bytes;
  }
  return bytes;
}

Nanos CommModel::TimeOf(const CommSize& size) const {
  if (!bytes_per_second) return latency;
  const double transfer = WireBytes(size) / *bytes_per_second * 1e9;
  constexpr double kLongest = 9e18;
  return latency + Nanos{static_cast<int64_t>(std::min(transfer, kLongest))};
}

CommModel CommModel::Slower(double factor) const {
  CommModel slower{.latency = Nanos{std::llround(static_cast<double>(latency.count) * factor)}};
  if (bytes_per_second) slower.bytes_per_second = *bytes_per_second / factor;
  return slower;
}

std::optional<CommFit> FitCommModel(std::span<const CommTime> times) {
  using Key = std::tuple<NodeKind, CollectiveType, int64_t, int64_t>;
  std::map<Key, std::pair<double, double>> quickest;  // bytes on the wire, nanoseconds
  CommFit fit;
  for (const CommTime& row : times) {
    if (row.time <= Nanos{}) continue;
    ++fit.communications;
    const auto time = static_cast<double>(row.time.count);
    const auto [entry, is_new] =
        quickest.try_emplace({row.size.kind, row.size.type, row.size.bytes.count, row.size.ranks},
                             WireBytes(row.size), time);
    if (!is_new) entry->second.second = std::min(entry->second.second, time);
  }
  if (quickest.empty()) return std::nullopt;
  std::vector<std::pair<double, double>> points;
  for (const auto& [key, point] : quickest) points.push_back(point);
  fit.sizes = points.size();
  fit.model = Fit(points);
  std::vector<double> errors;
  for (const auto& [wire, time] : points) {
    const double per_byte = fit.model.bytes_per_second ? 1e9 / *fit.model.bytes_per_second : 0;
    const double modelled = static_cast<double>(fit.model.latency.count) + wire * per_byte;
    errors.push_back(std::abs(modelled - time) / time);
  }
  fit.typical_error = MedianInPlace(errors);
  return fit;
}

std::vector<CommTime> CommTimes(const Trace& trace) {
  std::vector<CommTime> times;
  for (const auto& [node, carrier] : CommNodes(trace)) {
    // The time of a joint kernel belongs to none of its calls alone.
    if (carrier) continue;
    // Other host calls return before the communication is over.
    if (trace.place(node) != Place::kDevice && !IsHostThreadLabel(trace.name(node))) continue;
    const Comm& comm = *trace.comm(node);
    const auto duration = trace.duration(node);
    std::optional<Bytes> bytes = comm.bytes;
    if (trace.kind(node) == NodeKind::kRecv && !bytes) {
      const auto element = ElementBytes(comm.dtype);
      int64_t count = 0;
      if (comm.out_elements && element &&
          !__builtin_mul_overflow(*comm.out_elements, *element, &count)) {
        bytes = Bytes{count};
      }
    }
    if (!duration || (!bytes && comm.type != CollectiveType::kBarrier)) continue;
    std::optional<int64_t> ranks = comm.group_size;
    const ProcessGroup* group = ranks ? nullptr : trace.FindGroup(comm.group);
    if (group != nullptr) ranks = trace.GroupSize(*group);
    if (!ranks) ranks = trace.info().world_size;
    if (!ranks) continue;
    times.push_back({.size = {.kind = trace.kind(node),
                              .type = comm.type,
                              .bytes = bytes.value_or(Bytes{}),
                              .ranks = *ranks},
                     .time = *duration});
  }
  return times;
}

}  // namespace etude
