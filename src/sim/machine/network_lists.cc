#include "src/sim/machine/network_lists.h"

#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

#include "src/base/text/nearest.h"
#include "src/sim/machine/yaml_error.h"

namespace etude {
namespace {

constexpr std::string_view kNetworkKeys[] = {"topology", "npus_count", "bandwidth", "latency"};

// Returns a list of a YAML document with one value per dimension.
Result<std::vector<std::string>> ListOf(const YAML::Node& root, const char* key,
                                        const std::string& path) {
  const YAML::Node list = root[key];
  if (!list || !list.IsSequence()) {
    return BadInput(
        fmt::format("{}: expected '{}', a list with a value for each dimension", path, key));
  }
  std::vector<std::string> values;
  for (const YAML::Node& item : list) {
    if (!item.IsScalar()) {
      return BadInput(fmt::format("{}:{}:{}: {}: expected a number or a word", path,
                                  item.Mark().line + 1, item.Mark().column + 1, key));
    }
    values.push_back(item.Scalar());
  }
  return values;
}

}  // namespace

Result<NetworkLists> ReadNetworkLists(const std::string& text, const std::string& path) {
  NetworkLists lists;
  try {
    const YAML::Node root = YAML::Load(text);
    if (!root.IsMap()) return BadInput(fmt::format("{}: expected keys and values", path));
    std::vector<std::string> keys;
    for (const auto& entry : root) {
      const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
      const YAML::Mark mark = entry.first.Mark();
      if (std::ranges::find(keys, key) != keys.end()) {
        return BadInput(fmt::format("{}:{}:{}: found the key '{}' twice", path, mark.line + 1,
                                    mark.column + 1, key));
      }
      keys.push_back(key);
      if (std::ranges::find(kNetworkKeys, key) != std::end(kNetworkKeys)) continue;
      return BadInput(
          fmt::format("{}:{}:{}: unknown key '{}'{}", path, mark.line + 1, mark.column + 1, key,
                      DidYouMean(key, {std::begin(kNetworkKeys), std::end(kNetworkKeys)})));
    }
    for (size_t i = 0; i < std::size(kNetworkKeys); ++i) {
      ETUDE_ASSIGN_OR_RETURN(lists.of_key[i], ListOf(root, kNetworkKeys[i].data(), path));
    }
  } catch (const YAML::Exception& error) {
    return YamlError(path, error);
  }
  const size_t dims = lists.dims();
  for (size_t i = 0; i < std::size(kNetworkKeys); ++i) {
    if (lists.of_key[i].size() == dims && dims > 0) continue;
    return BadInput(fmt::format("{}: {}: found {} values for {} topologies, expected one for each",
                                path, kNetworkKeys[i], lists.of_key[i].size(), dims));
  }
  return lists;
}

}  // namespace etude
