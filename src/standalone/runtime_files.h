#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace etude {

// A file of src/standalone/assets that is copied to benchmarks.
struct RuntimeFile {
  enum class Use : uint8_t { kAlways, kOneRank, kSeveralRanks };
  std::string_view name;
  std::string_view text;
  Use use;
};
std::span<const RuntimeFile> RuntimeFiles();

}  // namespace etude
