#include "src/report/accounts.h"

#include <string>
#include <utility>

namespace etude {

double LinkedShare(uint64_t part, uint64_t whole) {
  return whole == 0 ? 1.0 : static_cast<double>(part) / static_cast<double>(whole);
}

nlohmann::ordered_json LinkAccount(const LinkResult& result) {
  using Json = nlohmann::ordered_json;
  Json json;
  Json host = Json::object();
  for (size_t i = 0; i < kHostLinkCount; ++i) {
    host[std::string(Info(static_cast<HostLink>(i)).name)] = result.host[i];
  }
  json["host_nodes"] = std::move(host);
  Json events = Json::object();
  for (size_t i = 0; i < kEventLinkCount; ++i) {
    events[std::string(Info(static_cast<EventLink>(i)).name)] = result.events[i];
  }
  json["events"] = std::move(events);
  json["coverage"] = {{"host", LinkedShare(result.host_matched(), result.host_linkable())},
                      {"device", LinkedShare(result.device_linked(), result.device_nodes())}};
  Json syncs = Json::object();
  for (size_t i = 0; i < kSyncKindCount; ++i) {
    syncs[std::string(Name(static_cast<SyncKind>(i)))] = result.syncs[i];
  }
  json["syncs"] = std::move(syncs);
  json["dependencies"] = {{"sync", result.sync_edges},
                          {"thread", result.thread_edges},
                          {"contradictions", result.contradictions}};
  json["adopted"] = result.adopted;
  json["ambiguous"] = result.ambiguous;
  json["overhanging"] = result.overhanging;
  json["renumbered"] = result.renumbered;
  return json;
}

nlohmann::ordered_json SliceAccount(const SliceResult& slice) {
  return {{"selected", slice.selected},
          {"launched", slice.launched},
          {"around", slice.around},
          {"cut_dependencies", slice.cut_dependencies},
          {"dangling_references", slice.dangling},
          {"untimed", slice.untimed},
          {"renumbered", slice.renumbered}};
}

}  // namespace etude
