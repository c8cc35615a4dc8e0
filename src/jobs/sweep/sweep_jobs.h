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
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/jobs/sim_job.h"
#include "src/sim/sweep/sweep_point.h"

namespace etude {

// Returns a hash of the contents of PREFIX.0.et … for this number of ranks.
Result<std::string> HashOfPrefix(const std::string& prefix, int64_t ranks, const Limits& limits);
// Returns a hash of the content of a file.
Result<std::string> HashOfFile(const std::string& path, const Limits& limits);

// The jobs of a sweep: read once for all points that need them at a time, or generated into the
// sweep's folder.
class SweepJobs {
 public:
  // Generated jobs go to folders below `folder`. `strict`: damaged traces are refused.
  SweepJobs(std::string folder, bool strict) : folder_(std::move(folder)), strict_(strict) {}

  // Removes the remains of jobs that killed processes were making.
  void RemoveAbandoned() const;

  // Returns a hash of the contents of the job's files, or of its generator's inputs. `npus`: 0 for
  // as many as the job has ranks. Not thread-safe.
  Result<std::string> HashOf(const SweepPoint& point, int64_t npus, const RunContext& context);

  // Returns the files whose contents are in these hashes.
  const std::set<std::string>& files() const { return files_; }

  // Returns the job of a point on a machine with this number of NPUs. Returns kBadInput for an
  // invalid job, or one that cannot be generated. Warnings of GenerateJob are issued once, with the
  // first point. Thread-safe. `hash` is that of HashOf.
  Result<std::shared_ptr<const SimJob>> Read(const SweepPoint& point, const std::string& hash,
                                             int64_t npus, const RunContext& context);

 private:
  struct Slot {
    std::mutex mutex;
    std::weak_ptr<const SimJob> job;
  };

  Result<std::string> HashFiles(const SweepJobSource& source, int64_t npus,
                                const RunContext& context);
  // Adds the contents of `file` to `listing`, under `name`.
  Status Add(const std::string& name, const std::string& file, const RunContext& context,
             std::string& listing);
  // Returns the path of the generated job, and makes it if it is missing or damaged.
  Result<std::string> Generate(const SweepPoint& point, const std::string& hash,
                               const RunContext& context);
  std::string jobs_folder() const { return folder_ + "/jobs"; }
  std::string FolderOf(const std::string& hash) const;  // folder of a generated job
  // Returns the expected contents of a generated job's check file.
  static Result<std::string> CheckOf(const std::string& folder, const std::string& hash,
                                     const RunContext& context);
  static bool IsWhole(const std::string& folder, const std::string& hash,
                      const RunContext& context);
  // Moves the complete job in `made` to `folder`.
  static Status Place(const std::string& made, const std::string& folder, const std::string& hash,
                      const RunContext& context);
  // Issues the warning with the point, unless it was issued before.
  void PassWarning(std::string_view text, const std::string& point, const RunContext& context);

  const std::string folder_;
  const bool strict_;
  std::map<std::pair<SweepJobSource, int64_t>, std::string> hashes_;
  // By words of generate, and the contents of files that are not read.
  std::map<std::pair<std::vector<std::string>, std::map<std::string, std::string>>, std::string>
      generated_hashes_;
  std::set<std::string> files_;
  std::mutex mutex_;                                    // guards slots_ and warned_
  std::map<std::string, std::unique_ptr<Slot>> slots_;  // by hash
  std::set<std::string, std::less<>> warned_;
};

}  // namespace etude
