#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/jobs/sim_job.h"
#include "src/sim/sweep/sweep_point.h"

namespace etude {

// What is in PREFIX.0.et … of so many ranks, as a hash.
Result<std::string> HashOfPrefix(const std::string& prefix, int64_t ranks, const Limits& limits);

// The jobs of a sweep: read once for all points that need them at a time, or generated into the
// sweep's folder.
class SweepJobs {
 public:
  // Generated jobs go to folders below `folder`.
  // `strict`: damaged traces are refused.
  SweepJobs(std::string folder, bool strict) : folder_(std::move(folder)), strict_(strict) {}

  // Removes what processes that were killed have left of jobs that they made.
  void RemoveAbandoned() const;

  // What is in the job's files, or what it is generated from, as a hash. Not thread-safe.
  Result<std::string> HashOf(const SweepPoint& point, int64_t npus, const RunContext& context);

  // The files whose content is in these hashes.
  const std::set<std::string>& files() const { return files_; }

  // The job of a point on a machine of so many NPUs. kBadInput for what is none, or cannot be
  // generated. What GenerateJob warns of is said once, with the first point. Thread-safe; `hash` is
  // that of HashOf.
  Result<std::shared_ptr<const SimJob>> Read(const SweepPoint& point, const std::string& hash,
                                             int64_t npus, const RunContext& context);

 private:
  struct Slot {
    std::mutex mutex;
    std::weak_ptr<const SimJob> job;
  };

  Result<std::string> HashFiles(const SweepJobSource& source, int64_t npus,
                                const RunContext& context);
  // Adds to `listing` what is in `file`, by `name`.
  Status Add(const std::string& name, const std::string& file, const RunContext& context,
             std::string& listing);
  // The path of the generated job, which is made unless it is there and undamaged.
  Result<std::string> Generate(const SweepPoint& point, const std::string& hash,
                               const RunContext& context);
  std::string jobs_folder() const { return folder_ + "/jobs"; }
  std::string FolderOf(const std::string& hash) const;  // of a generated job
  // What the check file of a generated job has to say.
  static Result<std::string> CheckOf(const std::string& folder, const std::string& hash,
                                     const RunContext& context);
  static bool IsWhole(const std::string& folder, const std::string& hash,
                      const RunContext& context);
  // Puts the job that is complete in `made` in the place of `folder`.
  static Status Place(const std::string& made, const std::string& folder, const std::string& hash,
                      const RunContext& context);
  // Warns of it with the point, unless it was said before.
  void PassWarning(std::string_view text, const std::string& point, const RunContext& context);

  const std::string folder_;
  const bool strict_;
  std::map<std::pair<SweepJobSource, int64_t>, std::string> hashes_;
  std::map<std::vector<std::string>, std::string> generated_hashes_;  // by words of generate
  std::set<std::string> files_;
  std::mutex mutex_;                                    // of slots_ and warned_
  std::map<std::string, std::unique_ptr<Slot>> slots_;  // by hash
  std::set<std::string, std::less<>> warned_;
};

}  // namespace etude
