#include "src/formats/native/capture_allocations.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>

#include "src/trace/words/memory_event.h"

namespace etude {

void AddAllocations(std::vector<Allocation> allocations, uint64_t last_node,
                    TraceBuilder& builder) {
  std::ranges::stable_sort(allocations, {}, &Allocation::time);
  std::unordered_map<uint64_t, int64_t> sizes;  // by address
  int64_t total = 0;
  for (const Allocation& one : allocations) {
    constexpr uint64_t kMost = uint64_t{1} << 50;  // larger sizes are invalid
    const auto found = sizes.find(one.address);
    const bool gives_out = one.bytes != 0;
    if (!gives_out && found == sizes.end()) continue;
    const int64_t bytes = gives_out ? static_cast<int64_t>(one.bytes) : -found->second;
    if (gives_out && found != sizes.end()) {
      // Its release was not recorded: by a terminating thread, or in a damaged block.
      total -= found->second;
      sizes.erase(found);
    }
    int64_t sum = 0;
    if (one.bytes > kMost || __builtin_add_overflow(total, bytes, &sum)) {
      builder.stats().Count(Stat::kMalformedElement);
      continue;
    }
    total = sum;
    if (gives_out) {
      sizes.emplace(one.address, bytes);
    } else {
      sizes.erase(found);
    }
    NodeRow row;
    row.source_id = ++last_node;
    row.kind = NodeKind::kMetadata;
    row.place = Place::kHost;
    row.name = builder.Intern(kMemoryEvent);
    row.parent = one.parent;
    row.lane = one.lane;
    row.start = Nanos{one.start};
    row.tid = one.tid;
    const NodeId node = builder.AddNode(row);
    const auto add = [&](std::string_view key, int64_t value) {
      builder.AddExtra(node,
                       {.key = builder.Intern(key), .text = builder.Intern(std::to_string(value))});
    };
    add("Device Type", 0);
    add("Device Id", -1);
    add("Addr", static_cast<int64_t>(one.address));
    add("Bytes", bytes);
    add("Total Allocated", total);
  }
}

}  // namespace etude
