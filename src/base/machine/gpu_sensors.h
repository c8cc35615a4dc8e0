#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace etude {

// What NVIDIA's management library (NVML) tells of the GPUs of this machine, all together. The
// library is loaded when it is asked for and there; nothing is linked with it.
class GpuSensors {
 public:
  // Sums over the GPUs, but for the utilisations, which are those of the busiest: its share of the
  // library's last sampling period (a sixth of a second to a second) in which a kernel ran, and in
  // which memory was read or written. nullopt: a GPU does not tell.
  struct Reading {
    std::optional<double> energy_j;  // since the driver was loaded
    std::optional<double> power_w;
    std::optional<double> utilisation;
    std::optional<double> memory_utilisation;
    std::optional<double> memory_bytes;  // in use, by whatever process
  };

  // No sensors, and no reason why.
  GpuSensors() = default;
  static GpuSensors Open(const char* library = "libnvidia-ml.so.1");

  GpuSensors(GpuSensors&& other) noexcept;
  GpuSensors& operator=(GpuSensors&& other) noexcept;
  ~GpuSensors();

  Reading Read() const;
  size_t count() const { return devices_.size(); }
  // Why there are none; "" if there are, or if they were not asked for.
  const std::string& why_none() const { return why_none_; }

 private:
  struct Library;

  Library* library_ = nullptr;  // owned
  std::vector<void*> devices_;
  std::string why_none_;
};

}  // namespace etude
