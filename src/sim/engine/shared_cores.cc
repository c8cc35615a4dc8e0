#include "src/sim/engine/shared_cores.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace etude {
namespace {

// Rest of a work that is due, in ns: events are planned for whole ones.
constexpr double kNothing = 1e-6;

}  // namespace

void SharedCores::Begin(const Work& work, int64_t nanos, double demand, int64_t parts) {
  Advance();
  running_.push_back(
      {.work = work, .left = static_cast<double>(nanos), .demand = demand, .parts = parts});
  Plan();
}

std::vector<SharedCores::Work> SharedCores::Due(SimIndex plan) {
  std::vector<Work> due;
  if (plan != plan_) return due;
  Advance();
  for (const Running& one : running_) {
    if (one.left <= kNothing) due.push_back(one.work);
  }
  std::erase_if(running_, [](const Running& one) { return one.left <= kNothing; });
  Plan();
  return due;
}

void SharedCores::Advance() {
  const auto passed = static_cast<double>(timeline_.now() - since_);
  since_ = timeline_.now();
  for (Running& one : running_) one.left = std::max(0.0, one.left - passed * one.rate);
}

// Progressive filling: parts that demand less than an equal share get all they demand, and the
// others share the rest.
void SharedCores::Share() {
  for (Running& one : running_) one.rate = 1;
  if (!cores_) return;
  std::vector<Running*> waiting;
  for (Running& one : running_) {
    if (one.demand > 0) waiting.push_back(&one);
  }
  std::ranges::stable_sort(waiting, {}, [](const Running* one) { return one->demand; });
  double parts = 0;
  for (const Running* one : waiting) parts += static_cast<double>(one->parts);
  double free = *cores_;
  for (Running* one : waiting) {
    const double share = free / parts;
    const double given = std::min(one->demand, share);
    one->rate = given / one->demand;
    free -= given * static_cast<double>(one->parts);
    parts -= static_cast<double>(one->parts);
  }
}

void SharedCores::Plan() {
  if (running_.empty()) return;
  Share();
  double next = std::numeric_limits<double>::infinity();
  for (const Running& one : running_) next = std::min(next, one.left / one.rate);
  timeline_.Plan(since_ + WholeNanos(std::ceil(std::max(next - kNothing, 0.0))),
                 SimEventKind::kCores, ++plan_);
}

}  // namespace etude
