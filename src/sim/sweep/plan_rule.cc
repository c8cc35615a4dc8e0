#include "src/sim/sweep/plan_rule.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace etude {
namespace {

// Returns the divisors, ascending. `number` must be positive.
std::vector<int64_t> DivisorsOf(int64_t number) {
  std::vector<int64_t> low;
  std::vector<int64_t> high;
  for (int64_t i = 1; i <= number / i; ++i) {
    if (number % i != 0) continue;
    low.push_back(i);
    if (i != number / i) high.push_back(number / i);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

// Lists the plans of one rule after the other.
class PlanLister {
 public:
  Status Add(const PlanRule& rule) {
    for (const int64_t tensor : ValuesOf(rule.tensor, rule.ranks)) {
      for (const int64_t context : ValuesOf(rule.context, rule.ranks / tensor)) {
        const int64_t left = rule.ranks / tensor / context;
        for (const int64_t pipeline : ValuesOf(rule.pipeline, left)) {
          const PlanChoice mesh{.tensor = tensor,
                                .context = context,
                                .pipeline = pipeline,
                                .data = std::max<int64_t>(1, left / pipeline),
                                .sequences = {},
                                .micro_batches = {}};
          ETUDE_RETURN_IF_ERROR(AddMesh(rule, mesh));
        }
      }
    }
    return {};
  }

  PlanList Finish() { return std::move(list_); }

 private:
  static std::vector<int64_t> ValuesOf(const std::vector<int64_t>& values, int64_t of) {
    return values.empty() ? DivisorsOf(std::max<int64_t>(1, of)) : values;
  }

  Status AddMesh(const PlanRule& rule, const PlanChoice& mesh) {
    // Each step divides, because a product may exceed 64 bits.
    const bool divides = rule.ranks % mesh.tensor == 0 &&
                         rule.ranks / mesh.tensor % mesh.context == 0 &&
                         rule.ranks / mesh.tensor / mesh.context % mesh.pipeline == 0;
    if (!divides) {
      return Refuse(rule, fmt::format("tp · cp · pp does not divide {} ranks", rule.ranks));
    }
    if (!rule.data.empty() && std::ranges::find(rule.data, mesh.data) == rule.data.end()) {
      return Refuse(rule, "dp is not one of the given values");
    }
    if (rule.devices_per_node && mesh.tensor > *rule.devices_per_node) {
      return Refuse(rule,
                    fmt::format("tp exceeds the {} devices of a node", *rule.devices_per_node));
    }
    for (const int64_t expert : ValuesOf(rule.expert, mesh.data)) {
      PlanChoice plan = mesh;
      plan.expert = expert;
      if (mesh.data % expert != 0) {
        ETUDE_RETURN_IF_ERROR(Refuse(rule, "ep does not divide dp"));
        continue;
      }
      ETUDE_RETURN_IF_ERROR(AddBatches(rule, plan));
    }
    return {};
  }

  Status AddBatches(const PlanRule& rule, PlanChoice plan) {
    if (!rule.sequences) return AddBatch(rule, plan, rule.base_sequences);
    for (const int64_t sequences : *rule.sequences) {
      plan.sequences = sequences;
      ETUDE_RETURN_IF_ERROR(AddBatch(rule, plan, sequences));
    }
    return {};
  }

  Status AddBatch(const PlanRule& rule, PlanChoice plan, int64_t sequences) {
    if (rule.global_batch) {
      const int64_t of_replica = *rule.global_batch / plan.data;
      if (*rule.global_batch % plan.data != 0 || of_replica % sequences != 0) {
        return Refuse(rule,
                      fmt::format("a batch of {} sequences is not divisible by dp · sequences",
                                  *rule.global_batch));
      }
      plan.micro_batches = of_replica / sequences;
    }
    if (!known_.insert(plan).second) return Refuse(rule, "duplicate plan");
    ETUDE_RETURN_IF_ERROR(Count(rule));
    if (list_.plans.size() == kMaxSweepPlans) return TooMany(rule, kMaxSweepPlans, "plans");
    list_.plans.push_back(plan);
    return {};
  }

  Status Count(const PlanRule& rule) {
    if (++list_.combinations <= kMaxPlanCombinations) return {};
    return TooMany(rule, kMaxPlanCombinations, "combinations");
  }

  static Status TooMany(const PlanRule& rule, uint64_t most, std::string_view what) {
    return BadInput(
        fmt::format("{}: plans: found more than {} {}, the maximum; list values of tp, pp, cp, ep "
                    "or dp, or give devices_per_node or global_batch",
                    rule.place, most, what));
  }

  Status Refuse(const PlanRule& rule, std::string reason) {
    const auto found = std::ranges::find(list_.refusals, reason, &PlanRefusals::reason);
    if (found != list_.refusals.end()) {
      ++found->count;
    } else {
      list_.refusals.push_back({.reason = std::move(reason), .example = {}, .count = 1});
    }
    return Count(rule);
  }

  PlanList list_;
  std::set<PlanChoice> known_;
};

}  // namespace

Result<PlanList> ListPlans(const std::vector<PlanRule>& rules) {
  PlanLister lister;
  for (const PlanRule& rule : rules) ETUDE_RETURN_IF_ERROR(lister.Add(rule));
  return lister.Finish();
}

std::vector<std::string> PlanLabels(const std::vector<PlanChoice>& plans) {
  const auto any = [&](auto differs) { return std::ranges::any_of(plans, differs); };
  const bool context = any([](const PlanChoice& plan) { return plan.context > 1; });
  const bool expert = any([](const PlanChoice& plan) { return plan.expert > 1; });
  std::vector<std::string> labels;
  for (const PlanChoice& plan : plans) {
    std::string label = fmt::format("tp{}", plan.tensor);
    if (context) label += fmt::format(" cp{}", plan.context);
    label += fmt::format(" pp{} dp{}", plan.pipeline, plan.data);
    if (expert) label += fmt::format(" ep{}", plan.expert);
    if (plan.sequences) label += fmt::format(" seq{}", *plan.sequences);
    if (plan.micro_batches) label += fmt::format(" mb{}", *plan.micro_batches);
    labels.push_back(std::move(label));
  }
  return labels;
}

}  // namespace etude
