#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace etude {

// Maps recorded devices to the replay's device.
class DeviceMap {
 public:
  // `target`: a device in PyTorch's notation, "cpu", "cuda:0".
  explicit DeviceMap(std::string target) : target_(std::move(target)) {}

  const std::string& target() const { return target_; }
  bool target_is_cpu() const { return target_ == "cpu"; }

  // Returns the replay's device for `recorded`. Devices other than "cpu" map to the target. "cpu"
  // stays if the step used another device as well; otherwise it maps to the target.
  std::string Map(std::string_view recorded) const;
  // Sets whether the step used a device other than the CPU. Call before Map.
  void set_step_uses_device(bool uses) { step_uses_device_ = uses; }
  // Returns whether operators run on the kind of device on which they were recorded.
  bool same_kind() const { return step_uses_device_ != target_is_cpu(); }

 private:
  std::string target_;
  bool step_uses_device_ = false;
};

// A replacement for an operator that exists on some devices only.
struct Equivalent {
  std::string_view op;           // full name of the recorded operator
  std::string_view replacement;  // full name of the equivalent operator
  // Source of each argument of the replacement: the position of a recorded argument, or a constant.
  struct Source {
    enum class Kind : uint8_t { kArgument, kNone, kFalse, kTrue, kZeros, kAllTrue };
    Kind kind = Kind::kArgument;
    int argument = 0;
  };
  std::span<const Source> arguments;
  bool fails_on_cpu = false;  // has a CPU kernel, but it fails
};

// Returns the equivalent of `op` for a device without its kernel, or nullptr.
const Equivalent* FindEquivalent(std::string_view op);

// Returns the reason why an operator must never run, or "": it accesses files or the process, or it
// cannot be called from here.
std::string_view ReasonNotToRun(std::string_view op);

// Returns whether a text argument of this name is a file, folder or address.
bool IsFileArgument(std::string_view argument);
inline constexpr std::string_view kTouchesFiles = "touches files";

}  // namespace etude
