#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/compat/stage/stage_graph.h"
#include "src/compat/stage/stage_model.h"

namespace etude::stage {

// The file of a pipeline stage's ranks. Groups and peers are inserted for each rank; the rest is
// made once.
class StageFile {
 public:
  // Messages get consecutive tags from `first_tag`; STAGE starts at a random one.
  StageFile(const TensorModel& model, const StageOptions& options, const StageGraph& graph,
            int64_t first_tag);

  uint64_t nodes() const { return nodes_; }
  // Appends the bytes of `rank`'s file; the rank must belong to this stage.
  void AppendRank(const RankGrid& grid, int64_t rank, std::string& out) const;

 private:
  // A message that lacks an attribute: `before` and a group number as text, or a rank.
  struct Hole {
    size_t at = 0;  // position in fixed_
    std::string before;
    GraphNode::Kind kind = GraphNode::Kind::kCompute;
    Symbol group = Symbol::kDp;
    int64_t peer_stage = 0;
  };

  std::string fixed_;
  std::vector<Hole> holes_;
  uint64_t nodes_ = 0;
};

// A job in the bytes of STAGE's files.
class StageJob {
 public:
  // Makes a job. kBadInput as for CheckStageOptions and MakeTensorModel.
  static Result<StageJob> Make(const StageOptions& options, int64_t first_tag);

  int64_t ranks() const { return grid_.ranks(); }
  uint64_t nodes() const;  // total over all ranks
  // Replaces `out` by the rank's file.
  void RankBytes(int64_t rank, std::string& out) const;
  // Returns remarks on parts of the job that follow STAGE but are probably unintended.
  const std::vector<std::string>& remarks() const { return remarks_; }
  // Returns the communicator groups by number.
  std::string GroupsJson() const;

 private:
  explicit StageJob(const TensorModel& model) : grid_(model) {}

  RankGrid grid_;
  std::vector<StageFile> stages_;
  std::vector<std::string> remarks_;
};

}  // namespace etude::stage
