#include "src/report/text/plan_text.h"

#include <fmt/format.h>

#include "src/report/text/format.h"
#include "src/report/text/table.h"

namespace etude {

std::string PlanText(const PlanFacts& plan, const std::optional<PlanRates>& rates) {
  std::string text;
  if (rates) {
    text +=
        fmt::format("  throughput   {} {}s/s, {} per device", FormatNumber(rates->items_per_second),
                    plan.item, FormatNumber(rates->items_per_second_per_device));
    if (rates->mfu) {
      text += fmt::format(", MFU {} of {}", ToText(Cell(*rates->mfu), Unit::kShare), plan.device);
    }
    text += "\n";
  }
  if (plan.bubble && *plan.bubble > 0) {
    text += fmt::format("  pipeline     bubble {} by its schedule\n",
                        ToText(Cell(*plan.bubble), Unit::kShare));
  }
  text +=
      fmt::format("  memory       {} needed by the largest rank", FormatBytes(plan.memory.peak));
  if (plan.capacity) {
    text += fmt::format("; {} {} ({})", plan.memory.peak <= *plan.capacity ? "fits" : "exceeds",
                        plan.device, FormatBytes(*plan.capacity));
  }
  return text + "\n";
}

}  // namespace etude
