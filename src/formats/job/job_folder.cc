#include "src/formats/job/job_folder.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/container/hash.h"
#include "src/base/container/run_cache.h"
#include "src/base/text/nearest.h"
#include "src/base/text/quantity.h"
#include "src/formats/chakra/chakra_writer.h"
#include "src/formats/io/byte_source.h"
#include "src/formats/io/file_set.h"
#include "src/formats/json/json_document.h"
#include "src/formats/read_trace.h"
#include "src/trace/job/packed_trace.h"
#include "src/trace/job/rank_set.h"

namespace etude {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr DocumentKind kClassesDocument = {.name = "a classes.json", .format = "etude-classes"};
constexpr uint64_t kMostClassesBytes = uint64_t{256} << 20;
constexpr std::string_view kRankFile = "rank.";
constexpr std::string_view kRankEnding = ".et";

constexpr std::string_view kPackedEnding = ".packed";

std::string ClassFileName(size_t rank_class, ClassFiles files) {
  return fmt::format("class.{}{}", rank_class,
                     files == ClassFiles::kPacked ? kPackedEnding : kRankEnding);
}

// Returns true if a job may have written a file of this name.
bool IsClassFileName(std::string_view name) {
  constexpr std::string_view kClass = "class.";
  if (!name.starts_with(kClass)) return false;
  const std::string_view rest = name.substr(kClass.size());
  const auto number = ParseWhole(rest.substr(0, rest.find('.')));
  return number && *number >= 0 &&
         (name == ClassFileName(static_cast<size_t>(*number), ClassFiles::kChakra) ||
          name == ClassFileName(static_cast<size_t>(*number), ClassFiles::kPacked));
}

// ---- writing ---------------------------------------------------------------------------------

OrderedJson RanksJson(const RankSet& ranks) {
  OrderedJson blocks = OrderedJson::array();
  for (const RankSet::Block& block : ranks.blocks()) {
    OrderedJson entry = OrderedJson::array({block.first});
    for (const RankSet::Dim& dim : block.dims)
      entry.push_back(OrderedJson::array({dim.count, dim.stride}));
    blocks.push_back(block.dims.empty() ? OrderedJson(block.first) : std::move(entry));
  }
  return blocks;
}

OrderedJson KindJson(const Mesh& mesh, const GroupKind& kind) {
  OrderedJson json;
  if (kind.axes) {
    json["axes"] = OrderedJson::array();
    for (size_t i = 0; i < mesh.axes().size(); ++i) {
      if (((*kind.axes >> i) & 1) != 0) json["axes"].push_back(mesh.axes()[i].name);
    }
  } else {
    json["listed"] = OrderedJson::array();
    for (const RankSet& ranks : kind.listed) json["listed"].push_back(RanksJson(ranks));
  }
  if (kind.names.empty()) {
    json["first_name"] = kind.first_name;
    json["name_step"] = kind.name_step;
  } else {
    json["names"] = kind.names;
  }
  if (kind.callers_only) json["callers_only"] = true;
  return json;
}

OrderedJson RouteJson(const Mesh& mesh, const Route& route) {
  OrderedJson json;
  if (route.shift.empty()) {
    json["pairs"] = route.pairs;
    return json;
  }
  json["shift"] = OrderedJson::object();
  for (size_t i = 0; i < route.shift.size(); ++i) {
    if (route.shift[i] != 0) json["shift"][mesh.axes()[i].name] = route.shift[i];
  }
  return json;
}

OrderedJson ClassJson(const RankClass& one, const std::string& file, uint64_t hash) {
  OrderedJson json = {{"file", file}, {"hash", fmt::format("{:016x}", hash)}};
  json["ranks"] = RanksJson(one.ranks);
  json["groups"] = OrderedJson::array();
  for (const RankClass::Group& group : one.groups) {
    json["groups"].push_back({{"kind", group.kind}, {"listed", group.listed}});
  }
  json["states_rank"] = one.states_rank;
  json["peers_in_names"] = one.peers_in_names;
  return json;
}

OrderedJson EventJson(const CommEvent& event) {
  OrderedJson json;
  json["type"] = event.is_message ? std::string_view("message") : Name(event.type);
  if (event.bytes) json["bytes"] = event.bytes->count;
  if (event.root) json["root"] = *event.root;
  if (event.tag) json["tag"] = *event.tag;
  if (event.group != CommEvent::kNone) json["group"] = event.group;
  if (event.route != CommEvent::kNone) json["route"] = event.route;
  if (event.received_after != 0) json["received_after"] = event.received_after;
  json["parts"] = OrderedJson::array();
  for (const CommPart& part : event.parts) {
    OrderedJson entry = {{"class", part.rank_class}, {"node", part.node.value()}};
    if (part.number != 0) entry["number"] = part.number;
    if (part.states_self) entry["states_self"] = true;
    json["parts"].push_back(std::move(entry));
  }
  return json;
}

OrderedJson FactsJson(int64_t rank, const RankFacts& facts) {
  OrderedJson json = {{"rank", rank}};
  if (!facts.time.empty()) json["time"] = facts.time;
  if (facts.pid) json["pid"] = *facts.pid;
  if (facts.start_ts) json["start_ts"] = *facts.start_ts;
  if (facts.finish_ts) json["finish_ts"] = *facts.finish_ts;
  return json;
}

// Returns `entries` one per line, so that people can read and compare the file.
std::string Lines(const std::vector<OrderedJson>& entries) {
  std::string text = "[";
  for (const OrderedJson& entry : entries) {
    text += text.size() == 1 ? "\n    " : ",\n    ";
    text += entry.dump(-1, ' ', /*ensure_ascii=*/true, OrderedJson::error_handler_t::replace);
  }
  return text + (entries.empty() ? "]" : "\n  ]");
}

std::string ClassesText(const Job& job, const std::vector<uint64_t>& hashes, ClassFiles files) {
  std::vector<OrderedJson> axes, kinds, routes, classes, events, facts;
  for (const MeshAxis& axis : job.mesh.axes()) {
    axes.push_back({{"name", axis.name}, {"size", axis.size}});
  }
  for (const GroupKind& kind : job.group_kinds) kinds.push_back(KindJson(job.mesh, kind));
  for (const Route& route : job.routes) routes.push_back(RouteJson(job.mesh, route));
  for (size_t i = 0; i < job.classes.size(); ++i) {
    classes.push_back(ClassJson(job.classes[i], ClassFileName(i, files), hashes[i]));
  }
  for (const CommEvent& event : job.events) events.push_back(EventJson(event));
  for (const auto& [rank, known] : job.facts) facts.push_back(FactsJson(rank, known));
  return fmt::format(
      "{{\n  \"format\": \"{}\",\n  \"version\": {},\n  \"mesh\": {},\n  \"group_kinds\": {},\n"
      "  \"routes\": {},\n  \"classes\": {},\n  \"events\": {},\n  \"facts\": {}\n}}\n",
      kClassesDocument.format, kClassesDocument.version, Lines(axes), Lines(kinds), Lines(routes),
      Lines(classes), Lines(events), Lines(facts));
}

Result<std::string> ChakraBytes(const Trace& trace) {
  std::string bytes;
  ETUDE_RETURN_IF_ERROR(WriteChakra(trace, {.verbatim = true}, [&](std::string_view piece) {
    bytes += piece;
    return Status();
  }));
  return bytes;
}

// Returns the program of a class as the bytes of its file.
Result<std::string> ClassBytes(const Trace& program, ClassFiles files, const Limits& limits) {
  ETUDE_ASSIGN_OR_RETURN(std::string chakra, ChakraBytes(program));
  if (files == ClassFiles::kChakra) return chakra;
  // Reduces it to the facts that Chakra keeps, so that both kinds of files hold the same.
  ByteSource source = ByteSource::FromMemory("class", std::move(chakra), limits);
  ETUDE_ASSIGN_OR_RETURN(const Trace kept, ReadTrace(source, {.strict = true}, {.limits = limits}));
  ETUDE_ASSIGN_OR_RETURN(const PackedTrace packed, PackedTrace::Pack(kept, limits));
  return packed.ToBytes();
}

// ---- reading ---------------------------------------------------------------------------------

// Parses classes.json. The first mismatch is the error.
class ClassesParser {
 public:
  ClassesParser(const std::string& path, const nlohmann::json& json)
      : members_(path, json, status_) {}

