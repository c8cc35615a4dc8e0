#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/suite/results/hyperparameters.h"

namespace etude::suite {

class Task;
struct TaskOptions;

// What makes a task of the catalogue. It needs libtorch, which the catalogue does not.
struct TaskMaker {
  std::string_view id;  // of the task
  Result<std::unique_ptr<Task>> (*make)(const TaskOptions& options);
  // Of a task that may learn from several data sets: which one it would find in a folder, by the
  // folder's entries alone; "" if none.
  std::string (*find_data_set)(Scale scale, const std::string& data) = nullptr;
};

// By the task's id; nullptr if there is none.
const TaskMaker* FindMaker(std::string_view id);

}  // namespace etude::suite
