#pragma once

#include <memory>

#include "src/base/result.h"
#include "src/suite/task.h"

namespace etude::suite {

// C18: click prediction by the deep learning recommendation model (Naumov et al., 1906.00091).
// Paper scale: 26 tables of width 16 and perceptrons 13-512-256-64-16 and 512-256-1 on Criteo's
// Kaggle set. Smoke scale: 8 tables of width 8 on clicks generated from a known law.
Result<std::unique_ptr<Task>> MakeAdvertising(const TaskOptions& options);

}  // namespace etude::suite