  Result<Job> Run() {
    CheckKeys(members_, {"mesh", "group_kinds", "routes", "classes", "events", "facts"},
              {"format", "version"});
    ETUDE_RETURN_IF_ERROR(ReadMesh());
    for (const JsonMembers& kind : members_.Objects("group_kinds")) ReadKind(kind);
    for (const JsonMembers& route : members_.Objects("routes")) ReadRoute(route);
    for (const JsonMembers& one : members_.Objects("classes")) ReadClass(one);
    for (const JsonMembers& event : members_.Objects("events")) ReadEvent(event);
    for (const JsonMembers& facts : members_.Objects("facts")) ReadFacts(facts);
    ETUDE_RETURN_IF_ERROR(status_);
    if (job_.rank_count() > kMostListedRanks) {
      return BadInput(fmt::format("{}: found {} ranks, expected at most {}",
                                  members_.Place("classes"), job_.rank_count(), kMostListedRanks));
    }
    return std::move(job_);
  }

 private:
  static constexpr int64_t kMostRows = UINT32_MAX - 1;

  using Keys = std::initializer_list<const char*>;

  // Refuses an object that lacks a `needed` key or has an unknown one.
  void CheckKeys(const JsonMembers& members, Keys needed, Keys optional = {}) {
    std::vector<std::string> known(needed.begin(), needed.end());
    known.insert(known.end(), optional.begin(), optional.end());
    if (members.json().is_object()) {
      for (const auto& [key, value] : members.json().items()) {
        if (std::ranges::find(known, key) != known.end() || !status_) continue;
        status_ = BadInput(
            fmt::format("{}: found an unknown key{}", members.Place(key), DidYouMean(key, known)));
      }
    }
    for (const char* key : needed) {
      if (!members.Has(key) && status_) {
        status_ = BadInput(members.Place(key) + ": found none, expected one");
      }
    }
  }

