#include "src/cli/inspect/rank_results.h"

#include <utility>

#include "src/jobs/job_health.h"
#include "src/report/text/json_output.h"

namespace etude {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

void PrintRankResults(std::vector<RankResult> results, bool as_json, std::string_view format,
                      std::string_view key, const Console& console) {
  Json list = Json::array();
  JobHealth job;
  for (RankResult& result : results) {
    if (as_json) {
      list.push_back(std::move(result.json));
    } else {
      console.Print(result.text);
    }
    job.Add(result.health, std::move(result.run));
  }
  if (job.is_job()) job.Judge();
  if (as_json) {
    Json json = {{"format", format}, {"version", 1}};
    json[std::string(key)] = std::move(list);
    if (job.is_job()) json["job"] = job.Json();
    console.Print(JsonText(json));
  } else if (job.is_job()) {
    console.Print(job.Text());
  }
}

}  // namespace etude
