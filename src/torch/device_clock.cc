#include "src/torch/device_clock.h"

#include <cmath>
#include <exception>

#include <c10/core/impl/VirtualGuardImpl.h>

namespace etude {

c10::Event MarkStream(const c10::Device& device) {
  c10::Event event(device.type(), c10::EventFlag::BACKEND_DEFAULT);  // with timing enabled
  event.record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
  return event;
}

bool DeviceClock::Works(const c10::Device& device) {
  if (device.is_cpu()) return false;
  try {
    DeviceClock clock(device);
    clock.Begin();
    clock.End();
    clock.pieces_.front().end.synchronize();
    return clock.Times().size() == 1;
  } catch (const std::exception&) {
    return false;
  }
}

void DeviceClock::Begin() {
  pieces_.push_back({.begin = MarkStream(device_), .end = c10::Event(device_.type())});
}

void DeviceClock::End() { pieces_.back().end = MarkStream(device_); }

std::vector<Nanos> DeviceClock::Times() const {
  std::vector<Nanos> times;
  for (const Piece& piece : pieces_) {
    const double ms = piece.begin.elapsedTime(piece.end);
    times.push_back(Nanos{std::llround(ms * 1e6)});
  }
  return times;
}

}  // namespace etude