  // Returns a whole number >= `least`; returns 0 and sets the error for anything else.
  int64_t Number(const nlohmann::json& json, int64_t least, const std::string& where) {
    const bool whole = json.is_number_integer() &&
                       (!json.is_number_unsigned() || json.get<uint64_t>() <= INT64_MAX);
    if (whole && json.get<int64_t>() >= least) return json.get<int64_t>();
    if (status_) {
      status_ = BadInput(fmt::format(
          "{}: found {}, expected a whole number from {} on", where,
          json.dump(-1, ' ', true, OrderedJson::error_handler_t::replace).substr(0, 40), least));
    }
    return 0;
  }

  size_t Index(const JsonMembers& members, const char* key) {
    const auto value = members.Whole(key, 0, kMostRows);
    if (!value) members.Refuse(key, "a whole number from 0 on");
    return static_cast<size_t>(value.value_or(0));
  }

  Status ReadMesh() {
    std::vector<MeshAxis> axes;
    for (const JsonMembers& axis : members_.Objects("mesh")) {
      CheckKeys(axis, {"name", "size"});
      axes.push_back(
          {.name = axis.Text("name").value_or(""), .size = axis.Whole("size", 1).value_or(0)});
    }
    ETUDE_RETURN_IF_ERROR(status_);
    Result<Mesh> mesh = Mesh::Make(std::move(axes));
    if (!mesh) return BadInput(members_.Place("mesh") + ": " + mesh.error().message);
    if (mesh->size() > kMostListedRanks) {
      return BadInput(fmt::format("{}: found {} ranks, expected at most {}", members_.Place("mesh"),
                                  mesh->size(), kMostListedRanks));
    }
    job_.mesh = *std::move(mesh);
    return {};
  }

