#include "src/sim/program/workload.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "src/base/container/hash.h"
#include "src/formats/io/byte_source.h"

namespace etude {
namespace {

uint64_t HashOf(const SimProgram& program) {
  uint64_t hash = program.nodes.size();
  for (const SimNode& node : program.nodes) {
    hash = HashMix(hash, static_cast<uint64_t>(node.bytes + node.duration + node.tag));
    hash = HashMix(hash, uint64_t{node.peer} << 32 | node.group);
  }
  return hash;
}

// Partners within a job's class: a group's kind, and a partner by its number on a route.
struct ClassPartners {
  std::vector<SimPartners> of_nodes;  // 1 + kind; index of `messages`
  struct End {
    size_t route = 0;
    size_t number = 0;
    bool sends = false;

    friend auto operator<=>(const End&, const End&) = default;
  };
  std::vector<End> ends;
};

std::vector<ClassPartners> PartnersOfClasses(const Job& job) {
  std::vector<ClassPartners> all(job.classes.size());
  std::vector<std::map<ClassPartners::End, int64_t>> numbers(job.classes.size());
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].of_nodes.resize(job.classes[i].program.node_count());
  }
  for (const CommEvent& event : job.events) {
    for (const CommPart& part : event.parts) {
      ClassPartners& one = all[part.rank_class];
      SimPartners& node = one.of_nodes[part.node.index()];
      if (!event.is_message) {
        if (event.group != CommEvent::kNone) node.group = static_cast<int64_t>(event.group) + 1;
        continue;
      }
      if (event.route == CommEvent::kNone) continue;
      const ClassPartners::End end{
          .route = event.route,
          .number = part.number,
          .sends = job.classes[part.rank_class].program.kind(part.node) == NodeKind::kSend};
      const auto [found, is_new] =
          numbers[part.rank_class].emplace(end, static_cast<int64_t>(one.ends.size()));
      if (is_new) one.ends.push_back(end);
      node.peer = found->second;
    }
  }
  return all;
}

// Returns whether a collective has a non-numeric group name. Warns of the first.
bool WarnOfGroupName(const Trace& trace, const std::string& path, const RunContext& context) {
  bool warned = false;
  ForEachNode(trace, [&](NodeId node) {
    const Comm* comm = trace.comm(node);
    if (warned || comm == nullptr || trace.kind(node) != NodeKind::kCollective) return;
    const std::string_view name = trace.text(comm->group);
    if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return;
    context.Warn(
        fmt::format("{}: node {}: found the group '{}', expected a number; groups with other names "
                    "include all ranks, as in ASTRA-sim",
                    path, trace.source_id(node), name));
    warned = true;
  });
  return warned;
}

// Finds rank files with equal bytes. Holds one piece of a file at a time.
class EqualFiles {
 public:
  EqualFiles(const std::string& prefix, const Limits& limits) : prefix_(prefix), limits_(limits) {}

