#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/suite/results/hyperparameters.h"

namespace etude::suite {

class Task;
struct TaskOptions;

// Factory of a task. Needs libtorch, unlike the catalogue.
struct TaskMaker {
  std::string_view id;  // of the task
  Result<std::unique_ptr<Task>> (*make)(const TaskOptions& options);
  // For tasks that support several data sets: returns the one that would be used in a folder, by
  // the folder's entries only; "" if there is none.
  std::string (*find_data_set)(Scale scale, const std::string& data) = nullptr;
};

// Finds a factory by task id; nullptr if there is none.
const TaskMaker* FindMaker(std::string_view id);

}  // namespace etude::suite
