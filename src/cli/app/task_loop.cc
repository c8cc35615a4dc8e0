#include "src/cli/app/task_loop.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace etude {

Status TaskLoop::Run(const std::function<Status(const suite::TaskFacts&)>& work) {
  for (at_ = 0; at_ < tasks_.size(); ++at_) {
    const suite::TaskFacts& task = *tasks_[at_];
    if (HasFailed(task)) continue;
    const Status done = work(task);
    if (done) continue;
    if (tasks_.size() == 1 || done.error().code == ErrorCode::kInterrupted) return done;
    console_.Complain(fmt::format("{}: {}", task.id, done.error().message));
    failed_.emplace_back(task.id, done.error());
  }
  return {};
}

void TaskLoop::Say(std::string_view what) const {
  console_.Say(
      fmt::format("etude: {} ({} of {}): {}", tasks_[at_]->id, at_ + 1, tasks_.size(), what));
}

bool TaskLoop::HasFailed(const suite::TaskFacts& task) const {
  return std::ranges::any_of(failed_, [&](const auto& failed) { return failed.first == task.id; });
}

nlohmann::ordered_json TaskLoop::FailuresJson() const {
  nlohmann::ordered_json failures = nlohmann::ordered_json::array();
  for (const auto& [name, error] : failed_) {
    failures.push_back({{"id", name},
                        {"exit_code", static_cast<int>(ExitCodeOf(error.code))},
                        {"error", error.message}});
  }
  return failures;
}

Status TaskLoop::Outcome() const {
  if (failed_.empty()) return {};
  std::vector<std::string_view> names;
  for (const auto& [name, error] : failed_) names.push_back(name);
  return MakeError(failed_.front().second.code,
                   fmt::format("{} of {} tasks failed: {}", failed_.size(), tasks_.size(),
                               fmt::join(names, ", ")));
}

}  // namespace etude
