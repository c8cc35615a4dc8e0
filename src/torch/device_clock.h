#pragma once

#include <vector>

#include <c10/core/Device.h>
#include <c10/core/Event.h>

#include "src/base/units.h"

namespace etude {

// Times what a device's current stream is given, as the device does it: later than it is given, and
// without waiting for it.
class DeviceClock {
 public:
  // Whether the device can tell times.
  static bool Works(const c10::Device& device);

  explicit DeviceClock(const c10::Device& device) : device_(device) {}

  // Around a piece of work. Throw what the device throws.
  void Begin();
  void End();
  // Of each piece, once the device has done them all.
  std::vector<Nanos> Times() const;

 private:
  struct Piece {
    c10::Event begin;
    c10::Event end;
  };

  c10::Event Mark() const;

  c10::Device device_;
  std::vector<Piece> pieces_;
};

}  // namespace etude
