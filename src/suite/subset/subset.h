#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/result.h"
#include "src/base/statistics/points.h"
#include "src/base/statistics/principal_components.h"
#include "src/suite/results/catalogue.h"
#include "src/suite/subset/repeatability.h"
#include "src/suite/subset/task_factors.h"

// Choice of a few tasks that represent the suite, by AIBench's method
// (docs/models/suite_subset.md).
namespace etude::suite {

struct SubsetOptions {
  enum class Purpose : uint8_t {
    kRanking,           // of systems by time to quality
    kCharacterization,  // of workloads
  };
  enum class Space : uint8_t { kPca, kTsne };  // in which tasks are clustered

  Purpose purpose = Purpose::kRanking;
  Space space = Space::kPca;
  std::optional<int64_t> clusters;   // nullopt: by silhouette
  double most_variation = 0.02;      // share
  std::optional<double> most_hours;  // recalled hours of a task; unknown hours are no reason
  uint64_t seed = 0;
};
// Returns "ranking" or "characterization".
std::string_view Name(SubsetOptions::Purpose purpose);
// Returns "pca" or "t-sne".
std::string_view Name(SubsetOptions::Space space);

// A measured property of tasks by which they are compared.
struct Factor {
  std::string key;    // "log10_parameters": stable, appears in --json
  std::string title;  // "log10 parameters"
};

// Minimum number of tasks to choose from.
inline constexpr size_t kLeastTasks = 4;

// Clusters of the candidates in one space. Tasks are numbers of Subset::tasks.
struct TaskClusters {
  std::vector<std::pair<size_t, double>> silhouettes;  // mean, by number of clusters
  size_t count = 0;                                    // chosen number of clusters
  double inertia = 0;
  std::vector<std::optional<size_t>> labels;     // by task; others than candidates: the nearest
  std::vector<std::optional<double>> distances;  // to its centre
  std::vector<size_t> picked;                    // a task for each cluster
};

// A set of tasks that is compared with the suite.
struct TaskSet {
  struct Range {
    double low = 0;
    double high = 0;
    double share = 0;  // of the range of all tasks
  };

  std::string name;    // "chosen here"
  std::string source;  // "found", "recalled" or ""
  std::vector<const TaskFacts*> tasks;
  std::optional<double> recalled_hours;  // of one run of each
  std::optional<double> saved;           // share of the hours of all tasks with known hours
  std::vector<const TaskFacts*> no_hours;
  size_t placed = 0;           // number of the tasks whose factors are known
  std::vector<Range> ranges;   // by factor; empty if no task is placed
  std::optional<double> box;   // share of the box of all tasks in the kept components
  std::optional<double> area;  // share of the area of their hull in the first two components
};

struct Subset {
  struct Task {
    const TaskFacts* facts = nullptr;
    Repeatability repeatability;
    std::vector<double> factors;  // by Subset::factors; empty: not placed
    std::vector<double> z_scores;
    std::vector<double> pca;    // kept components
    std::vector<double> t_sne;  // coordinates in the plane
    bool candidate = false;
    bool picked = false;
    std::string why;  // reason for either
  };

  SubsetOptions options;
  std::string scale;
  std::vector<Factor> factors;
  std::vector<Task> tasks;  // in the catalogue's order
  std::vector<const TaskFacts*> missing;
  PrincipalComponents components;  // of placed tasks
  size_t kept_components = 0;
  double perplexity = 0;
  double divergence = 0;  // of t-SNE, nats
  TaskClusters by_pca;
  TaskClusters by_t_sne;
  std::vector<TaskSet> sets;  // all, the MLPerf-like tasks, chosen here, published
  std::vector<std::string> notes;

  const TaskClusters& clusters() const {
    return options.space == SubsetOptions::Space::kPca ? by_pca : by_t_sne;
  }
  std::vector<const TaskFacts*> picked() const;
};

// Returns the tasks of AIBench's subset for a purpose.
std::vector<const TaskFacts*> PublishedSubset(SubsetOptions::Purpose purpose);
// Returns "found" or "recalled".
std::string_view SourceOfSubset(SubsetOptions::Purpose purpose);
// Returns tasks of the same kind as benchmarks of MLPerf Training.
std::vector<const TaskFacts*> MlPerfLikeTasks();
// Returns the sum of the recalled hours; nullopt if those of a task are unknown.
std::optional<double> RecalledHours(std::span<const TaskFacts* const> tasks);
// Returns the hours of all tasks whose hours are known.
double RecalledHoursOfSuite();

// Chooses a subset. `kept`: runs in the characterization's folder. kBadInput if fewer than
// kLeastTasks tasks qualify or there are more clusters than tasks.
Result<Subset> ChooseSubset(const CharacterizedTasks& characterization, std::span<const Score> kept,
                            std::span<const ConvergenceReference> references,
                            const SubsetOptions& options);

}  // namespace etude::suite
