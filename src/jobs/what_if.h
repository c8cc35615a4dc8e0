#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/formats/json/json_document.h"
#include "src/jobs/edited_memory.h"
#include "src/jobs/edits/applied_edit.h"
#include "src/jobs/edits/comm_edits.h"
#include "src/jobs/edits/compared_steps.h"
#include "src/jobs/edits/device_edits.h"
#include "src/jobs/edits/dimension_edit.h"
#include "src/jobs/edits/pipeline_edit.h"
#include "src/jobs/edits/tensor_edit.h"
#include "src/report/tables/measured_table.h"
#include "src/trace/trace.h"
#include "src/transform/edit/gradient_reduction.h"
#include "src/transform/edit/operator_times.h"
#include "src/transform/edit/other_size.h"
#include "src/transform/edit/time_scale.h"
#include "src/transform/operators/operator_table.h"
#include "src/transform/runnable/runnable_rank.h"

// Edits of recorded jobs: docs/models/what_if.md.
namespace etude {

// The file next to classes.json with the edits of the job (docs/models/what_if.md).
inline constexpr std::string_view kChangesFile = "changes.json";

// Content of that file.
struct Changes {
  std::vector<std::string> sources;  // paths of the recorded job
  uint64_t ranks = 0;                // of the edited job
  bool times_known = false;          // whether all times of the recorded job are known
  // Step of the recorded job, as recorded and without recording; nullopt: unknown.
  std::optional<Nanos> recorded_step;
  std::optional<Nanos> program_step;
  double core_share = 1;  // SimWorkload::core_share
  std::vector<AppliedEdit> edits;
  EditedMemory memory;
  std::optional<DeviceCapacity> capacity;  // that the tensors must fit into, if asked
  std::vector<std::string> notes;  // omissions and changes in the conversion of the recorded job
};
nlohmann::ordered_json ToJson(const Changes& changes);
// Writes the file into the folder of the edited job.
Status WriteChanges(const Changes& changes, const std::string& folder);
// Facts about the recorded job, in the folder of the edited one.
struct EditedFrom {
  bool times_known = false;  // all times are known, so that a time of 0 is a short one
  std::optional<Nanos> recorded_step;
  std::optional<Nanos> program_step;
  double core_share = 1;
  std::vector<EditLine> edits;
  EditedMemory memory;
};
// Returns the measured step before the edits, as a row of MeasuredTable.
ComparedStep BeforeEdit(const EditedFrom& from);
// Reads the edits of a document, whose key is "edits".
std::vector<EditLine> ReadEditLines(const JsonMembers& document);
// Returns nullopt if the job in a folder is no edited one; kBadInput for a damaged file.
Result<std::optional<EditedFrom>> ReadEditedFrom(const std::string& folder,
                                                 const RunContext& context);

// Options of an edited job, as texts of the command line.
struct WhatIfOptions {
  std::string second;         // another recording of the program, for `sizes`
  std::string sizes;          // a size in both recordings, and the wanted one: "8,16,64"
  DimensionSizes dimensions;  // sizes by one recording
  std::optional<int64_t> layers;
  PipelineOptions pipeline;
  // Ranks; with a pipeline, replicas of each stage, and with tensor parallelism of each rank.
  std::optional<int64_t> data_parallel;
  std::optional<int64_t> tensor_parallel;  // ranks that divide the weights
  std::string bucket;             // size of gradient buckets; "": PyTorch's, or as recorded
  std::string first_bucket;       // "": as PyTorch chooses it
  std::string scale;              // factors for times: TimeScale
  std::vector<std::string> drop;  // operators by name, whose time becomes 0
  // Table of measured operators: for those with other sizes, or unless resizes() for all.
  std::string operators;
  std::string recorded_operators;  // table of the machine of the recording, for `operators`
  bool measure = false;            // measure operators with other sizes on this machine
  CommEditOptions communication;
  DeviceEditOptions device;

  bool empty() const {
    return second.empty() && sizes.empty() && dimensions.empty() && !layers && pipeline.empty() &&
           !data_parallel && !tensor_parallel && bucket.empty() && first_bucket.empty() &&
           scale.empty() && drop.empty() && operators.empty() && recorded_operators.empty() &&
           !measure && communication.empty() && device.empty();
  }
  // Returns whether operators get other sizes, whose times tables may contain.
  bool resizes() const { return !sizes.empty() || !dimensions.empty() || tensor_parallel; }
  // Returns whether the edited job has ranks that do the same as a recorded one.
  bool adds_ranks() const { return data_parallel || tensor_parallel; }
  friend bool operator==(const WhatIfOptions&, const WhatIfOptions&) = default;
};

// Tables for the times of operators: those wanted, and those of the recorded operators.
struct MeasuredOperators {
  OperatorTable times;
  OperatorTable recorded;
  std::map<std::string, std::string> failures;  // why operators could not be measured, by name
};

// Returns measured times of the operators of rank number `rank` of the job, before and after an
// edit, of which `keys` are wanted.
using OperatorMeasurer = std::function<Result<MeasuredOperators>(
    size_t rank, const Trace& recorded, const Trace& edited, const std::set<OperatorKey>& keys)>;

// Edits the recorded ranks of a job on their way to a simulator. Not thread-safe.
class WhatIf {
 public:
  // kUsage for options of the wrong form.
  static Result<WhatIf> Make(const WhatIfOptions& options);

