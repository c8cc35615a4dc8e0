#include "src/torch/replay_device.h"

#include <exception>
#include <string_view>

#include <c10/core/Device.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace etude {
namespace {

bool HasDevice(c10::DeviceType type, int index = 0) {
  return c10::impl::hasDeviceGuardImpl(type) &&
         c10::impl::VirtualGuardImpl(type).deviceCount() > index;
}

}  // namespace

bool UsesDevice(const RecordedStep& step, const DataFlow& flow) {
  const Trace& trace = step.trace();
  for (const NodeId node : step.top_operators()) {
    for (const DataFlow::Use& use : flow.inputs(node)) {
      const std::string_view device = trace.text(trace.tensor(use.tensor).device);
      if (!device.empty() && !device.starts_with("cpu")) return true;
    }
  }
  return false;
}

Result<std::string> FindDevice(const std::string& wanted) {
  try {
    c10::Device device(wanted);
    if (device.is_cpu()) return std::string("cpu");
    if (!device.has_index()) device.set_index(0);
    if (!HasDevice(device.type(), device.index())) {
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
    return trace_uses_device && HasDevice(c10::DeviceType::CUDA) ? std::string("cuda:0")
                                                                 : std::string("cpu");
  }
  const std::string_view kind = std::string_view(wanted).substr(0, wanted.find(':'));
  if (kind == "cpu" || kind == "cuda") return FindDevice(wanted);
  return MakeError(ErrorCode::kUsage,
                   "--device: found '" + wanted + "', expected cpu, cuda or cuda:N");
}

Status CheckTried(const std::string& device, bool experimental) {
  if (device == "cpu" || experimental) return {};
  return MakeError(ErrorCode::kUsage,
                   "a replay on " + device +
                       " has not been tried on a real one: ask for it with --experimental, or "
                       "replay with --device cpu");
}

void Synchronize(const std::string& device) {
  const c10::Device target(device);
  if (!target.is_cpu()) {
    const c10::impl::VirtualGuardImpl guard(target.type());
    guard.synchronizeDevice(target.has_index() ? target.index() : guard.getDevice().index());
  }
}

}  // namespace etude
