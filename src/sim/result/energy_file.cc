#include "src/sim/result/energy_file.h"

#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "src/formats/io/toml_reader.h"

namespace etude {
namespace {

constexpr double kMostNumber = 1e9;

class EnergyParser : private TomlReader {
 public:
  EnergyParser(const toml::table& root, const std::string& path) : TomlReader(path), root_(root) {}

  Result<EnergyFigures> Run() {
    ETUDE_RETURN_IF_ERROR(
        CheckKeys(root_, "the file", {"format", "version", "model", "device", "host", "network"}));
    ETUDE_RETURN_IF_ERROR(CheckFormat(root_, "etude-energy", 1));
    ETUDE_ASSIGN_OR_RETURN(const std::string model, RequiredText(root_, "model", "the file"));
    if (model != kEnergyModel) {
      return WrongName(*root_.get("model"), "model", model, {std::string(kEnergyModel)});
    }
    ETUDE_ASSIGN_OR_RETURN(const toml::table* device, Section("device"));
    if (device == nullptr) return Wrong(root_, "missing table [device]");
    ETUDE_RETURN_IF_ERROR(ReadDevice(*device));
    ETUDE_ASSIGN_OR_RETURN(const toml::table* host, Section("host"));
    if (host != nullptr) ETUDE_RETURN_IF_ERROR(ReadHost(*host));
    ETUDE_ASSIGN_OR_RETURN(const toml::table* network, Section("network"));
    if (network != nullptr) ETUDE_RETURN_IF_ERROR(ReadNetwork(*network));
    return figures_;
  }

 private:
  // Returns nullptr if there is none.
  Result<const toml::table*> Section(std::string_view key) const {
    const toml::node* node = root_.get(key);
    if (node == nullptr) return nullptr;
    if (node->as_table() == nullptr) return WrongType(*node, key, "a table");
    return node->as_table();
  }

  Result<double> Number(const toml::node& node, std::string_view key) const {
    const std::optional<double> number = node.is_number() ? node.value<double>() : std::nullopt;
    if (!number) return WrongType(node, key, "a number");
    if (!std::isfinite(*number) || *number < 0 || *number > kMostNumber) {
      return Wrong(node,
                   fmt::format("{}: found {}, expected 0 to {:.0f}", key, *number, kMostNumber));
    }
    return *number;
  }
  Status ReadNumber(const toml::table& table, std::string_view key,
                    std::optional<double>& to) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return {};
    ETUDE_ASSIGN_OR_RETURN(to, Number(*node, key));
    return {};
  }
  // Reads the power of a device that does something, which includes its idle power.
  Status ReadBusy(const toml::table& table, std::string_view key, std::optional<double>& to) const {
    ETUDE_RETURN_IF_ERROR(ReadNumber(table, key, to));
    if (to && figures_.idle && *to < *figures_.idle) {
      return Wrong(*table.get(key), fmt::format("{}: found {}, expected idle_watts ({}) or more",
                                                key, *to, *figures_.idle));
    }
    return {};
  }

  Status ReadDevice(const toml::table& table) {
    ETUDE_RETURN_IF_ERROR(CheckKeys(
        table, "[device]", {"name", "idle_watts", "compute_watts", "communication_watts"}));
    if (const toml::node* name = table.get("name")) {
      ETUDE_ASSIGN_OR_RETURN(figures_.device, Text(*name, "name"));
    }
    ETUDE_RETURN_IF_ERROR(ReadNumber(table, "idle_watts", figures_.idle));
    ETUDE_RETURN_IF_ERROR(ReadBusy(table, "compute_watts", figures_.compute));
    return ReadBusy(table, "communication_watts", figures_.communication);
  }

  Status ReadHost(const toml::table& table) {
    ETUDE_RETURN_IF_ERROR(CheckKeys(table, "[host]", {"watts", "ranks"}));
    for (const std::string_view key : {"watts", "ranks"}) {
      if (!table.contains(key)) return Wrong(table, fmt::format("[host]: missing '{}'", key));
    }
    ETUDE_RETURN_IF_ERROR(ReadNumber(table, "watts", figures_.host));
    ETUDE_ASSIGN_OR_RETURN(figures_.ranks_per_host,
                           Whole(*table.get("ranks"), "ranks", 1, int64_t{1} << 24));
    return {};
  }

  Status ReadNetwork(const toml::table& table) {
    ETUDE_RETURN_IF_ERROR(CheckKeys(table, "[network]", {"joules_per_byte"}));
    const toml::node* node = table.get("joules_per_byte");
    if (node == nullptr) return Wrong(table, "[network]: missing 'joules_per_byte'");
    figures_.per_byte_place = PlaceOf(*node);
    const toml::array* list = node->as_array();
    if (list == nullptr) {
      ETUDE_ASSIGN_OR_RETURN(const double all, Number(*node, "joules_per_byte"));
      figures_.per_byte = {all};
      return {};
    }
    if (list->empty()) {
      return Wrong(*node, "joules_per_byte: found an empty list, expected a number per dimension");
    }
    for (const toml::node& one : *list) {
      ETUDE_ASSIGN_OR_RETURN(figures_.per_byte.emplace_back(), Number(one, "joules_per_byte"));
    }
    return {};
  }

  const toml::table& root_;
  EnergyFigures figures_;
};

}  // namespace

Result<EnergyFigures> ParseEnergyFigures(const std::string& text, const std::string& path) {
  return ParseToml<EnergyFigures>(
      text, path, [&](const toml::table& table) { return EnergyParser(table, path).Run(); });
}

}  // namespace etude
