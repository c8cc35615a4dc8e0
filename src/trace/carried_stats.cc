#include "src/trace/carried_stats.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>

namespace etude {
namespace {

constexpr std::string_view kKey = "etude_met";

constexpr auto kCarried =
    std::to_array<Stat>({Stat::kTruncated, Stat::kMalformedElement, Stat::kNonFiniteNumber,
                         Stat::kRenumberedId, Stat::kUnlinkedHost, Stat::kUnlinkedDeviceOp,
                         Stat::kUnlinkedEvent, Stat::kAmbiguousLink, Stat::kFallbackLink});

// Returns the count after `"name":` in a flat JSON object, 0 if missing. Quotes may be escaped,
// because formats wrap the text in their own ways.
uint64_t CountIn(std::string_view text, std::string_view name) {
  size_t at = text.find(name);
  if (at == std::string_view::npos) return 0;
  at += name.size();
  while (at < text.size() &&
         (text[at] == '"' || text[at] == '\\' || text[at] == ':' || text[at] == ' ')) {
    ++at;
  }
  uint64_t count = 0;
  std::from_chars(text.data() + at, text.data() + text.size(), count);
  return count;
}

}  // namespace

void CarryStats(TraceBuilder& builder) {
  std::string text;
  for (const Stat stat : kCarried) {
    const uint64_t count = builder.stats()[stat];
    if (count == 0) continue;
    text += (text.empty() ? "{\"" : ",\"") + std::string(Info(stat).name) +
            "\":" + std::to_string(count);
  }
  const StringId key = builder.Intern(kKey);
  std::erase_if(builder.info().extras, [&](const Extra& extra) { return extra.key == key; });
  if (text.empty()) return;
  builder.info().extras.push_back({.key = key, .text = builder.Intern(text + "}")});
}

Stats CarriedStats(const Trace& trace) {
  Stats stats = trace.stats();
  for (const Extra& extra : trace.info().extras) {
    // Chakra files may prefix the key with the writer's name.
    if (!trace.text(extra.key).ends_with(kKey)) continue;
    for (const Stat stat : kCarried) {
      const uint64_t count = CountIn(trace.text(extra.text), Info(stat).name);
      if (count > stats[stat]) stats.Count(stat, count - stats[stat]);
    }
  }
  return stats;
}

}  // namespace etude
