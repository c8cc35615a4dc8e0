#include "src/synth/device/device_file.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "src/base/text/quantity.h"
#include "src/formats/io/toml_reader.h"

namespace etude {
namespace {

constexpr std::string_view kDeviceFormat = "etude-device";
constexpr int64_t kDeviceVersion = 1;

class DeviceParser : private TomlReader {
 public:
  DeviceParser(const toml::table& root, const std::string& path) : TomlReader(path), root_(root) {
    device_.name = path;
  }

  Result<DeviceModel> Run() {
    ETUDE_RETURN_IF_ERROR(CheckKeys(root_, "a device", {"format", "version", "preset", "device"}));
    ETUDE_RETURN_IF_ERROR(CheckFormat(root_, kDeviceFormat, kDeviceVersion));
    ETUDE_RETURN_IF_ERROR(ReadPreset());
    ETUDE_ASSIGN_OR_RETURN(const toml::table* table, Section(root_, "device"));
    if (table != nullptr) {
      ETUDE_RETURN_IF_ERROR(
          CheckKeys(*table, "[device]", {"peak", "memory", "capacity", "efficiency"}));
      ETUDE_RETURN_IF_ERROR(ReadPeaks(*table));
      ETUDE_RETURN_IF_ERROR(ReadMemory(*table));
      ETUDE_RETURN_IF_ERROR(ReadCapacity(*table));
      ETUDE_RETURN_IF_ERROR(ReadEfficiency(*table));
    }
    if (device_.memory.count == 0) {
      return Wrong(table == nullptr ? root_ : *table,
                   "found neither 'preset' nor 'memory' of [device], expected one of them");
    }
    return device_;
  }

 private:
  // Returns nullptr if there is none.
  Result<const toml::table*> Section(const toml::table& table, std::string_view key) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return nullptr;
    if (node->as_table() == nullptr) return WrongType(*node, key, "a table");
    return node->as_table();
  }

  Status ReadPreset() {
    ETUDE_ASSIGN_OR_RETURN(const DevicePreset* preset, PresetOf(root_, DevicePresets()));
    if (preset == nullptr) return {};
    device_ = *FindDevice(preset->name);
    device_.name = path();
    return {};
  }

  using Peak = std::pair<std::string_view, int64_t*>;
  std::array<Peak, 5> Peaks() {
    return {{{"float32", &device_.float32},
             {"float16", &device_.float16},
             {"bfloat16", &device_.bfloat16},
             {"float8", &device_.float8},
             {"vector", &device_.vector}}};
  }

  Status ReadPeaks(const toml::table& table) {
    ETUDE_ASSIGN_OR_RETURN(const toml::table* peaks, Section(table, "peak"));
    if (peaks == nullptr) return {};
    ETUDE_RETURN_IF_ERROR(
        CheckKeys(*peaks, "'peak'", {"float32", "float16", "bfloat16", "float8", "vector"}));
    for (const auto& [key, value] : Peaks()) {
      const toml::node* node = peaks->get(key);
      if (node == nullptr) continue;
      ETUDE_ASSIGN_OR_RETURN(const std::string text, Text(*node, key));
      const auto peak = ParseOperationsPerSecond(text);
      if (!peak || *peak == 0) {
        return Wrong(
            *node, fmt::format("{}: found '{}', expected operations per second, such as 989TFLOPS",
                               key, text));
      }
      *value = *peak;
    }
    return {};
  }

  Status ReadMemory(const toml::table& table) {
    const toml::node* node = table.get("memory");
    if (node == nullptr) return {};
    ETUDE_ASSIGN_OR_RETURN(const std::string text, Text(*node, "memory"));
    std::optional<Bytes> rate;
    if (text.ends_with("/s")) rate = ParseBytes(std::string_view(text).substr(0, text.size() - 2));
    if (!rate || rate->count == 0) {
      return Wrong(
          *node,
          fmt::format("memory: found '{}', expected bytes per second, such as 3.35TB/s", text));
    }
    device_.memory = *rate;
    return {};
  }

  Status ReadCapacity(const toml::table& table) {
    const toml::node* node = table.get("capacity");
    if (node == nullptr) return {};
    ETUDE_ASSIGN_OR_RETURN(const std::string text, Text(*node, "capacity"));
    const std::optional<Bytes> bytes = ParseBytes(text);
    if (!bytes || bytes->count == 0) {
      return Wrong(*node, fmt::format("capacity: found '{}', expected bytes, such as 80GB", text));
    }
    device_.capacity = *bytes;
    return {};
  }

  Status ReadEfficiency(const toml::table& table) {
    ETUDE_ASSIGN_OR_RETURN(const toml::table* efficiency, Section(table, "efficiency"));
    if (efficiency == nullptr) return {};
    ETUDE_RETURN_IF_ERROR(CheckKeys(*efficiency, "'efficiency'", {"compute", "memory"}));
    ETUDE_ASSIGN_OR_RETURN(const double compute, Share(*efficiency, "compute"));
    ETUDE_ASSIGN_OR_RETURN(const double memory, Share(*efficiency, "memory"));
    const auto reduce = [](int64_t& rate, double share) {
      if (rate == 0) return;
      rate = std::max<int64_t>(1, std::llround(static_cast<double>(rate) * share));
    };
    for (const auto& [key, value] : Peaks()) reduce(*value, compute);
    device_.compute_efficiency = compute;
    reduce(device_.memory.count, memory);
    return {};
  }
  Result<double> Share(const toml::table& table, std::string_view key) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return 1;
    ETUDE_ASSIGN_OR_RETURN(const double share, Positive(*node, key));
    if (share > 1) {
      return Wrong(*node, fmt::format("{}: found {}, expected above 0, up to 1", key, share));
    }
    return share;
  }

  const toml::table& root_;
  DeviceModel device_;
};

}  // namespace

Result<DeviceModel> ParseDevice(std::string_view text, const std::string& path) {
  return ParseToml<DeviceModel>(
      text, path, [&](const toml::table& table) { return DeviceParser(table, path).Run(); });
}

}  // namespace etude
