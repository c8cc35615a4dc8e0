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
  // How many waiting nodes are read ahead while others are in flight. It decides how far Next
  // looks for work, never whether a node is found.
  size_t window = 65'536;
  // Dependencies that hold a node up.
  DependencyKinds dependencies;
  // Whether a dependency on a node that the file does not have is an error. Otherwise it holds
  // nobody up and is counted and warned of.
  bool strict = false;
};

struct FeederCounts {
  uint64_t read = 0;       // nodes, so far
  uint64_t waiting = 0;    // … of them, for others
  uint64_t ready = 0;      // … free to be handed out
  uint64_t in_flight = 0;  // … handed out, not finished
  uint64_t finished = 0;
  uint64_t missing = 0;    // dependencies on nodes that the file does not have
  uint64_t most_held = 0;  // the most nodes that were waiting, ready or in flight at one time
};

// Hands the nodes of a Chakra trace to a simulator as their dependencies finish, for files far
// larger than memory (docs/feeder.md). Memory: 50 to 90 bytes for each node that waits, is ready or
// in flight, and 8 for each dependency waited for; a bit or two per node of the file; a fixed
// megabyte or two. For compressed input and pipes also the bytes of those nodes.
//
// Order: of the nodes that are free, the one that stands first in the file. A caller that finishes
// each node before it asks for the next gets the same order with any window, and whether the file
// is compressed or not. Not thread-safe.
//
// Errors: kBadInput for a damaged or cut file, with the byte, for an id that occurs twice, for
// cycles and exceeded limits; kIo for failed reads. They come when reading gets there; nodes before
// them have been handed out. After one, Next and Finish return it again.
class Feeder {
 public:
  // `path` is plain, gzip or zstd; "-" is standard input; or a rank of a job's folder
  // (job_folder.h), which is in memory as a whole.
  static Result<Feeder> Open(const std::string& path, const FeederOptions& options,
                             const RunContext& context);
  static Result<Feeder> FromMemory(const std::string& name, const std::string& bytes,
                                   const FeederOptions& options, const RunContext& context);

  // Hands out the next node, which is then in flight; valid until the next call of Next or Lookup.
  // Nothing: all that were read wait for nodes in flight, or done().
  Result<std::optional<NodeView>> Next();
  // A node that waits, is ready or in flight, likewise valid. kUsage for any other.
  Result<NodeView> Lookup(uint64_t id);
  // The node is done, and those that waited for it alone are free. kUsage, with no effect, unless
  // it is in flight; also errors of reading on.
  Status Finish(uint64_t id);
  // Every node of the file has finished.
  bool done() const { return ended_ && Held() == 0; }

  // Nodes read so far that wait for `id`, in the order of the file, each once.
  std::vector<uint64_t> Dependents(uint64_t id) const;
  // The bytes of the file's GlobalMetadata, once it was read; "" if it has none.
  const std::string& metadata() const { return metadata_; }
  FeederCounts counts() const;
  // What the nodes held and the sets of ids take; not the buffers of reading.
  size_t memory_bytes() const;

 private:
  using OpenSource = std::function<Result<ByteSource>()>;

  enum class State : uint8_t { kUnused, kUnread, kWaiting, kReady, kInFlight };

  // A node that is held or, kUnread, that held ones wait for.
  struct Row {
    uint64_t id = 0;
    HeldMessages::Place place;
    uint32_t unmet = 0;  // dependencies that are not finished
    uint32_t dependents = kNoEdge;
    State state = State::kUnused;
  };
  // A list of the rows that wait for a row.
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
  OpenSource open_again_;  // empty if the input can be read once only
  FeederOptions options_;
  RunContext context_;
  Frames frames_;
  std::string metadata_;
  bool has_metadata_ = false;
  std::string misplaced_;  // where the first metadata is that is not the first message
  NodeHead head_;
  bool ended_ = false;
  std::optional<Error> error_;

  Slab<Row> rows_;
  Slab<Edge> edges_;
  IndexSet index_;            // rows by id
  std::vector<Ready> ready_;  // a heap, the first of the file on top
  HeldMessages messages_;
  IdSet finished_;
  std::optional<IdSet> ids_;  // of all nodes of the file, once a dependency was not found

  uint64_t read_ = 0;
  uint64_t waiting_ = 0;
  uint64_t in_flight_ = 0;
  uint64_t unread_ = 0;  // rows of that state
  uint64_t missing_ = 0;
  uint64_t most_held_ = 0;
  std::string first_missing_;
};

}  // namespace etude::chakra
