#include "src/formats/chakra/chakra_feeder.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "src/base/container/table_hash.h"
#include "src/formats/job/job_folder.h"

namespace etude::chakra {
namespace {

constexpr size_t kCycleNodesNamed = 8;

// Neighbouring ids are typically used together and are neighbours in the index.
uint64_t HashId(uint64_t id) { return TableHash(id / 4) << 2 | id % 4; }

std::string Named(uint64_t id) { return "node " + std::to_string(id); }

// Returns the next message of `source`, cut by `frames`; nothing at the end of the file. An error
// if the file ends within a message.
Result<std::optional<std::string_view>> NextMessage(ByteSource& source, Frames& frames) {
  while (true) {
    ETUDE_ASSIGN_OR_RETURN(const auto message, frames.Next());
    if (message) return message;
    ETUDE_ASSIGN_OR_RETURN(const std::string_view chunk, source.Next());
    if (chunk.empty()) break;
    frames.Feed(chunk);
  }
  if (frames.number() != 0 && !source.cut() && frames.pending() == 0) return std::nullopt;
  return BadInput(frames.EndsEarly());
}

// Returns an error if the last message of `frames` is malformed; `why` is the reason, or "".
Status CheckMessage(std::string_view why, const Frames& frames) {
  if (why.empty()) return {};
  return BadInput(frames.Malformed(why));
}

}  // namespace

Feeder::Feeder(ByteSource source, OpenSource open_again, const FeederOptions& options,
               const RunContext& context)
    : source_(std::move(source)),
      open_again_(std::move(open_again)),
      options_(options),
      context_(context),
      frames_(source_.name(), context.limits) {}

Result<Feeder> Feeder::Open(const std::string& path, const FeederOptions& options,
                            const RunContext& context) {
  if (const auto rank = JobRankOfPath(path)) {
    ETUDE_ASSIGN_OR_RETURN(const std::string bytes, ReadJobRankBytes(*rank, context));
    return FromMemory(path, bytes, options, context);
  }
  const auto open = [path, limits = context.limits] { return ByteSource::Open(path, limits); };
  ETUDE_ASSIGN_OR_RETURN(ByteSource source, open());
  // An input without a size, such as a pipe, can be read only once.
  const bool repeatable = source.size_in().has_value();
  Feeder feeder(std::move(source), repeatable ? OpenSource(open) : nullptr, options, context);
  ETUDE_RETURN_IF_ERROR(feeder.ReadOn());
  return feeder;
}

Result<Feeder> Feeder::FromMemory(const std::string& name, const std::string& bytes,
                                  const FeederOptions& options, const RunContext& context) {
  const auto open = [name, bytes, limits = context.limits]() -> Result<ByteSource> {
    return ByteSource::FromMemory(name, bytes, limits);
  };
  ETUDE_ASSIGN_OR_RETURN(ByteSource source, open());
  Feeder feeder(std::move(source), open, options, context);
  ETUDE_RETURN_IF_ERROR(feeder.ReadOn());
  return feeder;
}

Result<std::optional<NodeView>> Feeder::Next() {
  ETUDE_RETURN_IF_ERROR(ReadOn());
  if (ready_.empty()) return std::nullopt;
  const uint32_t row = ready_.front().row;
  ETUDE_ASSIGN_OR_RETURN(const NodeView view, View(row));
  std::ranges::pop_heap(ready_, std::greater<>());
  ready_.pop_back();
  rows_[row].state = State::kInFlight;
  ++in_flight_;
  return view;
}

Result<NodeView> Feeder::View(uint32_t row) {
  const Row& node = rows_[row];
  ETUDE_ASSIGN_OR_RETURN(const std::string_view message, messages_.Get(row, node.place, source_));
  return NodeView(node.id, message);
}

Result<NodeView> Feeder::Lookup(uint64_t id) {
  const uint32_t row = Find(id);
  if (row != IndexSet::kAbsent && rows_[row].state != State::kUnread) return View(row);
  const std::string why = finished_.Contains(id) ? "has finished" : "has not been read";
  return MakeError(ErrorCode::kUsage, source_.name() + ": " + Named(id) + " " + why);
}

Status Feeder::NotInFlight(uint64_t id, uint32_t row) const {
  std::string found = finished_.Contains(id) ? "has finished" : "has not been read";
  if (row != IndexSet::kAbsent && rows_[row].state == State::kWaiting)
    found = "waits for other nodes";
  if (row != IndexSet::kAbsent && rows_[row].state == State::kReady) found = "was not issued";
  return MakeError(ErrorCode::kUsage,
                   source_.name() + ": " + Named(id) + " " + found + ", so it cannot finish");
}

Status Feeder::Finish(uint64_t id) {
  const uint32_t row = Find(id);
  if (row == IndexSet::kAbsent || rows_[row].state != State::kInFlight) return NotInFlight(id, row);
  --in_flight_;
  finished_.Insert(id);
  ReleaseDependents(row);
  Drop(row);
  // Only the end of the file shows whether that was the last node.
  if (Held() == 0) return ReadOn();
  return error_ ? Status(tl::unexpected<Error>(*error_)) : Status();
}

// Reads until a node is ready or further reading is useless.
Status Feeder::ReadOn() {
  if (error_) return tl::unexpected<Error>(*error_);
  Status status;
  while (status && !ended_ && ready_.empty() && (in_flight_ == 0 || waiting_ < options_.window)) {
    status = ReadMessage();
  }
  if (status && ended_ && ready_.empty() && in_flight_ == 0 && waiting_ != 0) {
    status = CycleError();
  }
  if (!status) error_ = status.error();
  return status;
}

Status Feeder::ReadMessage() {
  ETUDE_ASSIGN_OR_RETURN(const auto message, NextMessage(source_, frames_));
  if (!message) return End();
  return IsMetadata(*message, frames_.number() == 0) ? TakeMetadata(*message) : TakeNode(*message);
}

Status Feeder::TakeMetadata(std::string_view message) {
  ETUDE_RETURN_IF_ERROR(CheckMessage(CheckMetadata(message), frames_));
  if (frames_.number() != 0 && misplaced_.empty()) misplaced_ = frames_.Where();
  if (!has_metadata_) metadata_ = message;
  has_metadata_ = true;
  return {};
}

Status Feeder::TakeNode(std::string_view message) {
  ETUDE_RETURN_IF_ERROR(CheckMessage(ReadNodeHead(message, options_.dependencies, head_), frames_));
  if (message.size() > HeldMessages::kMaxBytes) {
    return BadInput(frames_.Where() + ": found a message of " + std::to_string(message.size()) +
                    " bytes, expected at most " + std::to_string(HeldMessages::kMaxBytes));
  }
  if (++read_ > context_.limits.nodes) {
    return BadInput(frames_.Where() + ": found more than " + std::to_string(context_.limits.nodes) +
                    " nodes (limit 'nodes')");
  }
  uint32_t row = Find(head_.id);
  if (row == IndexSet::kAbsent && !finished_.Contains(head_.id)) {
    ETUDE_ASSIGN_OR_RETURN(row, AddRow(head_.id));
  } else if (row == IndexSet::kAbsent || rows_[row].state != State::kUnread) {
    return BadInput(frames_.Where() + ": found " + Named(head_.id) +
                    " again, expected each id once");
  } else {
    --unread_;
  }
  Row& node = rows_[row];
  const uint64_t offset = frames_.end() - message.size();
  node.place = messages_.Hold(row, offset, message, source_);
  node.state = State::kWaiting;
  ++waiting_;
  for (const uint64_t id : head_.deps) ETUDE_RETURN_IF_ERROR(WaitFor(row, id));
  if (node.unmet == 0) MakeReady(row);
  most_held_ = std::max(most_held_, Held());
  return {};
}

// Makes the waiting node `row` depend on the node `id`.
Status Feeder::WaitFor(uint32_t row, uint64_t id) {
  if (finished_.Contains(id)) return {};
  uint32_t other = Find(id);
  if (other == IndexSet::kAbsent) {
    if (!ids_ && open_again_) ETUDE_RETURN_IF_ERROR(FindIds());
    if (ids_ && !ids_->Contains(id)) return CountMissing(rows_[row].id, id);
    ETUDE_ASSIGN_OR_RETURN(other, AddRow(id));
    rows_[other].state = State::kUnread;
    ++unread_;
  }
  if (edges_.size() >= std::min<uint64_t>(context_.limits.edges, Slab<Edge>::kMaxRows)) {
    return BadInput(frames_.Where() + ": found more than " + std::to_string(context_.limits.edges) +
                    " dependencies of waiting nodes (limit 'edges')");
  }
  const uint32_t edge = edges_.Add();
  edges_[edge] = {.row = row, .next = rows_[other].dependents};
  rows_[other].dependents = edge;
  ++rows_[row].unmet;
  return {};
}

Status Feeder::CountMissing(uint64_t node, uint64_t id) {
  if (missing_++ != 0) return {};
  first_missing_ = Named(node) + " depends on " + Named(id) + ", which is not in the file";
  if (options_.strict) return BadInput(source_.name() + ": " + first_missing_);
  return {};
}

// Collects all ids of the file in a separate pass.
Status Feeder::FindIds() {
  ETUDE_ASSIGN_OR_RETURN(ByteSource source, open_again_());
  Frames frames(source.name(), context_.limits);
  NodeHead head;
  IdSet ids;
  while (true) {
    ETUDE_ASSIGN_OR_RETURN(const auto message, NextMessage(source, frames));
    if (!message) break;
    if (IsMetadata(*message, frames.number() == 0)) continue;
    const DependencyKinds none{.ctrl = false, .data = false};
    ETUDE_RETURN_IF_ERROR(CheckMessage(ReadNodeHead(*message, none, head), frames));
    ids.Insert(head.id);
  }
  ids_ = std::move(ids);
  return {};
}

Status Feeder::End() {
  ended_ = true;
  if (source_.trailing_bytes() != 0) {
    context_.Warn(source_.name() + ": " + std::to_string(source_.trailing_bytes()) +
                  " bytes after the compressed data are ignored");
  }
  if (!has_metadata_) {
    context_.Warn(source_.name() +
                  ":byte 0: found a Node, expected GlobalMetadata; the metadata is missing");
  }
  if (!misplaced_.empty()) {
    context_.Warn(misplaced_ + ": found GlobalMetadata, expected it once, as the first message; " +
                  "the first one is used");
  }
  ETUDE_RETURN_IF_ERROR(ReleaseUnread());
  if (missing_ != 0) {
    context_.Warn(source_.name() + ": " + first_missing_ + "; " + std::to_string(missing_) +
                  " such dependencies are ignored");
  }
  return {};
}

// At the end of the file, unread nodes are missing.
Status Feeder::ReleaseUnread() {
  if (unread_ == 0) return {};
  std::vector<std::pair<uint64_t, uint32_t>> unread;
  for (uint32_t row = 0; row < rows_.end(); ++row) {
    if (rows_[row].state == State::kUnread) unread.emplace_back(rows_[row].id, row);
  }
  std::ranges::sort(unread);
  for (const auto& [id, row] : unread) {
    for (uint32_t edge = rows_[row].dependents; edge != kNoEdge; edge = edges_[edge].next) {
      ETUDE_RETURN_IF_ERROR(CountMissing(rows_[edges_[edge].row].id, id));
    }
    ReleaseDependents(row);
    Drop(row);
  }
  unread_ = 0;
  return {};
}

Result<uint32_t> Feeder::AddRow(uint64_t id) {
  if (rows_.size() >= std::min<uint64_t>(context_.limits.nodes, Slab<Row>::kMaxRows)) {
    return BadInput(frames_.Where() + ": found more than " + std::to_string(context_.limits.nodes) +
                    " nodes (limit 'nodes')");
  }
  const uint32_t row = rows_.Add();
  rows_[row].id = id;
  index_.Insert(HashId(id), row, [&](uint32_t other) { return HashId(rows_[other].id); });
  return row;
}

uint32_t Feeder::Find(uint64_t id) const {
  return index_.Find(HashId(id), [&](uint32_t row) { return rows_[row].id == id; });
}

void Feeder::Drop(uint32_t row) {
  Row& node = rows_[row];
  messages_.Drop(row, node.place);
  index_.Erase(HashId(node.id), row, [&](uint32_t other) { return HashId(rows_[other].id); });
  node.state = State::kUnused;
  rows_.Remove(row);
}

void Feeder::ReleaseDependents(uint32_t row) {
  uint32_t edge = std::exchange(rows_[row].dependents, kNoEdge);
  while (edge != kNoEdge) {
    const Edge gone = edges_[edge];
    edges_.Remove(edge);
    edge = gone.next;
    if (--rows_[gone.row].unmet == 0) MakeReady(gone.row);
  }
}

// Makes the waiting node `row` ready.
void Feeder::MakeReady(uint32_t row) {
  --waiting_;
  rows_[row].state = State::kReady;
  ready_.push_back({.offset = rows_[row].place.offset, .row = row});
  std::ranges::push_heap(ready_, std::greater<>());
}

// All held nodes wait for each other: reports the nodes of one cycle.
Status Feeder::CycleError() {
  uint32_t row = 0;
  while (rows_[row].state != State::kWaiting) ++row;
  std::vector<uint64_t> path;
  std::unordered_map<uint64_t, size_t> place;
  while (place.emplace(rows_[row].id, path.size()).second) {
    path.push_back(rows_[row].id);
    ETUDE_ASSIGN_OR_RETURN(const NodeView node, View(row));
    (void)ReadNodeHead(node.message(), options_.dependencies, head_);
    for (const uint64_t id : head_.deps) {
      const uint32_t other = Find(id);
      if (other == IndexSet::kAbsent) continue;
      row = other;
      break;
    }
  }
  const size_t begin = place[rows_[row].id];
  const size_t length = path.size() - begin;
  std::string names;
  for (size_t i = 0; i < std::min(length, kCycleNodesNamed); ++i) {
    names += std::to_string(path[begin + i]) + " → ";
  }
  names += length > kCycleNodesNamed ? "…" : std::to_string(path[begin]);
  return BadInput(source_.name() + ": " + std::to_string(waiting_) +
                  " nodes can never run: found a cycle of " + std::to_string(length) +
                  " dependencies (" + names + ")");
}

std::vector<uint64_t> Feeder::Dependents(uint64_t id) const {
  std::vector<std::pair<uint64_t, uint64_t>> found;
  const uint32_t row = Find(id);
  if (row == IndexSet::kAbsent) return {};
  for (uint32_t edge = rows_[row].dependents; edge != kNoEdge; edge = edges_[edge].next) {
    const Row& node = rows_[edges_[edge].row];
    found.emplace_back(node.place.offset, node.id);
  }
  std::ranges::sort(found);
  const auto repeated = std::ranges::unique(found);
  found.erase(repeated.begin(), repeated.end());
  std::vector<uint64_t> ids;
  for (const auto& [offset, dependent] : found) ids.push_back(dependent);
  return ids;
}

FeederCounts Feeder::counts() const {
  return {.read = read_,
          .waiting = waiting_,
          .ready = ready_.size(),
          .in_flight = in_flight_,
          .finished = read_ - Held(),
          .missing = missing_,
          .most_held = most_held_};
}

size_t Feeder::memory_bytes() const {
  return rows_.memory_bytes() + edges_.memory_bytes() + index_.memory_bytes() +
         ready_.capacity() * sizeof(Ready) + messages_.memory_bytes() + finished_.memory_bytes() +
         (ids_ ? ids_->memory_bytes() : 0);
}

}  // namespace etude::chakra