  RankSet Ranks(const nlohmann::json& json, const std::string& where) {
    std::vector<RankSet::Block> blocks;
    if (!json.is_array()) Number(json, 0, where);
    for (const nlohmann::json& entry : json) {
      RankSet::Block& block = blocks.emplace_back();
      if (!entry.is_array() || entry.empty()) {
        block.first = Number(entry, 0, where);
        continue;
      }
      block.first = Number(entry[0], 0, where);
      for (size_t i = 1; i < entry.size(); ++i) {
        const bool pair = entry[i].is_array() && entry[i].size() == 2;
        block.dims.push_back({.count = Number(pair ? entry[i][0] : entry[i], 1, where),
                              .stride = Number(pair ? entry[i][1] : entry, 1, where)});
      }
    }
    if (!status_) return {};
    Result<RankSet> ranks = RankSet::OfBlocks(std::move(blocks), where);
    if (ranks) return *std::move(ranks);
    status_ = tl::unexpected<Error>(ranks.error());
    return {};
  }

  std::optional<size_t> AxisOf(std::string_view name) const {
    for (size_t i = 0; i < job_.mesh.axes().size(); ++i) {
      if (job_.mesh.axes()[i].name == name) return i;
    }
    return std::nullopt;
  }

  void ReadKind(const JsonMembers& members) {
    GroupKind kind;
    const bool along_axes = members.Has("axes");
    const char* const members_key = along_axes ? "axes" : "listed";
    if (members.Has("names")) {
      CheckKeys(members, {members_key, "names"}, {"callers_only"});
    } else {
      CheckKeys(members, {members_key, "first_name", "name_step"}, {"callers_only"});
    }
    if (along_axes) {
      kind.axes = 0;
      for (const std::string& name : members.Texts("axes")) {
        const auto axis = AxisOf(name);
        if (!axis) return members.Refuse("axes", "axes of the mesh");
        *kind.axes |= AxisSet{1} << *axis;
      }
    } else {
      for (const nlohmann::json& ranks : members.List("listed")) {
        kind.listed.push_back(Ranks(ranks, members.Place("listed")));
        if (kind.listed.back().size() > kMostListedRanks) {
          return members.Refuse("listed", "at most 1048576 ranks");
        }
      }
    }
    kind.names = members.Texts("names");
    constexpr int64_t kMost = int64_t{1} << 31;
    kind.first_name = members.Whole("first_name", -kMost, kMost).value_or(0);
    kind.name_step = members.Whole("name_step", -kMost, kMost).value_or(1);
    CheckGroups(members, kind);
    kind.callers_only = members.Truth("callers_only").value_or(false);
    job_.group_kinds.push_back(std::move(kind));
  }

  // A rank is in one group of a kind; a name means one group, too, unless the traces list the
  // members.
  void CheckGroups(const JsonMembers& members, const GroupKind& kind) {
    if (!status_) return;
    std::set<int64_t> ranks;
    for (const RankSet& group : kind.listed) {
      for (const int64_t rank : group.Ranks()) {
        if (rank >= job_.mesh.size()) return members.Refuse("listed", "ranks of the mesh");
        if (!ranks.insert(rank).second) {
          return members.Refuse("listed", fmt::format("rank {} in one group", rank));
        }
      }
    }
    const auto count = static_cast<size_t>(kind.axes ? job_.mesh.GroupCount(*kind.axes)
                                                     : static_cast<int64_t>(kind.listed.size()));
    names_repeat_.push_back(kind.name_step == 0 && count > 1);
    if (!members.Has("names")) return;
    if (kind.names.size() != count) {
      return members.Refuse("names", fmt::format("{} names, one for each group", count));
    }
    std::set<std::string_view> names;
    for (const std::string& name : kind.names) {
      if (!name.empty() && !names.insert(name).second) names_repeat_.back() = true;
    }
  }

