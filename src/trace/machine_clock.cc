#include "src/trace/machine_clock.h"

namespace etude {

std::string_view MachineClockOf(const Trace& trace) {
  for (const Extra& extra : trace.info().extras) {
    const std::string_view text = trace.text(extra.text);
    if (trace.text(extra.key) == kClockKey && text.starts_with('"')) return text;
  }
  return {};
}

}  // namespace etude
