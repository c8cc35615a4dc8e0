#include "src/replay/rank_messages.h"

#include <optional>

#include <nlohmann/json.hpp>

#include "src/base/text/bounded_json.h"

namespace etude {
namespace {

tl::unexpected<Error> OtherMessage() {
  return BadInput(
      "found a message from another version of Etude, expected the same version on all ranks");
}

// Returns the result of `read` for the JSON in `bytes`.
template <typename Read>
auto ReadMessage(const std::vector<uint8_t>& bytes, Read read)
    -> Result<decltype(read(nlohmann::json()))> {
  try {
    return read(ParseBounded<nlohmann::json>(TextOf(bytes)));
  } catch (const nlohmann::json::exception&) {
    return OtherMessage();
  }
}

}  // namespace

std::string TextOf(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }
std::vector<uint8_t> ToBytes(std::string_view text) { return {text.begin(), text.end()}; }

std::vector<uint8_t> ToBytes(const RankStatus& status) {
  const nlohmann::json json = {{"doing", status.doing},
                               {"begun", status.begun},
                               {"partners", status.partners},
                               {"channel", status.partners_channel},
                               {"call", status.call}};
  return ToBytes(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

Result<RankStatus> ToStatus(const std::vector<uint8_t>& bytes) {
  return ReadMessage(bytes, [](const nlohmann::json& json) {
    return RankStatus{.doing = json.at("doing"),
                      .begun = json.at("begun"),
                      .partners = json.at("partners"),
                      .partners_channel = json.at("channel"),
                      .call = json.at("call")};
  });
}

std::vector<uint8_t> ToBytes(const CommLog& log) {
  const auto or_null = [](const std::optional<int64_t>& value) {
    return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
  };
  nlohmann::json groups = nlohmann::json::array();
  for (const CommLog::Group& group : log.groups) groups.push_back({group.name, group.ranks});
  nlohmann::json calls = nlohmann::json::array();
  for (const CommCall& call : log.calls) {
    calls.push_back({static_cast<int>(call.kind), static_cast<int>(call.type), call.name,
                     call.group, call.index, call.bytes ? call.bytes->count : -1, call.uneven,
                     or_null(call.peer), or_null(call.tag), call.node});
  }
  const nlohmann::json json = {
      {"rank", log.rank}, {"world", or_null(log.world_size)}, {"groups", groups}, {"calls", calls}};
  return ToBytes(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

namespace {

CommLog LogOf(const nlohmann::json& json) {
  const auto number = [](const nlohmann::json& value) {
    return value.is_null() ? std::nullopt : std::optional(value.get<int64_t>());
  };
  CommLog log;
  log.rank = json.at("rank");
  log.world_size = number(json.at("world"));
  for (const nlohmann::json& group : json.at("groups")) {
    log.groups.push_back({.name = group.at(0), .ranks = group.at(1)});
  }
  for (const nlohmann::json& row : json.at("calls")) {
    CommCall& call = log.calls.emplace_back();
    call.kind = static_cast<NodeKind>(row.at(0).get<int>());
    call.type = static_cast<CollectiveType>(row.at(1).get<int>());
    call.name = row.at(2);
    call.group = row.at(3);
    call.index = row.at(4);
    if (const int64_t size = row.at(5); size >= 0) call.bytes = Bytes{size};
    call.uneven = row.at(6);
    call.peer = number(row.at(7));
    call.tag = number(row.at(8));
    call.node = row.at(9);
  }
  return log;
}

}  // namespace

Result<CommLog> ToLog(const std::vector<uint8_t>& bytes) {
  ETUDE_ASSIGN_OR_RETURN(CommLog log, ReadMessage(bytes, LogOf));
  for (const CommCall& call : log.calls) {
    if (IsCommunication(call.kind) && static_cast<size_t>(call.type) < kCollectiveTypeCount &&
        call.group < log.groups.size()) {
      continue;
    }
    return OtherMessage();
  }
  return log;
}

}  // namespace etude
