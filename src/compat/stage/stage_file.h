#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/compat/stage/stage_graph.h"
#include "src/compat/stage/stage_model.h"

namespace etude::stage {

// The file that all ranks of a pipeline stage have, but for groups and peers: these are put in for
// each rank, and the rest is made once.
class StageFile {
 public:
  // Messages get the tags `first_tag`, `first_tag` + 1 …; STAGE begins at a random one.
  StageFile(const TensorModel& model, const StageOptions& options, const StageGraph& graph,
            int64_t first_tag);

  uint64_t nodes() const { return nodes_; }
  // Appends the bytes of `rank`'s file, which is of this stage.
  void AppendRank(const RankGrid& grid, int64_t rank, std::string& out) const;

 private:
  // A message of which an attribute is missing: `name` with the number of a group as text, or of a
  // rank.
  struct Hole {
    size_t at = 0;  // in fixed_
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
  // kBadInput as CheckStageOptions and MakeTensorModel.
  static Result<StageJob> Make(const StageOptions& options, int64_t first_tag);

  int64_t ranks() const { return grid_.ranks(); }
  uint64_t nodes() const;  // of all ranks
  // Replaces `out`.
  void RankBytes(int64_t rank, std::string& out) const;
  // What of the job is as STAGE has it but hardly as meant.
  const std::vector<std::string>& remarks() const { return remarks_; }
  // Communicator groups by number.
  std::string GroupsJson() const;

 private:
  explicit StageJob(const TensorModel& model) : grid_(model) {}

  RankGrid grid_;
  std::vector<StageFile> stages_;
  std::vector<std::string> remarks_;
};

}  // namespace etude::stage
