#include "src/report/text/health_output.h"

#include <fmt/format.h>

#include "src/base/text/format_count.h"

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
                                 {"graph_time", nullptr},
                                 {"waits", nullptr}};
  if (const auto& time = health.graph_time) {
    json["graph_time"] = {{"recorded_ns", time->recorded.count},
                          {"simulated_ns", time->simulated.count},
                          {"error", time->error()}};
  }
  if (const auto& waits = health.waits) {
    json["waits"] = {{"count", waits->count}, {"guessed", waits->guessed}};
  }
  return json;
}

std::string WaitsText(const WaitCounts& waits) {
  const std::string text = FormatCount(waits.count) + " found";
  if (waits.guessed == 0) return text + ", none inferred from times";
  const double share = static_cast<double>(waits.guessed) / static_cast<double>(waits.count);
  return fmt::format("{}, {} ({}) inferred from times", text, FormatCount(waits.guessed),
                     FormatShare(share));
}

std::string ShortText(const Health& health) {
  if (health.verdict() == Verdict::kGood) return "";
  std::string text = fmt::format("verdict: {}", Name(health.verdict()));
  for (const Health::Reason& reason : health.reasons) {
    if (reason.verdict != health.verdict()) continue;
    text += ": " + reason.text;
    break;
  }
  const size_t others = health.reasons.empty() ? 0 : health.reasons.size() - 1;
  return text + (others > 0 ? fmt::format(" (and {} more: `etude validate`)\n", others) : "\n");
}

std::string ToText(const Health& health) {
  std::string text = fmt::format("verdict: {}\n", Name(health.verdict()));
  for (const Health::Reason& reason : health.reasons) {
    text += fmt::format("  {}: {}\n", Name(reason.verdict), reason.text);
  }
  return text;
}

}  // namespace etude
