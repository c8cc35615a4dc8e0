#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace etude {

// Sensors of all GPUs of this machine, from NVIDIA's management library (NVML). Open loads the
// library at run time; Etude does not link with it.
class GpuSensors {
 public:
  // Sums over the GPUs, except utilization, which is that of the busiest GPU: the share of NVML's
  // last sampling period (1/6 s to 1 s) in which a kernel ran, or in which memory was read or
  // written. nullopt: a GPU does not provide the value.
  struct Reading {
    std::optional<double> energy_j;  // since the driver was loaded
    std::optional<double> power_w;
    std::optional<double> utilisation;
    std::optional<double> memory_utilisation;
    std::optional<double> memory_bytes;  // in use, by any process
  };

  // Makes an object without sensors and with an empty why_none().
  GpuSensors() = default;
  static GpuSensors Open(const char* library = "libnvidia-ml.so.1");

  GpuSensors(GpuSensors&& other) noexcept;
  GpuSensors& operator=(GpuSensors&& other) noexcept;
  ~GpuSensors();

  Reading Read() const;
  size_t count() const { return devices_.size(); }
  // Returns the reason why there are no sensors; "" if there are some or if they were not
  // requested.
  const std::string& why_none() const { return why_none_; }

 private:
  struct Library;

  Library* library_ = nullptr;  // owned
  std::vector<void*> devices_;
  std::string why_none_;
};

}  // namespace etude
