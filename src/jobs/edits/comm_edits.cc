#include "src/jobs/edits/comm_edits.h"

#include <utility>

#include <fmt/format.h>

#include "src/base/text/format_count.h"
#include "src/base/text/quantity.h"
#include "src/report/text/format.h"
#include "src/transform/runnable/gradient_communication.h"

namespace etude {

using Json = nlohmann::ordered_json;

Result<CommEdits> CommEdits::Make(const CommEditOptions& options) {
  CommEdits made;
  made.options_ = options;
  if (!options.overlap.empty() && options.overlap != "on" && options.overlap != "off") {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("--overlap: found '{}', expected on or off", options.overlap));
  }
  made.overlap_ = {.edit = "--overlap " + options.overlap, .certainty = Certainty::kExact};
  if (!options.compress.empty()) {
    ETUDE_ASSIGN_OR_RETURN(made.compression_, GradientCompression::Parse(options.compress));
  }
  made.compressed_ = {.edit = "--compress " + options.compress, .certainty = Certainty::kModelled};
  if (!options.rank_order.empty()) {
    ETUDE_ASSIGN_OR_RETURN(made.order_, RankOrder::Parse(options.rank_order));
  }
  made.ordered_ = {.edit = "--rank-order " + options.rank_order, .certainty = Certainty::kExact};
  if (!options.all_reduce.empty()) {
    ETUDE_ASSIGN_OR_RETURN(made.form_, AllReduceForm::Parse(options.all_reduce));
  }
  made.replaced_ = {.edit = "--all-reduce " + options.all_reduce, .certainty = Certainty::kExact};
  return made;
}

void CommEdits::SetBuckets(const BucketSizes& sizes, std::string edit) {
  sizes_ = sizes;
  buckets_ = {.edit = std::move(edit), .certainty = Certainty::kExact};
}

Status CommEdits::EditBuckets(const Trace& trace, RunnableRank& rank) {
  if (!sizes_) return {};
  const Result<Rebucketing> changed = Rebucket(trace, *sizes_, rank);
  if (!changed) return RefusedEdit("--bucket", changed.error());
  if (changed->passes.empty()) {
    if (buckets_.nodes == 0) {
      buckets_.text = "as recorded: all-reduces of gradients have these buckets already";
    }
    return {};
  }
  uint64_t count = 0;
  int64_t bytes = 0;
  for (const std::vector<GradientBucket>& pass : changed->passes) {
    count += pass.size();
    for (const GradientBucket& bucket : pass) bytes += bucket.bytes.count;
  }
  buckets_.nodes += count;
  buckets_.details = {{"buckets", BucketsJson(changed->passes)}, {"recorded", changed->recorded}};
  buckets_.text = fmt::format(
      "{} of gradients instead of {}, {} in all, as DistributedDataParallel makes them after its "
      "first step; times of copies between gradients and buckets stay",
      FormatCount(count, "all-reduce"), FormatCount(changed->recorded), FormatBytes(Bytes{bytes}));
  return {};
}

Status CommEdits::EditRank(const Trace& trace, RunnableRank& rank) {
  if (!options_.overlap.empty()) {
    const bool is_on = options_.overlap == "on";
    const Result<uint64_t> changed =
        is_on ? RunBesideBackward(trace, rank) : WaitForBackward(trace, rank);
    if (!changed) return RefusedEdit("--overlap", changed.error());
    overlap_.nodes += *changed;
    overlap_.text =
        overlap_.nodes == 0
            ? fmt::format("as recorded: reductions of gradients {} the backward pass",
                          is_on ? "run beside" : "follow")
            : fmt::format("{} of gradients over all recorded ranks, which begin when {}",
                          FormatCount(overlap_.nodes, "collective"),
                          is_on ? "these have arrived" : "their backward pass has ended");
  }
  if (compression_) {
    const Result<uint64_t> changed = CompressGradients(trace, *compression_, rank);
    if (!changed) return RefusedEdit("--compress", changed.error());
    compressed_.nodes += *changed;
    const auto rate = compression_->bytes_per_second;
    compressed_.text =
        fmt::format("{} of gradients over all recorded ranks, with 1/{} of their bytes; {}",
                    FormatCount(compressed_.nodes, "collective"), compression_->factor,
                    rate ? fmt::format("compression before and after them at {}", FormatRate(*rate))
                         : std::string("the time of compression is unknown and not included"));
  }
  return {};
}

Status CommEdits::EditRanks(std::vector<RunnableRank>& ranks, int64_t world_size) {
  if (order_) {
    if (std::ssize(ranks) != world_size) {
      return RefusedEdit(
          "--rank-order",
          {ErrorCode::kBadInput,
           fmt::format("found {} of {}, expected all of them; nearest possible: with "
                       "--fill-ranks",
                       FormatCount(ranks.size()),
                       FormatCount(static_cast<uint64_t>(world_size), "rank"))});
    }
    if (const Status changed = ReorderRanks(*order_, ranks); !changed) {
      return RefusedEdit("--rank-order", changed.error());
    }
    ordered_.nodes = ranks.size();
    ordered_.text = "ranks have the numbers of their places in this order";
  }
  if (!form_) return {};
  const auto count_groups = [&] {
    size_t count = 0;
    for (const RunnableRank& rank : ranks) count += rank.groups.size();
    return count;
  };
  const size_t groups = count_groups();
  const Result<uint64_t> changed = ReplaceAllReduces(*form_, world_size, ranks);
  if (!changed) return RefusedEdit("--all-reduce", changed.error());
  if (*changed == 0) {
    return BadInput("--all-reduce: found no all-reduce between ranks, expected at least one");
  }
  replaced_.nodes = *changed;
  const bool is_divided = count_groups() > groups;  // into groups within and across
  replaced_.text =
      fmt::format("each all-reduce replaced by a reduce-scatter{} and an all-gather",
                  form_->neighbours == 0
                      ? std::string()
                      : fmt::format(" among {} neighbouring ranks{}", form_->neighbours,
                                    is_divided ? ", an all-reduce of the shards across," : ""));
  return {};
}

std::vector<AppliedEdit> CommEdits::AppliedToBuckets() const {
  return sizes_ ? std::vector{buckets_} : std::vector<AppliedEdit>();
}

std::vector<AppliedEdit> CommEdits::Applied() const {
  std::vector<AppliedEdit> edits;
  if (!options_.overlap.empty()) edits.push_back(overlap_);
  if (compression_) edits.push_back(compressed_);
  return edits;
}

std::vector<AppliedEdit> CommEdits::AppliedToAll() const {
  std::vector<AppliedEdit> edits;
  if (order_) edits.push_back(ordered_);
  if (form_) edits.push_back(replaced_);
  return edits;
}

Json BucketsJson(const std::vector<std::vector<GradientBucket>>& passes) {
  Json all = Json::array();
  for (const std::vector<GradientBucket>& pass : passes) {
    Json& buckets = all.emplace_back(Json::array());
    for (const GradientBucket& bucket : pass) {
      buckets.push_back({{"gradients", bucket.gradients},
                         {"bytes", bucket.bytes.count},
                         {"dtype", Name(bucket.dtype)}});
    }
  }
  return all;
}

}  // namespace etude