  // Takes times of operators from tables, or from `measure`, which replays them.
  void UseOperators(MeasuredOperators tables) { tables_ = std::move(tables); }
  void UseOperators(OperatorMeasurer measure) { measure_ = std::move(measure); }

  // Makes the edits find the memory of the edited job, for PeaksAfter.
  void FindMemory() { finds_memory_ = true; }

  // Edits the recorded traces before their conversion: changes a size by those of the second
  // recording (`second`, empty without one) or sizes by one recording, then the number of layers,
  // divides weights among tensor-parallel ranks, or the layers into stages of a pipeline, and adds
  // the reduction of gradients to a job of one rank. kBadInput, with the reason, for edits that the
  // job does not support.
  Status EditTraces(std::vector<Trace>& traces, const std::vector<Trace>& second,
                    const Limits& limits);
  // Edits a rank made of the edited `trace`: its communication, group sizes and times. Errors as in
  // EditTraces.
  Status EditRank(const Trace& trace, RunnableRank& rank);
  // Edits all ranks of the edited job together, which must have their numbers. `fills`: ranks
  // without a trace do the same as the nearest one with a trace. Errors as in EditTraces.
  Status EditRanks(std::vector<RunnableRank>& ranks, int64_t world_size, bool fills);
  // Returns whether EditRanks makes ranks without a trace, which then may differ.
  bool needs_all_ranks() const {
    return communication_.needs_all_ranks() || pipeline_ || has_replicated_groups();
  }
  // Returns the ranks of the edited job of `recorded` ranks.
  int64_t RanksOf(int64_t recorded) const {
    if (tensor_.divides()) return options_.data_parallel.value_or(1) * tensor_.ranks();
    return options_.data_parallel.value_or(recorded) * pipeline_.stages();
  }
  // Returns the peak memory of the tensors of the edited job after EditRank; empty if it is
  // unknown, and without FindMemory.
  TensorPeaks PeaksAfter() const;
  // Returns the edits after all ranks were edited. kBadInput for an operator to be dropped that no
  // rank has.
  Result<std::vector<AppliedEdit>> Applied() const;

 private:
  WhatIf() = default;
  Status EditStep(std::vector<Trace>& traces, const std::vector<Trace>& second,
                  const Limits& limits);
  Status EditSizes(std::vector<Trace>& traces, const std::vector<Trace>& second,
                   const Limits& limits);
  // Returns the edited trace of rank number `rank` with times of the tables for operators that the
  // edit has changed, or for all if both traces are the same one; nullopt without tables.
  Result<std::optional<Trace>> TakeTimes(size_t rank, const Trace& recorded, const Trace& edited,
                                         const std::vector<bool>& is_estimated,
                                         const Limits& limits);
  Status TakeAllTimes(std::vector<Trace>& traces, const Limits& limits);
  void DescribeTimes(AppliedEdit& edit) const;
  Status EditDimensions(std::vector<Trace>& traces, const Limits& limits);
  Status EditLayers(std::vector<Trace>& traces, const Limits& limits);
  Status DivideIntoStages(const std::vector<Trace>& traces);
  Status DivideWeights(std::vector<Trace>& traces, const Limits& limits);
  Status AddReplicas(std::vector<Trace>& traces, bool communicates, const Limits& limits);
  // Returns whether tensor-parallel ranks have data-parallel replicas.
  bool has_replicated_groups() const {
    return tensor_.divides() && options_.data_parallel.value_or(1) > 1;
  }
  Status ResizeGroups(const Trace& trace, RunnableRank& rank);
  void ChangeTimes(RunnableRank& rank);

  WhatIfOptions options_;
  BucketSizes buckets_;
  PipelineEdit pipeline_;
  TensorEdit tensor_;
  CommEdits communication_;
  DeviceEdits device_;
  TimeScale scale_;
  bool is_reduction_added_ = false;
  bool finds_memory_ = false;
  std::optional<TensorPeaks> peaks_;  // after EditTraces, without a pipeline; nullopt: unknown
  size_t recorded_ = 0;               // ranks
  std::optional<SizePoints> points_;
  AppliedEdit sizes_;
  std::optional<MeasuredOperators> tables_;
  OperatorMeasurer measure_;
  OperatorTimesEdit taken_;  // counts over all ranks, without a trace
  std::map<std::string, std::string> failures_;
  AppliedEdit dimensions_;
  AppliedEdit operators_;
  AppliedEdit layers_;
  AppliedEdit parallel_;
  AppliedEdit scaled_;
  std::vector<AppliedEdit> dropped_;  // by option
};

}  // namespace etude
