#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/base/container/id_set.h"
#include "src/base/container/index_set.h"
#include "src/base/container/slab.h"
#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/formats/chakra/chakra_frames.h"
#include "src/formats/chakra/chakra_node_view.h"
#include "src/formats/chakra/held_messages.h"
#include "src/formats/io/byte_source.h"

namespace etude::chakra {

struct FeederOptions {
  // Number of waiting nodes to read ahead while others are in flight. Determines how far Next looks
  // for work, but not whether a node is found.
  size_t window = 65'536;
  // Dependencies to respect.
  DependencyKinds dependencies;
  // True if a dependency on a missing node is an error. Otherwise it is ignored, counted and
  // reported as a warning.
  bool strict = false;
};

struct FeederCounts {
  uint64_t read = 0;       // nodes read so far
  uint64_t waiting = 0;    // … of them, waiting for others
  uint64_t ready = 0;      // … ready to be handed out
  uint64_t in_flight = 0;  // … handed out, not finished
  uint64_t finished = 0;
  uint64_t missing = 0;    // dependencies on nodes missing from the file
  uint64_t most_held = 0;  // max number of nodes waiting, ready or in flight at one time
};

// Hands the nodes of a Chakra trace to a simulator as their dependencies finish, for files far
// larger than memory (docs/feeder.md). Memory: 50 to 90 bytes per node that is waiting, ready or in
// flight, 8 per pending dependency, a bit or two per node of the file, and a fixed megabyte or two.
// For compressed input and pipes also the bytes of those nodes.
//
// Order: of the ready nodes, the first in the file. A caller that finishes each node before it asks
// for the next gets the same order with any window, for compressed and plain files. Not
// thread-safe.
//
// Errors: kBadInput with the byte offset for a damaged or truncated file, for a duplicate id, for
// cycles and exceeded limits; kIo for failed reads. An error is reported when reading reaches it,
// after the nodes before it. Afterwards, Next and Finish return it again.
class Feeder {
 public:
  // Opens a plain, gzip or zstd file, standard input ("-"), or a rank of a job folder
  // (job_folder.h), which is held in memory as a whole.
  static Result<Feeder> Open(const std::string& path, const FeederOptions& options,
                             const RunContext& context);
  static Result<Feeder> FromMemory(const std::string& name, const std::string& bytes,
                                   const FeederOptions& options, const RunContext& context);

  // Returns the next node, which is then in flight; valid until the next call of Next or Lookup.
  // Returns nothing if all nodes read so far wait for nodes in flight, or if done().
  Result<std::optional<NodeView>> Next();
  // Returns a node that is waiting, ready or in flight, valid as for Next. kUsage for any other.
  Result<NodeView> Lookup(uint64_t id);
  // Marks the node as finished and releases the nodes that waited for it alone. kUsage, without
  // effect, unless it is in flight; also returns errors of reading ahead.
  Status Finish(uint64_t id);
  // Returns true if every node of the file has finished.
  bool done() const { return ended_ && Held() == 0; }

  // Returns the nodes read so far that wait for `id`, in file order, each once.
  std::vector<uint64_t> Dependents(uint64_t id) const;
  // Returns the bytes of the file's GlobalMetadata once read; "" if it has none.
  const std::string& metadata() const { return metadata_; }
  FeederCounts counts() const;
  // Returns the memory of held nodes and sets of ids, without read buffers.
  size_t memory_bytes() const;

 private:
  using OpenSource = std::function<Result<ByteSource>()>;

  enum class State : uint8_t { kUnused, kUnread, kWaiting, kReady, kInFlight };

  // A node that is held or, if kUnread, that held ones wait for.
  struct Row {
    uint64_t id = 0;
    HeldMessages::Place place;
    uint32_t unmet = 0;  // unfinished dependencies
    uint32_t dependents = kNoEdge;
    State state = State::kUnused;
  };
  // Linked list of the rows that wait for a row.
  struct Edge {
    uint32_t row = 0;
    uint32_t next = kNoEdge;
  };
  struct Ready {
    uint64_t offset = 0;  // in the file: the order
    uint32_t row = 0;

    friend bool operator>(const Ready& a, const Ready& b) { return a.offset > b.offset; }
  };
  static constexpr uint32_t kNoEdge = UINT32_MAX;

  Feeder(ByteSource source, OpenSource open_again, const FeederOptions& options,
         const RunContext& context);

  Status ReadOn();
  Status ReadMessage();
  Status End();
  Status TakeMetadata(std::string_view message);
  Status TakeNode(std::string_view message);
  Status WaitFor(uint32_t row, uint64_t id);
  Status CountMissing(uint64_t node, uint64_t id);
  Status ReleaseUnread();
  Status FindIds();
  Result<uint32_t> AddRow(uint64_t id);
  uint32_t Find(uint64_t id) const;
  void Drop(uint32_t row);
  void ReleaseDependents(uint32_t row);
  void MakeReady(uint32_t row);
  uint64_t Held() const { return waiting_ + ready_.size() + in_flight_; }
  Result<NodeView> View(uint32_t row);
  Status CycleError();
  Status NotInFlight(uint64_t id, uint32_t row) const;

  ByteSource source_;
  OpenSource open_again_;  // empty if the input can be read only once
  FeederOptions options_;
  RunContext context_;
  Frames frames_;
  std::string metadata_;
  bool has_metadata_ = false;
  std::string misplaced_;  // position of the first metadata that is not the first message
  NodeHead head_;
  bool ended_ = false;
  std::optional<Error> error_;

  Slab<Row> rows_;
  Slab<Edge> edges_;
  IndexSet index_;            // rows by id
  std::vector<Ready> ready_;  // heap with the first in file order on top
  HeldMessages messages_;
  IdSet finished_;
  std::optional<IdSet> ids_;  // all ids of the file, once a dependency was not found

  uint64_t read_ = 0;
  uint64_t waiting_ = 0;
  uint64_t in_flight_ = 0;
  uint64_t unread_ = 0;  // number of rows in state kUnread
  uint64_t missing_ = 0;
  uint64_t most_held_ = 0;
  std::string first_missing_;
};

}  // namespace etude::chakra
