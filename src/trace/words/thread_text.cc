#include "src/trace/words/thread_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/base/text/ascii.h"

namespace etude {

std::string ThreadText(const Trace& trace, const Lane& lane, std::string_view unknown) {
  if (!lane.thread) return std::string(unknown);
  const std::string_view name = trace.text(lane.thread);
  return (name.starts_with("thread ") ? "" : "thread ") + std::string(name);
}

std::string ProcessText(std::string_view process) {
  return (std::ranges::all_of(process, IsDigit) ? "process " : "") + std::string(process);
}

std::string StreamText(const Trace& trace, const Lane& lane) {
  std::string text = lane.device < 0 ? fmt::format("stream {}", lane.stream)
                                     : fmt::format("device {} stream {}", lane.device, lane.stream);
  if (lane.process) text += fmt::format(" of {}", ProcessText(trace.text(lane.process)));
  return text;
}

}  // namespace etude
