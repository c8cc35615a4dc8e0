#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace etude {

// Where a replay runs, and what becomes of what the trace says about devices and of operators that
// only exist on some of them.
class DeviceMap {
 public:
  // `target` is a device as PyTorch writes it: "cpu", "cuda:0".
  explicit DeviceMap(std::string target) : target_(std::move(target)) {}

  const std::string& target() const { return target_; }
  bool target_is_cpu() const { return target_ == "cpu"; }

  // The device for what was on `recorded`. Devices of the trace other than "cpu" become the
  // target. What was on the CPU stays there if the step used another device as well, else it goes
  // to the target.
  std::string Map(std::string_view recorded) const;
  // Told before Map is used: whether the step used a device other than the CPU.
  void set_step_uses_device(bool uses) { step_uses_device_ = uses; }
  // Whether operators run on the kind of device they were recorded on.
  bool same_kind() const { return step_uses_device_ != target_is_cpu(); }

 private:
  std::string target_;
  bool step_uses_device_ = false;
};

// An operator that stands for another which exists on some devices only.
struct Equivalent {
  std::string_view op;           // recorded: full name
  std::string_view replacement;  // full name of what computes the same
  // For each argument of the replacement where it comes from: the position of a recorded argument,
  // or one of the constants below.
  struct Source {
    enum class Kind : uint8_t { kArgument, kNone, kFalse, kTrue, kZeros, kAllTrue };
    Kind kind = Kind::kArgument;
    int argument = 0;
  };
  std::span<const Source> arguments;
  bool fails_on_cpu = false;  // where it has a kernel all the same
};

// The equivalent of `op` for a device where it has no kernel, or nullptr.
const Equivalent* FindEquivalent(std::string_view op);

// Why an operator must not be run at all, or "": it touches files or the process, or it cannot be
// called from here.
std::string_view ReasonNotToRun(std::string_view op);

// Whether operators that take a text of this name are given a file, a folder or an address by it.
bool IsFileArgument(std::string_view argument);
inline constexpr std::string_view kTouchesFiles = "touches files";

}  // namespace etude
