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

// A node of the graph that the ranks of one pipeline stage run.
struct GraphNode {
  enum class Kind : uint8_t { kCompute, kCollectiveX1, kCollectiveX2, kSend, kRecv };
  Kind kind = Kind::kCompute;
  uint32_t tensor = 0;         // of the stage, that it makes, moves or brings in
  uint64_t id = 0;             // in no other stage
  Collective collective;       // kCollectiveX1, kCollectiveX2
  double size = 0;             // elements that are communicated
  int64_t peer_stage = 0;      // kSend, kRecv
  int64_t message = 0;         // kSend, kRecv: number of the message, the same on both sides
  std::vector<uint32_t> deps;  // nodes of the stage
};

// A tensor on a stage. A shadow stands for one that another stage sends.
struct StageTensor {
  uint32_t tensor = 0;  // of the model
  bool shadow = false;
  uint32_t x1 = kNoTensor;  // tensors of the stage
  uint32_t x2 = kNoTensor;
};

// What the ranks of one stage do: nodes in STAGE's order of a file, which is not one in which a
// node stands behind those that it waits for.
struct StageGraph {
  std::vector<StageTensor> tensors;
  std::vector<GraphNode> nodes;
};

// One graph for each stage of the pipeline.
Result<std::vector<StageGraph>> MakeStageGraphs(const TensorModel& model);

// How STAGE numbers ranks and groups: neighbours differ in dp, then tp, cp, ep, and stages are
// furthest apart.
class RankGrid {
 public:
  explicit RankGrid(const TensorModel& model);

  int64_t ranks() const { return stages_ * ranks_of_stage_; }
  int64_t stage(int64_t rank) const { return rank / ranks_of_stage_; }
  // The rank in the same place of another stage.
  int64_t RankIn(int64_t stage, int64_t rank) const {
    return stage * ranks_of_stage_ + rank % ranks_of_stage_;
  }
  // The number of the group in which `rank` communicates over `dimension`.
  int64_t Group(int64_t rank, Symbol dimension) const;
  // All groups, of one rank too.
  std::map<int64_t, std::vector<int64_t>> Groups() const;

 private:
  struct Axis {
    Symbol dimension;
    int64_t degree = 1;
    int64_t stride = 1;  // between ranks that are neighbours on it
    int64_t first = 1;   // group
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