  // Returns an earlier rank whose file equals that of `rank`.
  Result<std::optional<int64_t>> Before(int64_t rank) {
    ETUDE_RETURN_IF_ERROR(CheckRegular(RankFileOf(prefix_, rank)));
    ETUDE_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(RankFileOf(prefix_, rank), limits_));
    uint64_t hash = 0;
    size_t pieces = 0;
    std::string only;
    while (true) {
      ETUDE_ASSIGN_OR_RETURN(const std::string_view piece, source.Next());
      if (piece.empty()) break;
      hash = HashBytes(piece, hash);
      ++pieces;
      if (pieces == 1) only = piece;
    }
    if (pieces > 1) only.clear();
    const bool is_last = !only.empty() && only == last_;
    last_ = std::move(only);
    if (is_last) return last_rank_;
    const auto [known, is_new] = known_.emplace(hash, rank);
    last_rank_ = rank;
    if (is_new) return std::nullopt;
    ETUDE_ASSIGN_OR_RETURN(const bool same, Same(known->second, rank));
    if (!same) return std::nullopt;
    last_rank_ = known->second;
    return last_rank_;
  }

 private:
  Result<bool> Same(int64_t a, int64_t b) const {
    ETUDE_ASSIGN_OR_RETURN(ByteSource one, ByteSource::Open(RankFileOf(prefix_, a), limits_));
    ETUDE_ASSIGN_OR_RETURN(ByteSource other, ByteSource::Open(RankFileOf(prefix_, b), limits_));
    while (true) {
      ETUDE_ASSIGN_OR_RETURN(const std::string_view piece, one.Next());
      ETUDE_ASSIGN_OR_RETURN(const std::string_view piece_of_other, other.Next());
      if (piece != piece_of_other) return false;
      if (piece.empty()) return true;
    }
  }

  std::string prefix_;
  const Limits& limits_;
  std::unordered_map<uint64_t, int64_t> known_;  // ranks by the hash of their bytes
  std::string last_;  // bytes of the previous rank's file, because neighbours are often equal; "":
                      // too large
  int64_t last_rank_ = 0;  // first rank known to have these bytes
};

}  // namespace

void SharedPrograms::Share(SimRank& rank) {
  const uint64_t hash = HashOf(*rank.program);
  const auto [first, last] = known_.equal_range(hash);
  for (auto known = first; known != last; ++known) {
    if (*known->second != *rank.program) continue;
    rank.program = known->second;
    return;
  }
  known_.emplace(hash, rank.program);
}

std::string RankFileOf(const std::string& prefix, int64_t rank) {
  return fmt::format("{}.{}.et", prefix, rank);
}

Result<SimWorkload> ReadSimFiles(const std::string& prefix, int64_t ranks,
                                 const ReadOptions& options, const RunContext& context) {
  SimWorkload workload;
  SharedPrograms programs;
  EqualFiles files(prefix, context.limits);
  std::map<int64_t, size_t> warned_of;  // ranks, with the number of others that have the same bytes
  bool warned = false;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    ETUDE_ASSIGN_OR_RETURN(const std::optional<int64_t> same, files.Before(rank));
    if (same) {
      if (const auto found = warned_of.find(*same); found != warned_of.end()) ++found->second;
      workload.ranks.push_back(workload.ranks[static_cast<size_t>(*same)]);
      continue;
    }
    const std::string path = RankFileOf(prefix, rank);
    RunContext noting = context;
    noting.warn = [&](std::string_view text) {
      warned_of.emplace(rank, 0);
      context.Warn(text);
    };
    ETUDE_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path, context.limits));
    ETUDE_ASSIGN_OR_RETURN(const Trace trace, ReadTrace(source, options, noting));
    WarnOfIds(trace, path, noting);
    if (!warned) warned = WarnOfGroupName(trace, path, context);
    Result<SimRank> made = MakeSimRank(trace);
    if (!made) return BadInput(path + ": " + made.error().message);
    programs.Share(*made);
    workload.ranks.push_back(*std::move(made));
  }
  for (const auto& [rank, others] : warned_of) {
    if (others == 0) continue;
    context.Warn(fmt::format("{}: the same holds for {} more rank{} with the same bytes",
                             RankFileOf(prefix, rank), others, others == 1 ? "" : "s"));
  }
  return workload;
}

