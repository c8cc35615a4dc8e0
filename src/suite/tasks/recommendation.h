#pragma once

#include <memory>

#include "src/base/result.h"
#include "src/suite/task.h"

namespace etude::suite {

// C10: recommendation by neural matrix factorization (He et al., 1708.05031). Paper scale: 64
// factors and a perceptron 256-256-128-64 on MovieLens. Smoke scale: 8 and 64-32-16, on the
// destinations of airplanes. Each user's last item is the test item, ranked among items that are
// new to the user.
Result<std::unique_ptr<Task>> MakeRecommendation(const TaskOptions& options);

}  // namespace etude::suite