  void ReadRoute(const JsonMembers& members) {
    Route route;
    CheckKeys(members, {members.Has("shift") ? "shift" : "pairs"});
    if (members.Has("shift")) {
      const JsonMembers shift = members.Object("shift");
      route.shift.assign(job_.mesh.axes().size(), 0);
      bool moves = false;
      if (!shift.empty()) {
        for (const auto& [name, offset] : shift.json().items()) {
          const auto axis = AxisOf(name);
          if (!axis) return members.Refuse("shift", "offsets along axes of the mesh");
          route.shift[*axis] = Number(offset, -kMostRanksOfJob, shift.Place(name));
          moves = moves || route.shift[*axis] % job_.mesh.axes()[*axis].size != 0;
        }
      }
      if (!moves && status_) return members.Refuse("shift", "a route to another rank");
    } else {
      for (const nlohmann::json& pair : members.List("pairs")) {
        if (!pair.is_array() || pair.size() != 2) return members.Refuse("pairs", "pairs of ranks");
        route.pairs.emplace_back(Number(pair[0], 0, members.Place("pairs")),
                                 Number(pair[1], 0, members.Place("pairs")));
      }
      if (!std::ranges::is_sorted(route.pairs)) {
        return members.Refuse("pairs", "pairs in ascending order");
      }
    }
    job_.routes.push_back(std::move(route));
  }

  void ReadClass(const JsonMembers& members) {
    RankClass one;
    CheckKeys(members, {"file", "hash", "ranks", "groups", "states_rank", "peers_in_names"});
    one.ranks = Ranks(members.List("ranks"), members.Place("ranks"));
    if (one.ranks.size() == 0 || one.ranks.At(one.ranks.size() - 1) >= job_.mesh.size()) {
      return members.Refuse("ranks", "ranks of the mesh");
    }
    for (const JsonMembers& group : members.Objects("groups")) {
      CheckKeys(group, {"kind", "listed"});
      one.groups.push_back(
          {.kind = Index(group, "kind"), .listed = group.Truth("listed").value_or(false)});
      if (one.groups.back().kind >= job_.group_kinds.size()) {
        return group.Refuse("kind", "one of the kinds of groups");
      }
      if (!one.groups.back().listed && status_ && names_repeat_[one.groups.back().kind]) {
        return group.Refuse("kind", "a kind of groups with different names");
      }
    }
    one.states_rank = members.Truth("states_rank").value_or(false);
    one.peers_in_names = members.Truth("peers_in_names").value_or(false);
    job_.classes.push_back(std::move(one));
  }

  void ReadEvent(const JsonMembers& members) {
    CommEvent event;
    CheckKeys(members, {"type", "parts"},
              {"bytes", "root", "tag", "group", "route", "received_after"});
    const std::string type = members.Text("type").value_or("");
    event.is_message = type == "message";
    if (const auto collective = CollectiveFromOwnName(type)) {
      event.type = *collective;
    } else if (!event.is_message) {
      return members.Refuse("type", "message, or a collective");
    }
    if (const auto bytes = members.Whole("bytes", 0)) event.bytes = Bytes{*bytes};
    event.root = members.Whole("root", INT64_MIN);
    event.tag = members.Whole("tag", INT64_MIN);
    if (members.Has("group")) event.group = Index(members, "group");
    if (members.Has("route")) event.route = Index(members, "route");
    if (members.Has("received_after")) event.received_after = Index(members, "received_after");
    if (event.group != CommEvent::kNone && event.group >= job_.group_kinds.size()) {
      return members.Refuse("group", "one of the kinds of groups");
    }
    if (event.route != CommEvent::kNone && event.route >= job_.routes.size()) {
      return members.Refuse("route", "one of the routes");
    }
    for (const JsonMembers& part : members.Objects("parts")) {
      CheckKeys(part, {"class", "node"}, {"number", "states_self"});
      event.parts.push_back({.rank_class = Index(part, "class"),
                             .node = NodeId::FromIndex(Index(part, "node")),
                             .number = part.Has("number") ? Index(part, "number") : 0,
                             .states_self = part.Truth("states_self").value_or(false)});
    }
    if (event.parts.empty()) return members.Refuse("parts", "at least one part");
    job_.events.push_back(std::move(event));
  }

  void ReadFacts(const JsonMembers& members) {
    const auto rank = static_cast<int64_t>(Index(members, "rank"));
    CheckKeys(members, {"rank"}, {"time", "pid", "start_ts", "finish_ts"});
    job_.facts[rank] = {.time = members.Text("time").value_or(""),
                        .pid = members.Whole("pid", INT64_MIN),
                        .start_ts = members.Whole("start_ts", INT64_MIN),
                        .finish_ts = members.Whole("finish_ts", INT64_MIN)};
  }

