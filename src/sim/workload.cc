#include "src/sim/workload.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/formats/byte_source.h"

namespace etude {

std::vector<const SimProgram*> SimWorkload::all() const {
  std::vector<const SimProgram*> pointers;
  pointers.reserve(programs.size());
  for (const auto& program : programs) pointers.push_back(program.get());
  return pointers;
}

Result<SimWorkload> ReadSimFiles(const std::string& prefix, int64_t ranks,
                                 const ReadOptions& options, const RunContext& context) {
  SimWorkload workload;
  std::unordered_map<std::string, std::shared_ptr<const SimProgram>> known;  // by content
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const std::string path = fmt::format("{}.{}.et", prefix, rank);
    ETUDE_ASSIGN_OR_RETURN(std::string bytes,
                           ReadWholeFile(path, context.limits, context.limits.total_bytes));
    std::shared_ptr<const SimProgram>& program = known[bytes];
    if (program == nullptr) {
      ETUDE_ASSIGN_OR_RETURN(const Trace trace, ReadTrace(path, options, context));
      Result<SimProgram> made = MakeSimProgram(trace);
      if (!made) return BadInput(path + ": " + made.error().message);
      program = std::make_shared<SimProgram>(*std::move(made));
    }
    workload.programs.push_back(program);
  }
  return workload;
}

Result<RankGroups> ParseRankGroups(const std::string& text, const std::string& path,
                                   int64_t ranks) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) {
    return BadInput(fmt::format("{}: expected a JSON object of groups and their ranks", path));
  }
  RankGroups groups;
  for (const auto& [name, members] : json.items()) {
    int64_t number = 0;
    const auto end = std::from_chars(name.data(), name.data() + name.size(), number);
    if (end.ptr != name.data() + name.size() || number <= 0 || !members.is_array()) {
      return BadInput(
          fmt::format("{}: '{}': expected a number above 0 and a list of ranks", path, name));
    }
    std::vector<int64_t>& list = groups[number];
    for (const auto& member : members) {
      if (!member.is_number_integer() || member.get<int64_t>() < 0 ||
          member.get<int64_t>() >= ranks) {
        return BadInput(fmt::format("{}: group {}: found {}, expected a rank below {}", path, name,
                                    member.dump(), ranks));
      }
      list.push_back(member.get<int64_t>());
    }
    std::vector<int64_t> sorted = list;
    std::ranges::sort(sorted);
    if (list.empty() || std::ranges::adjacent_find(sorted) != sorted.end()) {
      return BadInput(fmt::format("{}: group {}: expected ranks, each of them once", path, name));
    }
  }
  return groups;
}

std::string WhatIsWaitedFor(const SimResult& result, const SimWorkload& workload, int64_t rank) {
  const SimProgram& program = *workload.programs[static_cast<size_t>(rank)];
  const SimRankResult& done = result.OfRank(rank);
  for (size_t i = 0; i < program.nodes.size(); ++i) {
    if (done.begins[i] < 0 || done.ends[i] >= 0) continue;
    const SimNode& node = program.nodes[i];
    std::string what = fmt::format("rank {} has begun node {} at {} ns, ", rank,
                                   program.source_ids[i], done.begins[i]);
    switch (node.kind) {
      case NodeKind::kSend:
        return what + fmt::format("a message of {} bytes to rank {} with tag {}", node.bytes,
                                  node.peer, node.tag);
      case NodeKind::kRecv:
        return what + fmt::format("which waits for {} bytes from rank {} with tag {}", node.bytes,
                                  node.peer, node.tag);
      case NodeKind::kCollective:
        return what +
               fmt::format("a collective of {} bytes that others do not take part in", node.bytes);
      default: return what + "which does not end";
    }
  }
  return fmt::format("rank {} has nothing that it could begin", rank);
}

}  // namespace etude
