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

// Facts of an operator that determine its factor.
struct ScaledOperator {
  std::string_view name;  // "aten::mm.out"
  bool communicates = false;
};

// Factors for times, to emulate another machine. "compute" stands for all operators that do not
// communicate, "matrix" for matrix products, convolutions and attention among them, "comm" for
// communication, "host" for the time between operators; an operator's name, with or without
// overload, stands for that operator. The last matching rule applies.
class TimeScale {
 public:
  // Parses "comm=0.5,compute=2,aten::mm=1.5". kUsage, with the expected form, for other text;
  // factors are from 0.01 to 100.
  static Result<TimeScale> Parse(std::string_view text);

  // Parses "1:1.5", which slows compute and host of rank 1 by the factor, at least 1. kUsage, with
  // the expected form, for other text and for a second one of a rank.
  Status AddStraggler(std::string_view text);

  double Of(const ScaledOperator& op, int64_t rank) const;
  double OfHost(int64_t rank) const;
  // Returns the factor for all communication, regardless of the operator.
  double OfCommunication() const;
  // Returns the factor, at least 1, by which everything runs slower than the scale, because a
  // machine cannot run faster than it does; measured times are divided by it. Equal on all ranks.
  double slowdown() const;
  // Returns whether all factors of rules are 1.
  bool is_identity() const;
  // Return the operators and the slowed ranks in the rules.
  std::vector<std::string> operators() const;
  std::vector<int64_t> stragglers() const;
  // Returns "comm × 0.5, compute × 2, rank 1 × 1.5"; marks rules that match no operator of `step`.
  std::string Text(std::span<const ScaledOperator> step) const;

 private:
  double OfClass(std::string_view name) const;
  double StragglerOf(int64_t rank) const;

  std::vector<std::pair<std::string, double>> rules_;
  std::vector<Straggler> stragglers_;
};

}  // namespace etude