  Status status_;
  JsonMembers members_;
  Job job_;
  std::vector<bool> names_repeat_;  // by kind of groups
};

struct ClassesFile {
  Job job;  // without programs
  std::optional<ClassEvents> events;
  uint64_t bytes = 0;              // size of the file
  std::vector<std::string> files;  // by class
  std::vector<std::string> hashes;
};

Result<ClassesFile> ReadClasses(const std::string& folder, const RunContext& context) {
  const std::string path = folder + "/" + std::string(kClassesFile);
  ETUDE_ASSIGN_OR_RETURN(const std::string text,
                         ReadWholeFile(path, context.limits, kMostClassesBytes));
  ETUDE_ASSIGN_OR_RETURN(const nlohmann::json json,
                         ParseDocument(path, text, kClassesDocument, context));
  ClassesFile file;
  file.bytes = text.size();
  ETUDE_ASSIGN_OR_RETURN(file.job, ClassesParser(path, json).Run());
  file.events.emplace(file.job);
  Status status;
  for (const JsonMembers& one : JsonMembers(path, json, status).Objects("classes")) {
    const std::string name = one.Text("file").value_or("");
    // Names only: a job does not read files elsewhere.
    if (name.empty() || name.find('/') != std::string::npos)
      one.Refuse("file", "the name of a file");
    file.files.push_back(name);
    file.hashes.push_back(one.Text("hash").value_or(""));
  }
  ETUDE_RETURN_IF_ERROR(status);
  return file;
}

tl::unexpected<Error> InTwoClasses(const std::string& folder, int64_t rank) {
  return BadInput(fmt::format("{}/{}: found rank {} in two classes, expected it in one", folder,
                              kClassesFile, rank));
}

// Returns the contradiction between `node` of a class's file and its event; "" if there is none.
std::string EventFault(const CommEvent& event, const Trace& program, NodeId node) {
  const bool is_message = program.kind(node) != NodeKind::kCollective;
  if (is_message != event.is_message) {
    return fmt::format("found a {} at node {}, for which {} has a {}", Name(program.kind(node)),
                       node.value(), kClassesFile, event.is_message ? "message" : "collective");
  }
  const Comm* comm = program.comm(node);
  if (comm == nullptr) return "";
  const auto differs = [&](std::string_view found, std::string_view expected) {
    return fmt::format("found {} at node {}, for which {} has {}", found, node.value(),
                       kClassesFile, expected);
  };
  if (!is_message && comm->type != CollectiveType::kUnknown && comm->type != event.type) {
    return differs(Name(comm->type), Name(event.type));
  }
  if (comm->bytes && event.bytes && *comm->bytes != *event.bytes) {
    return differs(fmt::format("{} bytes", comm->bytes->count), std::to_string(event.bytes->count));
  }
  if (event.root && comm->root != event.root) {
    const std::string found = comm->root ? fmt::format("root {}", *comm->root) : "no root";
    return differs(found, std::to_string(*event.root));
  }
  if (comm->tag && event.tag && *comm->tag != *event.tag) {
    return differs(fmt::format("tag {}", *comm->tag), std::to_string(*event.tag));
  }
  return "";
}

// Returns the trace in a class's file, in the format given by its name.
Result<Trace> ParseClassFile(const std::string& path, std::string bytes,
                             const RunContext& context) {
  if (!path.ends_with(kPackedEnding)) {
    ByteSource source = ByteSource::FromMemory(path, std::move(bytes), context.limits);
    return ReadTrace(source, {.strict = true}, context);
  }
  const auto unpack = [&]() -> Result<Trace> {
    ETUDE_ASSIGN_OR_RETURN(const PackedTrace packed, PackedTrace::FromBytes(bytes));
    return packed.Unpack(context.limits);
  };
  Result<Trace> trace = unpack();
  if (trace) return trace;
  return MakeError(trace.error().code, path + ": " + trace.error().message);
}

Result<Trace> ReadProgram(const ClassesFile& file, size_t rank_class, const std::string& folder,
                          const RunContext& context) {
  const std::string path = folder + "/" + file.files[rank_class];
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error) {
    return BadInput(fmt::format("{}: missing file (listed in {})", path, kClassesFile));
  }
  ETUDE_RETURN_IF_ERROR(CheckRegular(path));
  ETUDE_ASSIGN_OR_RETURN(std::string bytes,
                         ReadWholeFile(path, context.limits, context.limits.total_bytes));
  const std::string hash = fmt::format("{:016x}", HashBytes(bytes));
  if (hash != file.hashes[rank_class]) {
    return BadInput(fmt::format(
        "{}: found content that differs from the content listed in {} (hash {}, expected {})", path,
        kClassesFile, hash, file.hashes[rank_class]));
  }
  ETUDE_ASSIGN_OR_RETURN(Trace program, ParseClassFile(path, std::move(bytes), context));
  if (!program.traits().states_order) {
    return BadInput(fmt::format("{}: found a {} trace, expected a Chakra trace", path,
                                Name(program.info().format)));
  }
  for (const EventOfNode& of : (*file.events)[rank_class]) {
    if (of.node.index() >= program.node_count() || !IsCommunication(program.kind(of.node))) {
      return BadInput(fmt::format("{}: found no communication at node {}, expected one as in {}",
                                  path, of.node.value(), kClassesFile));
    }
    const std::string fault = EventFault(*of.event, program, of.node);
    if (!fault.empty()) return BadInput(path + ": " + fault);
  }
  return program;
}

