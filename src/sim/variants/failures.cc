#include "src/sim/variants/failures.h"

#include <algorithm>
#include <cmath>

#include "src/base/random_stream.h"

namespace etude {
namespace {

// Returns the expected time of an interval with its checkpoint, in units of the mean time between
// failures of the job, of which all arguments are shares.
double ExpectedTime(double interval, double checkpoint, double restart) {
  return std::exp(restart) * std::expm1(interval + checkpoint);
}

}  // namespace

double BestInterval(const FailureModel& model, int64_t ranks) {
  const double mtbf = model.mtbf / static_cast<double>(ranks);
  const double checkpoint = model.checkpoint / mtbf;
  // The useful share x / (exp(x + c) - 1) has one maximum, where exp(x + c) (1 - x) = 1.
  double low = 0;
  double high = 1;
  while (high - low > 1e-9 * high) {
    const double middle = (low + high) / 2;
    (middle + checkpoint + std::log1p(-middle) > 0 ? low : high) = middle;
  }
  return (low + high) / 2 * mtbf;
}

Goodput GoodputOf(const FailureModel& model, int64_t ranks) {
  Goodput goodput{.mtbf = model.mtbf / static_cast<double>(ranks)};
  goodput.interval = model.interval.value_or(BestInterval(model, ranks));
  const double interval = goodput.interval / goodput.mtbf;
  const double checkpoint = model.checkpoint / goodput.mtbf;
  const double time = ExpectedTime(interval, checkpoint, model.restart / goodput.mtbf);
  goodput.useful = interval / time;
  goodput.checkpoints = checkpoint / time;
  goodput.lost = std::max(0.0, 1 - goodput.useful - goodput.checkpoints);
  return goodput;
}

double SimulatedGoodput(const FailureModel& model, int64_t ranks, int64_t failures, uint64_t seed) {
  const double mtbf = model.mtbf / static_cast<double>(ranks);
  const double interval = model.interval.value_or(BestInterval(model, ranks));
  const double round = interval + model.checkpoint;
  RandomStream random(seed);
  double total = 0;
  double useful = 0;
  double to_do = 0;  // of a restart
  for (int64_t failure = 0; failure < failures; ++failure) {
    const double life = -std::log1p(-random.UniformDouble()) * mtbf;
    total += life;
    useful += std::floor(std::max(0.0, life - to_do) / round) * interval;
    to_do = model.restart;
  }
  return useful / total;
}

}  // namespace etude
