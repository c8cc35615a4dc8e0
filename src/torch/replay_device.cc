#include "src/torch/replay_device.h"

#include <exception>

#include <ATen/Context.h>
#include <c10/core/Device.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace etude {
namespace {

int DeviceCount(c10::DeviceType type) {
  return c10::impl::hasDeviceGuardImpl(type) ? c10::impl::VirtualGuardImpl(type).deviceCount() : 0;
}

}  // namespace

bool UsesDevice(const RecordedStep& step, const DataFlow& flow) {
  const Trace& trace = step.trace();
  for (const NodeId node : step.top_operators()) {
    for (const DataFlow::Use& use : flow.inputs(node)) {
      const std::string_view device = trace.text(trace.tensor(use.tensor).device);
      if (!device.empty() && !device.starts_with("cpu") && device != "meta") return true;
    }
  }
  return false;
}

Result<std::string> FindDevice(const std::string& wanted) {
  try {
    c10::Device device(wanted);
    if (device.is_cpu()) return std::string("cpu");
    if (!device.has_index()) device.set_index(0);
    if (device.index() >= DeviceCount(device.type())) {
      return Unavailable("device '" + wanted + "' is not available here");
    }
    return device.str();
  } catch (const std::exception&) {
    return MakeError(ErrorCode::kUsage,
                     "--device: found '" + wanted +
                         "', expected cpu, cuda, cuda:N or a device that a --library registers");
  }
}

Result<std::string> ChooseDevice(const std::string& wanted, bool trace_uses_device) {
  if (wanted.empty()) {
    const bool on_gpu = trace_uses_device && DeviceCount(c10::DeviceType::CUDA) > 0;
    return std::string(on_gpu ? "cuda:0" : "cpu");
  }
  if (wanted.starts_with("meta")) {
    return MakeError(ErrorCode::kUsage, "--device meta: expected a device that computes");
  }
  return FindDevice(wanted);
}

Result<std::string> DeviceAt(const std::string& device, const LocalPlace& place) {
  c10::Device own(device);
  if (own.is_cpu()) return device;
  const int count = DeviceCount(own.type());
  const int64_t number = place.is_launched && count == 1 ? 0 : place.number;
  if (number >= count) {
    return Unavailable("device '" + device.substr(0, device.find(':')) + "': found " +
                       std::to_string(count) + " on this machine, expected one per rank");
  }
  own.set_index(static_cast<c10::DeviceIndex>(number));
  return own.str();
}

void SetDevice(const std::string& device) {
  const c10::Device target(device);
  if (!target.is_cpu()) c10::impl::VirtualGuardImpl(target.type()).setDevice(target);
}

Status CheckTried(const std::string& device, bool experimental) {
  if (device == "cpu" || device.starts_with("cuda") || experimental) return {};
  return MakeError(ErrorCode::kUsage,
                   "a replay on " + device +
                       " is untested on real hardware: add --experimental, or use --device cpu");
}

void SeedDevice(const std::string& device, uint64_t seed) {
  const auto set = [&](const c10::Device& target) {
    at::Generator generator = at::globalContext().defaultGenerator(target);
    generator.set_current_seed(seed);
  };
  const c10::Device target(device);
  try {
    set(target);
  } catch (const c10::Error&) {
    if (target.is_cpu()) throw;
    set(c10::Device(c10::DeviceType::CPU));
  }
}

void Synchronize(const std::string& device) {
  const c10::Device target(device);
  if (!target.is_cpu()) {
    const c10::impl::VirtualGuardImpl guard(target.type());
    guard.synchronizeDevice(target.has_index() ? target.index() : guard.getDevice().index());
  }
}

bool IsAlive(const std::string& device) {
  try {
    Synchronize(device);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace etude
