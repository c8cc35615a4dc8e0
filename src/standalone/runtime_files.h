#pragma once

#include <span>
#include <string_view>

namespace etude {

// A file of src/standalone/assets, which every benchmark has.
struct RuntimeFile {
  std::string_view name;
  std::string_view text;
};
std::span<const RuntimeFile> RuntimeFiles();

}  // namespace etude