Result<SimWorkload> WorkloadOfJob(const Job& job, const Limits& limits) {
  SimWorkload workload;
  const int64_t ranks = job.mesh.size();
  if (job.rank_count() != ranks) {
    return BadInput(fmt::format("found traces of {} of {} ranks, expected all of them",
                                job.rank_count(), ranks));
  }
  std::vector<int64_t> first_of_kind;
  int64_t next = 1;
  for (const GroupKind& kind : job.group_kinds) {
    first_of_kind.push_back(next);
    const int64_t count =
        kind.axes ? job.mesh.GroupCount(*kind.axes) : static_cast<int64_t>(kind.listed.size());
    for (int64_t i = 0; i < count; ++i) workload.groups[next + i] = kind.RanksOf(job.mesh, i);
    next += count;
  }
  workload.ranks.resize(static_cast<size_t>(ranks));
  const std::vector<ClassPartners> partners = PartnersOfClasses(job);
  const ClassEvents events(job);
  SharedPrograms programs;
  for (size_t i = 0; i < job.classes.size(); ++i) {
    const RankClass& one = job.classes[i];
    ETUDE_ASSIGN_OR_RETURN(const Trace trace, WithEvents(events[i], one.program, limits));
    Result<SimRank> made = MakeSimRank(trace, partners[i].of_nodes);
    if (!made) return BadInput(fmt::format("class {}: {}", i, made.error().message));
    programs.Share(*made);
    for (const int64_t rank : one.ranks.Ranks()) {
      SimRank& mine = workload.ranks[static_cast<size_t>(rank)];
      mine.program = made->program;
      for (const int64_t kind : made->groups) {
        const auto at = static_cast<size_t>(kind - 1);
        const std::optional<int64_t> group = job.group_kinds[at].GroupOf(job.mesh, rank);
        mine.groups.push_back(group ? first_of_kind[at] + *group : -1);
      }
      for (const int64_t number : made->peers) {
        std::optional<int64_t> peer;
        if (number >= 0) {
          const ClassPartners::End& end = partners[i].ends[static_cast<size_t>(number)];
          const Route& route = job.routes[end.route];
          peer = end.sends ? route.ReceiverOf(job.mesh, rank, end.number)
                           : route.SenderTo(job.mesh, rank, end.number);
        }
        mine.peers.push_back(peer.value_or(-1));
      }
    }
  }
  return workload;
}

namespace {

// Returns whether the list contains all ranks of the job, in order.
bool IsOfAll(const std::vector<int64_t>& sorted, int64_t ranks) {
  return !sorted.empty() && std::cmp_equal(sorted.size(), ranks) && sorted.front() == 0 &&
         sorted.back() == ranks - 1 && std::ranges::adjacent_find(sorted) == sorted.end();
}

}  // namespace

Result<RankGroups> NumberedGroups(const std::map<std::string, std::vector<int64_t>>& groups,
                                  const std::string& path, int64_t ranks) {
  RankGroups numbered;
  for (const auto& [name, members] : groups) {
    int64_t number = 0;
    const auto end = std::from_chars(name.data(), name.data() + name.size(), number);
    std::vector<int64_t> sorted = members;
    std::ranges::sort(sorted);
    const bool is_number = end.ptr == name.data() + name.size() && number >= 0;
    if (is_number && number == 0 && IsOfAll(sorted, ranks)) continue;
    if (!is_number || number == 0) {
      return BadInput(fmt::format(
          "{}: found a group named '{}', expected {}; give the folder of the traces instead of "
          "PREFIX, or rename the group in this file and in the traces",
          path, name,
          is_number
              ? "all ranks in it, because group 0 of PREFIX.RANK.et traces is the group of all "
                "ranks, as in ASTRA-sim"
              : "a number, because groups in PREFIX.RANK.et traces are numbered, as in ASTRA-sim"));
    }
    if (sorted.empty()) {
      return BadInput(
          fmt::format("{}: group {}: found no ranks, expected at least one", path, name));
    }
    if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end()) {
      return BadInput(fmt::format("{}: group {}: found rank {} twice, expected each rank once",
                                  path, name, *twice));
    }
    if (sorted.front() < 0 || sorted.back() >= ranks) {
      return BadInput(fmt::format("{}: group {}: found rank {}, expected ranks below {}", path,
                                  name, sorted.front() < 0 ? sorted.front() : sorted.back(),
                                  ranks));
    }
    numbered[number] = members;
  }
  return numbered;
}

}  // namespace etude