// ReadClasses and ReadProgram, once per run.
Result<std::shared_ptr<const ClassesFile>> OpenClasses(const std::string& folder,
                                                       const RunContext& context) {
  return MadeOnce<ClassesFile>(
      context.cache, "classes.json of " + folder, [&] { return ReadClasses(folder, context); },
      [](const ClassesFile& file) { return file.bytes; });
}

Result<std::shared_ptr<const Trace>> OpenProgram(const ClassesFile& file, size_t rank_class,
                                                 const std::string& folder,
                                                 const RunContext& context) {
  return MadeOnce<Trace>(
      context.cache, fmt::format("class {} of {}", rank_class, folder),
      [&] { return ReadProgram(file, rank_class, folder, context); },
      [](const Trace& program) { return program.memory_bytes(); });
}

}  // namespace

Result<Job> ParseClassesFile(const std::string& path, std::string_view text,
                             const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const nlohmann::json json,
                         ParseDocument(path, text, kClassesDocument, context));
  return ClassesParser(path, json).Run();
}

Status WriteJobFolder(const Job& job, const std::string& folder, const RunContext& context,
                      ClassFiles files) {
  if (job.mesh.size() > kMostListedRanks) {
    return BadInput(fmt::format("{}: found a job of {} ranks, expected at most {}", folder,
                                job.mesh.size(), kMostListedRanks));
  }
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return MakeError(ErrorCode::kIo,
                     fmt::format("{}: cannot create it: {}", folder, error.message()));
  }
  std::vector<std::string> left;  // of the previous job
  if (const Result<ClassesFile> before = ReadClasses(folder, context)) left = before->files;
  std::vector<uint64_t> hashes;
  FileSet written;
  const ClassEvents events(job);
  for (size_t i = 0; i < job.classes.size(); ++i) {
    ETUDE_ASSIGN_OR_RETURN(const Trace program,
                           WithEvents(events[i], job.classes[i].program, context.limits));
    ETUDE_ASSIGN_OR_RETURN(const std::string bytes, ClassBytes(program, files, context.limits));
    hashes.push_back(HashBytes(bytes));
    std::erase(left, ClassFileName(i, files));
    ETUDE_RETURN_IF_ERROR(written.Add(folder + "/" + ClassFileName(i, files), bytes));
  }
  const std::string classes = ClassesText(job, hashes, files);
  if (classes.size() > kMostClassesBytes) {
    return BadInput(fmt::format("{}: found {} bytes of {}, expected at most {}", folder,
                                classes.size(), kClassesFile, kMostClassesBytes));
  }
  ETUDE_RETURN_IF_ERROR(written.Add(folder + "/" + std::string(kClassesFile), classes));
  ETUDE_RETURN_IF_ERROR(written.Commit());
  for (const std::string& name : left) {
    if (IsClassFileName(name)) std::filesystem::remove(folder + "/" + name, error);
  }
  return {};
}

