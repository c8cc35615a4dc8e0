#include "src/trace/words/device_name.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

namespace etude {
namespace {

struct DeviceType {
  int64_t type;  // c10::DeviceType
  std::string_view name;
};
constexpr auto kDeviceTypes = std::to_array<DeviceType>({
    {0, "cpu"},  {1, "cuda"},  {2, "mkldnn"},         {3, "opengl"}, {4, "opencl"},  {5, "ideep"},
    {6, "hip"},  {7, "fpga"},  {8, "maia"},           {9, "xla"},    {10, "vulkan"}, {11, "metal"},
    {12, "xpu"}, {13, "mps"},  {14, "meta"},          {15, "hpu"},   {16, "ve"},     {17, "lazy"},
    {18, "ipu"}, {19, "mtia"}, {20, "privateuseone"},
});

}  // namespace

std::string DeviceName(int64_t type, int64_t number) {
  if (type == 0) return "cpu";
  const auto row = std::ranges::find(kDeviceTypes, type, &DeviceType::type);
  if (row == kDeviceTypes.end()) return fmt::format("device type {}:{}", type, number);
  return fmt::format("{}:{}", row->name, number);
}

}  // namespace etude
