#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/result.h"
#include "src/trace/job/straggler.h"

namespace etude {

// What an operator is to a scale.
struct ScaledOperator {
  std::string_view name;  // "aten::mm.out"
  bool communicates = false;
};

// By what factors times are to differ from what they are here: an emulation of another machine.
// "compute" is all operators that do not communicate, "matrix" those of them that are matrix
// products, convolutions and attention, "comm" communication, "host" what is between operators; or
// an operator's name, with or without overload. Of several that mean one operator the last holds.
class TimeScale {
 public:
  // "comm=0.5,compute=2,aten::mm=1.5". kUsage, saying what was expected, for another text; factors
  // are from 0.01 to 100.
  static Result<TimeScale> Parse(std::string_view text);

  // "1:1.5" makes compute and host of rank 1 slower by the factor, at least 1. kUsage, saying what
  // was expected, for another text and for a second one of a rank.
  Status AddStraggler(std::string_view text);

  double Of(const ScaledOperator& op, int64_t rank) const;
  double OfHost(int64_t rank) const;
  // Of communication as a whole, whatever operator it is.
  double OfCommunication() const;
  // A machine cannot run faster than it does: all runs so many times slower than the scale says,
  // and measured times are divided by it. The same on all ranks; at least 1.
  double slowdown() const;
  // The operators that it names, and the ranks that it makes slower.
  std::vector<std::string> operators() const;
  std::vector<int64_t> stragglers() const;
  // "comm × 0.5, compute × 2, rank 1 × 1.5"; says of what no operator of `step` is meant by.
  std::string Text(std::span<const ScaledOperator> step) const;

 private:
  double OfClass(std::string_view name) const;
  double StragglerOf(int64_t rank) const;

  std::vector<std::pair<std::string, double>> rules_;
  std::vector<Straggler> stragglers_;
};

}  // namespace etude
