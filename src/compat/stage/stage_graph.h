#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/base/result.h"
#include "src/compat/stage/stage_model.h"

namespace etude::stage {

// A node of the graph of a pipeline stage's ranks.
struct GraphNode {
  enum class Kind : uint8_t { kCompute, kCollectiveX1, kCollectiveX2, kSend, kRecv };
  Kind kind = Kind::kCompute;
  uint32_t tensor = 0;         // tensor of the stage that it makes, moves or receives
  uint64_t id = 0;             // unique across stages
  Collective collective;       // kCollectiveX1, kCollectiveX2
  double size = 0;             // number of elements communicated
  int64_t peer_stage = 0;      // kSend, kRecv
  int64_t message = 0;         // kSend, kRecv: message number, equal on both sides
  std::vector<uint32_t> deps;  // nodes of the stage
};

// A tensor on a stage. A shadow represents a tensor sent by another stage.
struct StageTensor {
  uint32_t tensor = 0;  // index in the model
  bool shadow = false;
  uint32_t x1 = kNoTensor;  // index in the stage
  uint32_t x2 = kNoTensor;
};

// Program of a stage's ranks. Nodes are in STAGE's file order, which is not topological.
struct StageGraph {
  std::vector<StageTensor> tensors;
  std::vector<GraphNode> nodes;
};

// Makes one graph per pipeline stage.
Result<std::vector<StageGraph>> MakeStageGraphs(const TensorModel& model);

// STAGE's numbering of ranks and groups: dp varies fastest, then tp, cp and ep; pipeline stages
// vary slowest.
class RankGrid {
 public:
  explicit RankGrid(const TensorModel& model);

  int64_t ranks() const { return stages_ * ranks_of_stage_; }
  int64_t stage(int64_t rank) const { return rank / ranks_of_stage_; }
  // Returns the rank at the same position of another stage.
  int64_t RankIn(int64_t stage, int64_t rank) const {
    return stage * ranks_of_stage_ + rank % ranks_of_stage_;
  }
  // Returns the number of the group in which `rank` communicates over `dimension`.
  int64_t Group(int64_t rank, Symbol dimension) const;
  // Returns all groups, including groups of one rank.
  std::map<int64_t, std::vector<int64_t>> Groups() const;

 private:
  struct Axis {
    Symbol dimension;
    int64_t degree = 1;
    int64_t stride = 1;  // between neighbouring ranks
    int64_t first = 1;   // first group number
  };

  int64_t Coordinate(int64_t rank, const Axis& axis) const {
    return rank % ranks_of_stage_ / axis.stride % axis.degree;
  }
  int64_t GroupOn(int64_t rank, const Axis& axis) const;

  std::vector<Axis> axes_;
  int64_t stages_ = 1;
  int64_t ranks_of_stage_ = 1;
};

}  // namespace etude::stage
