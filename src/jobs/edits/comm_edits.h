#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/base/result.h"
#include "src/jobs/edits/applied_edit.h"
#include "src/trace/trace.h"
#include "src/transform/edit/gradient_reduction.h"
#include "src/transform/runnable/all_reduce_form.h"
#include "src/transform/runnable/gradient_communication.h"
#include "src/transform/runnable/rank_order.h"
#include "src/transform/runnable/runnable_rank.h"

namespace etude {

// Options of edits of a job's communication, as texts of the command line; "": as recorded.
struct CommEditOptions {
  std::string overlap;     // "on" or "off": gradients are reduced beside the pass, or after it
  std::string compress;    // GradientCompression
  std::string rank_order;  // RankOrder
  std::string all_reduce;  // AllReduceForm

  bool empty() const {
    return overlap.empty() && compress.empty() && rank_order.empty() && all_reduce.empty();
  }
  friend bool operator==(const CommEditOptions&, const CommEditOptions&) = default;
};

// Edits of a job's communication, in the order of the functions. Not thread-safe.
class CommEdits {
 public:
  CommEdits() = default;  // without edits
  // kUsage for options of the wrong form.
  static Result<CommEdits> Make(const CommEditOptions& options);

  // Requests other buckets for gradients of a job that reduces them; `edit`: as given.
  void SetBuckets(const BucketSizes& sizes, std::string edit);

  // Divides the gradients of a rank made of `trace` into other buckets. kBadInput, with the reason,
  // for jobs that do not support this.
  Status EditBuckets(const Trace& trace, RunnableRank& rank);
  // Edits the overlap and the bytes of a rank's communication of gradients. Errors as above.
  Status EditRank(const Trace& trace, RunnableRank& rank);
  // Edits the order and the all-reduces of all ranks, which must have their numbers. Errors as
  // above.
  Status EditRanks(std::vector<RunnableRank>& ranks, int64_t world_size);

  // Returns whether ranks without a recording must be present in EditRanks.
  bool needs_all_ranks() const { return order_ || (form_ && form_->neighbours != 0); }
  // Return the edits in the order in which they were made: of buckets, of communication of single
  // ranks, and of all ranks together.
  std::vector<AppliedEdit> AppliedToBuckets() const;
  std::vector<AppliedEdit> Applied() const;
  std::vector<AppliedEdit> AppliedToAll() const;

 private:
  CommEditOptions options_;
  std::optional<BucketSizes> sizes_;
  std::optional<GradientCompression> compression_;
  std::optional<RankOrder> order_;
  std::optional<AllReduceForm> form_;
  AppliedEdit buckets_;
  AppliedEdit overlap_;
  AppliedEdit compressed_;
  AppliedEdit ordered_;
  AppliedEdit replaced_;
};

// Returns the buckets of each backward pass for changes.json.
nlohmann::ordered_json BucketsJson(const std::vector<std::vector<GradientBucket>>& passes);

}  // namespace etude
