#include "src/base/machine/gpu_sensors.h"

#include <dlfcn.h>

#include <algorithm>
#include <utility>

namespace etude {
namespace {

// The parts of NVML's interface (nvml.h) in use. All functions return 0 on success.
using Device = void*;
struct Utilization {
  unsigned gpu;     // percent
  unsigned memory;  // percent
};
struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

template <typename Fn>
bool Find(void* handle, const char* name, Fn& function) {
  function = reinterpret_cast<Fn>(dlsym(handle, name));
  return function != nullptr;
}

// Returns the sum over all GPUs; nullopt if `get` fails for one.
template <typename Get>
std::optional<double> Sum(const std::vector<void*>& devices, Get get) {
  std::optional<double> sum;
  for (void* device : devices) {
    const std::optional<double> one = get(device);
    if (!one) return std::nullopt;
    sum = sum.value_or(0) + *one;
  }
  return sum;
}

}  // namespace

struct GpuSensors::Library {
  void* handle = nullptr;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*device)(unsigned, Device*) = nullptr;
  int (*energy)(Device, unsigned long long*) = nullptr;  // millijoules
  int (*power)(Device, unsigned*) = nullptr;             // milliwatts
  int (*utilization)(Device, Utilization*) = nullptr;
  int (*memory)(Device, Memory*) = nullptr;

  bool Load(const char* path) {
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return handle != nullptr && Find(handle, "nvmlInit_v2", init) &&
           Find(handle, "nvmlShutdown", shutdown) && Find(handle, "nvmlDeviceGetCount_v2", count) &&
           Find(handle, "nvmlDeviceGetHandleByIndex_v2", device) &&
           Find(handle, "nvmlDeviceGetTotalEnergyConsumption", energy) &&
           Find(handle, "nvmlDeviceGetPowerUsage", power) &&
           Find(handle, "nvmlDeviceGetUtilizationRates", utilization) &&
           Find(handle, "nvmlDeviceGetMemoryInfo", memory);
  }
};

GpuSensors GpuSensors::Open(const char* library) {
  GpuSensors sensors;
  sensors.library_ = new Library;
  Library& nvml = *sensors.library_;
  if (!nvml.Load(library)) {
    const char* why = dlerror();
    sensors.why_none_ = std::string("cannot load NVML: ") + (why == nullptr ? library : why);
    nvml.shutdown = nullptr;
    return sensors;
  }
  if (const int code = nvml.init(); code != 0) {
    sensors.why_none_ = "cannot use NVML: error " + std::to_string(code);
    nvml.shutdown = nullptr;
    return sensors;
  }
  unsigned count = 0;
  if (nvml.count(&count) != 0) count = 0;
  for (unsigned i = 0; i < count; ++i) {
    Device device = nullptr;
    if (nvml.device(i, &device) == 0) sensors.devices_.push_back(device);
  }
  if (sensors.devices_.empty()) sensors.why_none_ = "NVML found no GPU";
  return sensors;
}

GpuSensors::GpuSensors(GpuSensors&& other) noexcept { *this = std::move(other); }

GpuSensors& GpuSensors::operator=(GpuSensors&& other) noexcept {
  std::swap(library_, other.library_);
  std::swap(devices_, other.devices_);
  std::swap(why_none_, other.why_none_);
  return *this;
}

GpuSensors::~GpuSensors() {
  if (library_ == nullptr) return;
  if (library_->shutdown != nullptr) library_->shutdown();
  if (library_->handle != nullptr) dlclose(library_->handle);
  delete library_;
}

GpuSensors::Reading GpuSensors::Read() const {
  Reading reading;
  if (devices_.empty()) return reading;
  const Library& nvml = *library_;
  reading.energy_j = Sum(devices_, [&](Device device) -> std::optional<double> {
    unsigned long long millijoules = 0;
    if (nvml.energy(device, &millijoules) != 0) return std::nullopt;
    return static_cast<double>(millijoules) * 1e-3;
  });
  reading.power_w = Sum(devices_, [&](Device device) -> std::optional<double> {
    unsigned milliwatts = 0;
    if (nvml.power(device, &milliwatts) != 0) return std::nullopt;
    return milliwatts * 1e-3;
  });
  reading.memory_bytes = Sum(devices_, [&](Device device) -> std::optional<double> {
    Memory memory{};
    if (nvml.memory(device, &memory) != 0) return std::nullopt;
    return static_cast<double>(memory.used);
  });
  for (Device device : devices_) {
    Utilization shares{};
    if (nvml.utilization(device, &shares) != 0) continue;
    reading.utilisation = std::max(reading.utilisation.value_or(0), shares.gpu * 0.01);
    reading.memory_utilisation =
        std::max(reading.memory_utilisation.value_or(0), shares.memory * 0.01);
  }
  return reading;
}

}  // namespace etude
