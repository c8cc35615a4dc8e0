#pragma once

#include <cstdint>
#include <string>

namespace etude {

// The name of device `number` of a type by its number in PyTorch (c10::DeviceType): "cpu",
// "cuda:0", "privateuseone:1"; "device type 99:0" for types that PyTorch does not have.
std::string DeviceName(int64_t type, int64_t number);

}  // namespace etude
