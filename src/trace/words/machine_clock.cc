#include "src/trace/words/machine_clock.h"

#include "src/base/text/quantity.h"

namespace etude {

std::string_view MachineClockOf(const Trace& trace) {
  for (const Extra& extra : trace.info().extras) {
    const std::string_view text = trace.text(extra.text);
    if (trace.text(extra.key) == kClockKey && text.starts_with('"')) return text;
  }
  return {};
}

std::optional<Nanos> BaseTimeOf(const Trace& trace) {
  for (const Extra& extra : trace.info().extras) {
    if (trace.text(extra.key) != kBaseTimeKey) continue;
    if (const auto nanos = ParseWhole(trace.text(extra.text))) return Nanos{*nanos};
  }
  return std::nullopt;
}

}  // namespace etude
