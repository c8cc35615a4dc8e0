#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace etude {

// "Ring(8):50GB/s,500ns Switch(4):25GB/s,1us" as a network file of ASTRA-sim; nullopt: it is none.
std::optional<std::string> NetworkOfDims(std::string_view dims);

}  // namespace etude
