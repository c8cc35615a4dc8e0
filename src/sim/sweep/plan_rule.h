#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.h"

// Parallel plans by a rule, for sweeps: docs/formats/sweep.md.
namespace etude {

// All plans tp · cp · pp · dp = ranks whose parts are among the values given.
struct PlanRule {
  std::string place;                              // "sweep.toml:3:1"
  int64_t ranks = 1;                              // 1 or more
  std::optional<int64_t> devices_per_node;        // the maximum of tp
  std::optional<int64_t> global_batch;            // sequences of a step; gives micro-batches
  std::vector<int64_t> tensor;                    // all values from 1 on; empty: any divisor
  std::vector<int64_t> pipeline;                  // empty: any divisor
  std::vector<int64_t> data;                      // empty: any
  std::vector<int64_t> context = {1};             // empty: any divisor
  std::vector<int64_t> expert = {1};              // divisors of dp; empty: all
  std::optional<std::vector<int64_t>> sequences;  // of a micro-batch; nullopt: not of the rule
  // Of a micro-batch where `sequences` is nullopt, for the number of micro-batches.
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

// Combinations that are no plan, by reason.
struct PlanRefusals {
  std::string reason;
  std::string example;  // the message about one of them; "": the reason says all
  uint64_t count = 0;
};

struct PlanList {
  std::vector<PlanChoice> plans;       // in the order of the rules, each once
  uint64_t combinations = 0;           // tried
  std::vector<PlanRefusals> refusals;  // together with the plans all that were tried
};

// Maximum of plans, and of combinations that are tried.
inline constexpr size_t kMaxSweepPlans = 10'000;
inline constexpr uint64_t kMaxPlanCombinations = 1'000'000;

// kBadInput with the rule's place for too many.
Result<PlanList> ListPlans(const std::vector<PlanRule>& rules);

// "tp8 pp4 dp2 mb16": parts that are 1 in all of `plans` are left out, except these three.
std::vector<std::string> PlanLabels(const std::vector<PlanChoice>& plans);

}  // namespace etude
