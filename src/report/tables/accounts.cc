#include "src/report/tables/accounts.h"

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "src/formats/io/atomic_file.h"
#include "src/report/text/format.h"

namespace etude {

double LinkedShare(uint64_t part, uint64_t whole) {
  return whole == 0 ? 1.0 : static_cast<double>(part) / static_cast<double>(whole);
}

nlohmann::ordered_json LinkAccount(const LinkResult& result) {
  using AccountJson = nlohmann::ordered_json;
  AccountJson json;
  AccountJson host = AccountJson::object();
  for (size_t i = 0; i < kHostLinkCount; ++i) {
    host[std::string(Info(static_cast<HostLink>(i)).name)] = result.host[i];
  }
  json["host_nodes"] = std::move(host);
  AccountJson events = AccountJson::object();
  for (size_t i = 0; i < kEventLinkCount; ++i) {
    events[std::string(Info(static_cast<EventLink>(i)).name)] = result.events[i];
  }
  json["events"] = std::move(events);
  json["coverage"] = {{"host", LinkedShare(result.host_matched(), result.host_linkable())},
                      {"device", LinkedShare(result.device_linked(), result.device_nodes())}};
  AccountJson syncs = AccountJson::object();
  for (size_t i = 0; i < kSyncKindCount; ++i) {
    syncs[std::string(Name(static_cast<SyncKind>(i)))] = result.syncs[i];
  }
  json["syncs"] = std::move(syncs);
  json["dependencies"] = {{"sync", result.sync_edges},
                          {"thread", result.thread_edges},
                          {"contradictions", result.contradictions}};
  json["adopted"] = result.adopted;
  json["moved"] = result.moved;
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

std::string WrittenSize(std::string_view path, uint64_t bytes) {
  return FormatBytes(Bytes{static_cast<int64_t>(bytes)}) +
         (IsCompressedName(path) ? " before compression" : "");
}

nlohmann::ordered_json ToJson(const WrittenTrace& written) {
  nlohmann::ordered_json json = {{"path", written.path},
                                 {"nodes", written.nodes},
                                 {"bytes", written.bytes},
                                 {"renumbered", written.renumbered},
                                 {"lost_references", written.lost_references},
                                 {"lost_extras", written.lost_extras},
                                 {"clipped_times", written.clipped_times}};
  if (written.is_chakra) {
    json["added_edges"] = {{"host_order", written.chakra.order_edges},
                           {"stream_order", written.chakra.stream_edges},
                           {"thread", written.chakra.thread_edges},
                           {"launch", written.chakra.launch_edges}};
    json["contradictions"] = written.chakra.contradictions;
    json["adopted"] = written.chakra.adopted;
    json["broken_edges"] = written.chakra.broken_edges;
    json["host_communications_done_by_devices"] = written.chakra.retyped;
  }
  return json;
}

std::string ToText(const WrittenTrace& written) {
  std::string text =
      fmt::format("wrote {}: {}, {}\n", written.path, FormatCount(written.nodes, "node"),
                  WrittenSize(written.path, written.bytes));
  const auto line = [&](uint64_t count, std::string_view what) {
    if (count != 0) text += fmt::format("  {}: {}\n", what, FormatCount(count));
  };
  if (written.is_chakra) {
    const ToChakraResult& chakra = written.chakra;
    line(chakra.order_edges, "dependencies added: order on host threads");
    line(chakra.stream_edges, "dependencies added: order on device streams");
    line(chakra.thread_edges, "dependencies added: threads waiting for other threads");
    line(chakra.launch_edges, "dependencies added: device work on its operator");
    line(chakra.contradictions, "of these, left out because they contradict recorded dependencies");
    line(chakra.adopted, "host nodes without a caller, attached to their thread");
    line(chakra.broken_edges, "dependencies removed to break cycles");
    line(chakra.retyped, "host communications done by a device node, written as plain operators");
  }
  if (written.renumbered) text += "  ids were not unique: nodes have new ids\n";
  line(written.lost_references,
       "references dropped: to missing nodes, or unsupported by the format");
  line(written.lost_extras, "attributes dropped: unsupported by the format");
  line(written.clipped_times, "negative times, kept only in Etude's attributes");
  return text;
}

}  // namespace etude
