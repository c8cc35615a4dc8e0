#pragma once

#include <memory>

#include "src/base/result.h"
#include "src/suite/task.h"

namespace etude::suite {

// C18: whether someone clicks an advertisement, by the deep learning recommendation model (Naumov
// et al., 1906.00091). Paper scale: 26 tables 16 wide and perceptrons 13-512-256-64-16 and
// 512-256-1 on Criteo's Kaggle set; smoke scale: 8 tables 8 wide on generated clicks of a known
// law.
Result<std::unique_ptr<Task>> MakeAdvertising(const TaskOptions& options);

}  // namespace etude::suite
