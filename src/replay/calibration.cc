#include "src/replay/calibration.h"

#include <utility>

#include <nlohmann/json.hpp>

namespace etude {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

std::string Serialise(const Calibration& calibration) {
  Json rounds = Json::array();
  for (const auto& round : calibration.rounds) {
    Json verdicts = Json::array();
    for (const TrialVerdict& verdict : round) {
      verdicts.push_back({verdict.position, static_cast<int>(verdict.action), verdict.reason});
    }
    rounds.push_back(std::move(verdicts));
  }
  Json json = {{"rounds", std::move(rounds)},
               {"coerced", calibration.coerced},
               {"changed", calibration.changed}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Calibration> ParseCalibration(std::string_view text) {
  const auto broken = [] {
    return MakeError(ErrorCode::kInternal, "the trial run wrote no result");
  };
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return broken();
  try {
    Calibration calibration;
    for (const Json& round : json.at("rounds")) {
      std::vector<TrialVerdict>& verdicts = calibration.rounds.emplace_back();
      for (const Json& verdict : round) {
        verdicts.push_back({.position = verdict.at(0).get<uint32_t>(),
                            .action = static_cast<TrialVerdict::Action>(verdict.at(1).get<int>()),
                            .reason = verdict.at(2).get<std::string>()});
      }
    }
    json.at("coerced").get_to(calibration.coerced);
    json.at("changed").get_to(calibration.changed);
    return calibration;
  } catch (const Json::exception&) {
    return broken();
  }
}

}  // namespace etude
