#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/base/container/csr.h"
#include "src/base/result.h"

namespace etude {

inline constexpr int64_t kMostNpus = int64_t{1} << 24;  // of a network

// One direction of a link.
struct NetworkLink {
  uint32_t from = 0;  // node
  uint32_t to = 0;
  uint32_t dim = 0;      // dimension of the network
  double bandwidth = 0;  // bytes per ns, above 0
  double latency = 0;    // ns
  double share = 1;      // of the bandwidth that a slow link has left; 0: the link has failed
  uint32_t length = 1;   // for the choice of paths: the shortest ones are taken

  double rate() const { return bandwidth * share; }
};

// A dimension of a network, for output.
struct NetworkDimInfo {
  std::string topology;  // "Ring(8)"
  int64_t npus = 1;
  bool is_ring = false;             // of two ways of one length, NPUs at even places go ahead
  std::optional<double> bandwidth;  // bytes per ns; nullopt: links differ
  std::optional<double> latency;    // ns
};

// A network as a graph. The nodes 0, 1 … are the NPUs in the order of ranks; the others are
// switches and other devices. The NPUs have a coordinate in each dimension. A message crosses the
// dimensions one after the other, lowest first, each on a shortest path: over the fewest links, and
// of such paths over the one whose smallest bandwidth is largest. Slow links are not avoided,
// failed ones are. Immutable after Finish().
class NetworkGraph {
 public:
  // NPUs of dimension `i` that differ in this coordinate only are a line.
  explicit NetworkGraph(std::vector<NetworkDimInfo> dims);

  // Adds a device that is no NPU. Returns its node. Names must be unique.
  uint32_t AddDevice(std::string name);
  // Gives an NPU another name, for Find().
  void NameNpu(uint32_t npu, std::string name) { node_of_.emplace(std::move(name), npu); }
  // Adds a link in one direction, or in both.
  void AddOneWay(const NetworkLink& link) { links_.push_back(link); }
  void AddLink(NetworkLink link);

  // Applies "0-1:0.5+2us", "0-leaf1:0" or "3@0:0.5": a share of the bandwidth (0: the links have
  // failed) and additional latency, for the links between two nodes, or of a node in a dimension.
  // kBadInput with the text.
  Status Slow(std::string_view text);
  // Links of a dimension with one bandwidth, without what slow links have lost, and one latency.
  struct LinkKind {
    uint32_t dim = 0;
    double bandwidth = 0;  // bytes per ns
    double latency = 0;    // ns

    friend auto operator<=>(const LinkKind&, const LinkKind&) = default;
  };
  // Returns the kinds of a dimension's links, fastest last.
  std::vector<LinkKind> KindsOf(size_t dim) const;
  // Multiplies the bandwidth and the latency of all links of a kind, which keeps all routes.
  void Scale(const LinkKind& kind, double bandwidth, double latency);
  // Completes the network. kBadInput, prefixed with `where`, if an NPU cannot reach another one of
  // its line.
  Status Finish(const std::string& where);

  int64_t npus() const { return npus_; }
  uint32_t nodes() const { return static_cast<uint32_t>(npus_) + devices(); }
  uint32_t devices() const { return static_cast<uint32_t>(device_names_.size()); }
  const std::vector<NetworkDimInfo>& dims() const { return dims_; }
  const std::vector<NetworkLink>& links() const { return links_; }
  // Returns the place of a rank along a dimension.
  int64_t Coordinate(int64_t rank, size_t dim) const {
    return rank / strides_[dim] % dims_[dim].npus;
  }
  int64_t Stride(size_t dim) const { return strides_[dim]; }
  // Returns "3" for an NPU, and the name of another device.
  std::string NameOf(uint32_t node) const;
  std::optional<uint32_t> Find(std::string_view name) const;
  // Descriptions of the slow and failed links, in the order of the calls.
  const std::vector<std::string>& faults() const { return faults_; }

  // Returns the working links that leave a node in a dimension, in the order of their other ends.
  std::span<const uint32_t> LinksFrom(uint32_t node, size_t dim) const {
    return from_[PlaceOf(node, dim)];
  }
  // Returns the working links that enter a node in a dimension.
  std::span<const uint32_t> LinksTo(uint32_t node, size_t dim) const {
    return to_[PlaceOf(node, dim)];
  }
  // Returns the number of a node among those of its line, and the number of nodes of the line.
  uint32_t PlaceInLine(uint32_t node, size_t dim) const { return place_[PlaceOf(node, dim)]; }
  uint32_t LineSize(uint32_t node, size_t dim) const { return size_[PlaceOf(node, dim)]; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  size_t PlaceOf(uint32_t node, size_t dim) const { return size_t{node} * dims_.size() + dim; }
  Status CheckLine(uint32_t first, size_t dim, const std::string& where);
  std::string FailedText() const;

  int64_t npus_ = 1;
  std::vector<NetworkDimInfo> dims_;
  std::vector<int64_t> strides_;
  std::vector<NetworkLink> links_;
  std::vector<std::string> device_names_;
  std::unordered_map<std::string, uint32_t> node_of_;
  std::vector<std::string> faults_;
  // By node and dimension.
  Csr<uint32_t> from_;
  Csr<uint32_t> to_;
  std::vector<uint32_t> place_;
  std::vector<uint32_t> size_;
};

// Cost of a path without other messages.
struct PathCost {
  double latency = 0;  // ns, of all links
  double rate = 0;     // bytes per ns, the smallest one
};
PathCost CostOfPath(const NetworkGraph& graph, std::span<const uint32_t> links);

// Finds paths in a network, which must outlive it. Keeps some of what it has found; not
// thread-safe.
class NetworkRoutes {
 public:
  explicit NetworkRoutes(const NetworkGraph& graph) : graph_(graph), steps_(graph.dims().size()) {}

  // Appends the links of the path from an NPU to another one. `load`: returns the number of
  // messages on a link; null: paths are hashed.
  using Load = std::function<uint64_t(uint32_t link)>;
  void Find(int64_t from, int64_t to, const Load& load, std::vector<uint32_t>& links);

 private:
  // Of the shortest path to a target.
  struct Step {
    uint32_t length = 0;
    float width = 0;  // smallest bandwidth, bytes per ns
  };
  using Steps = std::vector<Step>;                           // by place in the target's line
  static constexpr size_t kMostKeptSteps = size_t{1} << 25;  // 256 MB

  const Steps& StepsTo(uint32_t target, size_t dim);
  void FindInDim(uint32_t from, uint32_t to, size_t dim, uint64_t hash, const Load& load,
                 std::vector<uint32_t>& links);
  uint32_t Choose(std::span<const uint32_t> some, uint64_t hash, const Load& load) const;

  const NetworkGraph& graph_;
  std::vector<std::unordered_map<uint32_t, Steps>> steps_;  // by dimension and target
  size_t kept_steps_ = 0;                                   // of all targets
  std::vector<uint32_t> choices_;
};

}  // namespace etude
