#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/trace/trace.h"
#include "src/transform/operators/operator_key.h"
#include "src/transform/operators/operator_table.h"

namespace etude {

// Times of operators for a job: those of `times`, and if the same machine also has a time of the
// recorded operator, their ratio.
struct OperatorSources {
  const OperatorTable& times;     // of the wanted operators
  const OperatorTable& recorded;  // of the recorded operators, on the same machine or, for another
                                  // machine's times, on the recording one
};

struct OperatorTimesEdit {
  Trace trace;
  // Outermost operators that were to get another time, by where their time is from.
  uint64_t measured = 0;                    // from the table, they or all of their parts
  uint64_t estimated = 0;                   // as in `edited`
  uint64_t kept = 0;                        // as recorded, because their work is unknown
  uint64_t without_ratio = 0;               // of `measured`: by the table alone
  std::map<std::string, uint64_t> missing;  // operators of `estimated` and `kept` by name
  Nanos wanted_time;                        // recorded time of all of them
  Nanos measured_time;                      // of `measured`
};

// Returns the operators, at any depth, whose keys differ between a recorded trace and an edited one
// with the same nodes: the keys of both.
std::set<OperatorKey> ChangedOperators(const Trace& recorded, const Trace& edited);

// Returns `edited`, which has the nodes of `recorded`, with times of a table for the host's
// operators whose keys differ between both; with `all`, for all operators. docs/models/what_if.md.
//
//     time = recorded time · time of the table / time of the recorded operator in its table
//
// or the time of the table if the recorded operator has none. The operators that it calls change in
// proportion. An operator that the table lacks gets the times of those that it calls, as far as the
// table has them. `is_estimated`: by node, whether `edited` has an estimated time for it.
Result<OperatorTimesEdit> WithOperatorTimes(const Trace& recorded, const Trace& edited,
                                            const std::vector<bool>& is_estimated, bool all,
                                            const OperatorSources& sources, const Limits& limits);

}  // namespace etude
