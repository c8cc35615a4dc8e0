#pragma once

#include <cstdint>
#include <string>

namespace etude {

// Returns the name of device `number` of a PyTorch device type (c10::DeviceType): "cpu", "cuda:0",
// "privateuseone:1"; "device type 99:0" for types that PyTorch does not have.
std::string DeviceName(int64_t type, int64_t number);

}  // namespace etude
