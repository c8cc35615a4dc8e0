#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.h"

// Lists parallelism plans by rules, for sweeps: docs/formats/sweep.md.
namespace etude {

// All plans with tp · cp · pp · dp = ranks and degrees among the given values.
struct PlanRule {
  std::string place;                              // "sweep.toml:3:1"
  int64_t ranks = 1;                              // 1 or more
  std::optional<int64_t> devices_per_node;        // maximum of tp
  std::optional<int64_t> global_batch;            // sequences per step; determines micro-batches
  std::vector<int64_t> tensor;                    // values from 1; empty: any divisor
  std::vector<int64_t> pipeline;                  // empty: any divisor
  std::vector<int64_t> data;                      // empty: any
  std::vector<int64_t> context = {1};             // empty: any divisor
  std::vector<int64_t> expert = {1};              // divisors of dp; empty: all
  std::optional<std::vector<int64_t>> sequences;  // per micro-batch; nullopt: not part of the rule
  // Sequences per micro-batch if `sequences` is nullopt; determines the number of micro-batches.
  int64_t base_sequences = 1;
};

struct PlanChoice {
  int64_t tensor = 1;
  int64_t context = 1;
  int64_t pipeline = 1;
  int64_t data = 1;
  int64_t expert = 1;
  std::optional<int64_t> sequences;
  std::optional<int64_t> micro_batches;

  friend auto operator<=>(const PlanChoice&, const PlanChoice&) = default;
};

// Combinations that are not valid plans, by reason.
struct PlanRefusals {
  std::string reason;
  std::string example;  // message about one of them; "": the reason is complete
  uint64_t count = 0;
};

struct PlanList {
  std::vector<PlanChoice> plans;       // in the order of the rules, without duplicates
  uint64_t combinations = 0;           // number of combinations tried
  std::vector<PlanRefusals> refusals;  // plans and refusals add up to `combinations`
};

// Maximum of plans, and of combinations tried.
inline constexpr size_t kMaxSweepPlans = 10'000;
inline constexpr uint64_t kMaxPlanCombinations = 1'000'000;

// Lists the plans. kBadInput with the rule's place if there are too many.
Result<PlanList> ListPlans(const std::vector<PlanRule>& rules);

// Returns labels as "tp8 pp4 dp2 mb16". Parts that are 1 in all plans are omitted, except these
// three.
std::vector<std::string> PlanLabels(const std::vector<PlanChoice>& plans);

}  // namespace etude
