#include "src/report/health_output.h"

#include <fmt/format.h>

namespace etude {

nlohmann::ordered_json ToJson(const Stats& stats) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const StatInfo& info : StatTable()) {
    if (stats[info.stat] != 0) json[std::string(info.name)] = stats[info.stat];
  }
  return json;
}

nlohmann::ordered_json ToJson(const Health& health) {
  nlohmann::ordered_json reasons = nlohmann::ordered_json::array();
  for (const Health::Reason& reason : health.reasons) {
    reasons.push_back(
        {{"verdict", Name(reason.verdict)}, {"name", reason.name}, {"text", reason.text}});
  }
  nlohmann::ordered_json json = {{"verdict", Name(health.verdict())},
                                 {"reasons", std::move(reasons)},
                                 {"graph_time", nullptr}};
  if (const auto& time = health.graph_time) {
    json["graph_time"] = {{"recorded_ns", time->recorded.count},
                          {"simulated_ns", time->simulated.count},
                          {"error", time->error()}};
  }
  return json;
}

std::string ToText(const Health& health) {
  std::string text = fmt::format("verdict: {}\n", Name(health.verdict()));
  for (const Health::Reason& reason : health.reasons) {
    text += fmt::format("  {}: {}\n", Name(reason.verdict), reason.text);
  }
  return text;
}

}  // namespace etude