Result<Job> ReadJobFolder(const std::string& folder, const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(ClassesFile file, ReadClasses(folder, context));
  for (size_t i = 0; i < file.files.size(); ++i) {
    ETUDE_ASSIGN_OR_RETURN(const Trace program, ReadProgram(file, i, folder, context));
    ETUDE_ASSIGN_OR_RETURN(file.job.classes[i].program,
                           WithoutEvents((*file.events)[i], program, context.limits));
  }
  if (const Status status = CheckJob(file.job); !status) {
    return MakeError(status.error().code,
                     fmt::format("{}/{}: {}", folder, kClassesFile, status.error().message));
  }
  return std::move(file.job);
}

bool IsJobFolder(const std::string& folder) {
  std::error_code error;
  return std::filesystem::is_regular_file(folder + "/" + std::string(kClassesFile), error);
}

Result<std::vector<int64_t>> RanksOfJobFolder(const std::string& folder,
                                              const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const std::shared_ptr<const ClassesFile> file,
                         OpenClasses(folder, context));
  std::vector<int64_t> ranks;
  for (const RankClass& one : file->job.classes) {
    const std::vector<int64_t> more = one.ranks.Ranks();
    ranks.insert(ranks.end(), more.begin(), more.end());
  }
  std::ranges::sort(ranks);
  const auto twice = std::ranges::adjacent_find(ranks);
  if (twice != ranks.end()) {
    return InTwoClasses(folder, *twice);
  }
  if (ranks.empty()) {
    return BadInput(fmt::format("{}/{}: found no ranks", folder, kClassesFile));
  }
  return ranks;
}

std::string RankFileName(int64_t rank) {
  return fmt::format("{}{}{}", kRankFile, rank, kRankEnding);
}

std::optional<JobRankPath> JobRankOfPath(const std::string& path) {
  const std::filesystem::path parts(path);
  std::string name = parts.filename().string();
  if (!name.starts_with(kRankFile) || !name.ends_with(kRankEnding)) return std::nullopt;
  name = name.substr(kRankFile.size(), name.size() - kRankFile.size() - kRankEnding.size());
  const std::optional<int64_t> rank = ParseWhole(name);
  std::string folder = parts.parent_path().string();
  if (folder.empty()) folder = ".";
  std::error_code error;
  if (!rank || *rank < 0 || std::filesystem::exists(path, error) || !IsJobFolder(folder)) {
    return std::nullopt;
  }
  return JobRankPath{.folder = std::move(folder), .rank = *rank};
}

Result<Trace> ReadJobRank(const JobRankPath& path, const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const std::shared_ptr<const ClassesFile> file,
                         OpenClasses(path.folder, context));
  const Job& job = file->job;
  const auto has_rank = [&](const RankClass& one) { return one.ranks.Contains(path.rank); };
  if (std::ranges::count_if(job.classes, has_rank) > 1) {
    return InTwoClasses(path.folder, path.rank);
  }
  const std::optional<size_t> of = job.ClassOf(path.rank);
  std::shared_ptr<const Trace> program;
  if (of) {
    ETUDE_ASSIGN_OR_RETURN(program, OpenProgram(*file, *of, path.folder, context));
  }
  Result<Trace> trace =
      of ? TraceOfRank(job, {*of, *program, (*file->events)[*of]}, path.rank, context.limits)
         : TraceOfRank(job, path.rank, context.limits);
  if (trace) return trace;
  return MakeError(trace.error().code,
                   fmt::format("{}/{}: {}", path.folder, kClassesFile, trace.error().message));
}

Result<std::string> ReadJobRankBytes(const JobRankPath& path, const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const Trace trace, ReadJobRank(path, context));
  return ChakraBytes(trace);
}

}  // namespace etude
