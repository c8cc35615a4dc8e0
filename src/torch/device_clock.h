#pragma once

#include <vector>

#include <c10/core/Device.h>
#include <c10/core/Event.h>

#include "src/base/units.h"

namespace etude {

// Marks the present place in the device's current stream, with the time when the device comes to
// it. Throws the device's errors.
c10::Event MarkStream(const c10::Device& device);

// Measures work on a device's current stream by device events, without waiting for it.
class DeviceClock {
 public:
  // Returns whether the device has timing events.
  static bool Works(const c10::Device& device);

  explicit DeviceClock(const c10::Device& device) : device_(device) {}

  // Mark begin and end of a piece of work. Throw the device's errors.
  void Begin();
  void End();
  // Returns the time of each piece. Call after the device has finished all of them.
  std::vector<Nanos> Times() const;

 private:
  struct Piece {
    c10::Event begin;
    c10::Event end;
  };

  c10::Device device_;
  std::vector<Piece> pieces_;
};

}  // namespace etude
