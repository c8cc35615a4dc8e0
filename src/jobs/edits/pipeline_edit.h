#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/jobs/edited_memory.h"
#include "src/jobs/edits/applied_edit.h"
#include "src/synth/job/pipeline_schedule.h"
#include "src/trace/trace.h"
#include "src/transform/edit/copy_rate.h"
#include "src/transform/edit/gradient_reduction.h"
#include "src/transform/layers/stage_split.h"
#include "src/transform/runnable/runnable_rank.h"

namespace etude {

// Options of pipeline parallelism for a job of one rank, with the meanings of `etude generate llm`.
struct PipelineOptions {
  std::optional<int64_t> stages;
  std::optional<int64_t> micro_batches;  // nullopt: 1
  std::string schedule;                  // "gpipe" or "1f1b"; "": 1f1b

  bool empty() const { return !stages && !micro_batches && schedule.empty(); }
  friend bool operator==(const PipelineOptions&, const PipelineOptions&) = default;
};

// Turns a step of one rank into one of a pipeline, whose stages have replicas. The recorded batch
// becomes one micro-batch. Not thread-safe.
class PipelineEdit {
 public:
  PipelineEdit() = default;  // without an edit
  // kUsage for options of the wrong form.
  static Result<PipelineEdit> Make(const PipelineOptions& options);

  explicit operator bool() const { return is_wanted_; }
  int64_t stages() const { return plan_.stages; }

  // Makes EditRank find the memory of the stages.
  void FindMemory() { finds_memory_ = true; }
  // Returns the peak memory of the tensors of the largest stage; nullopt: unknown.
  std::optional<TensorPeaks> peaks() const;

  // Divides the recorded step into stages, of `layers` layers if given. `replicas` of each stage
  // reduce their gradients in buckets of `sizes`. kBadInput, with the reason, for jobs that do not
  // support this.
  Status Divide(const Trace& trace, std::optional<int64_t> layers, int64_t replicas,
                const BucketSizes& sizes);
  // Makes the programs of the stages of `rank`, which was made of the same trace.
  Status EditRank(const Trace& trace, RunnableRank& rank);
  // Returns the ranks of the pipeline. Rank = replica + replicas · stage, as in generated jobs.
  std::vector<RunnableRank> TakeRanks();

  // Return the edit, and those of --layers and --dp if they were given, after EditRank.
  AppliedEdit Applied() const;
  AppliedEdit AppliedToLayers() const;
  AppliedEdit AppliedToReplicas(std::string edit) const;

 private:
  bool is_wanted_ = false;
  bool finds_memory_ = false;
  std::string edit_;  // as given
  std::string schedule_;
  PipelinePlan plan_;
  std::optional<int64_t> layers_;
  int64_t replicas_ = 1;
  BucketSizes sizes_;
  StageSplit split_;
  std::optional<CopyRate> rate_;      // of additions and copies of gradients; nullopt: unknown
  std::vector<RunnableRank> stages_;  // the first replica of each, with stages as ranks
  std::vector<std::vector<GradientBucket>> buckets_;  // by stage
  std::optional<std::vector<TensorPeaks>> memory_;    // by stage
  uint64_t messages_ = 0;                             // sends of the first replicas
  uint64_t additions_ = 0;  // of gradients to those of earlier micro-batches, likewise
  uint64_t copies_ = 0;     // between gradients and buckets, likewise
  uint64_t lacking_ = 0;    // additions that are left out
};

}  // namespace etude
