#include "src/trace/thread_text.h"

namespace etude {

std::string ThreadText(const Trace& trace, const Lane& lane, std::string_view unknown) {
  if (!lane.thread) return std::string(unknown);
  const std::string_view name = trace.text(lane.thread);
  return (name.starts_with("thread ") ? "" : "thread ") + std::string(name);
}

}  // namespace etude
