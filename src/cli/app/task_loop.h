#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/base/result.h"
#include "src/cli/app/command.h"
#include "src/suite/results/catalogue.h"

namespace etude {

// Work of a suite command on tasks, one after another. Tasks that fail do not stop the others.
// Refers to the console.
class TaskLoop {
 public:
  TaskLoop(std::vector<const suite::TaskFacts*> tasks, const Console& console)
      : tasks_(std::move(tasks)), console_(console) {}

  // Calls `work` with each task that has not failed in an earlier call. Returns the error of a
  // single task, and kInterrupted; other errors are printed and kept.
  Status Run(const std::function<Status(const suite::TaskFacts&)>& work);

  // Prints "etude: learning-to-rank (2 of 19): `what`", of the current task.
  void Say(std::string_view what) const;
  // Prints an error of the current task.
  void Complain(std::string_view what) const { console_.Complain(what); }

  bool HasFailed(const suite::TaskFacts& task) const;
  // Returns the failures as [{"id", "exit_code", "error"}].
  nlohmann::ordered_json FailuresJson() const;
  // Returns an error that names the failed tasks, with the code of the first; success without any.
  Status Outcome() const;

 private:
  std::vector<const suite::TaskFacts*> tasks_;
  const Console& console_;
  size_t at_ = 0;  // index of the current task
  std::vector<std::pair<std::string_view, Error>> failed_;
};

}  // namespace etude
