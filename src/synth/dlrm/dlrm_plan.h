#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "src/base/result.h"
#include "src/base/units.h"
#include "src/synth/dlrm/dlrm_model.h"
#include "src/synth/job/step_job.h"

// How a recommendation model is spread over ranks: docs/models/dlrm.md.
namespace etude {

enum class DlrmOptimizer : uint8_t {
  kSgd,
  kAdagrad,  // of tables row-wise: one number for each row
};

// What tables are dealt out by.
enum class TableCost : uint8_t {
  kBytes,    // that they take
  kLookups,  // elements that a sample reads
};

struct DlrmPlan {
  int64_t ranks = 1;
  int64_t batch = 2048;                 // samples of a rank
  Bytes replicate;                      // tables of up to so many bytes are on all ranks
  std::optional<Bytes> split_rows;      // of the others, those of more are split by rows over all
  std::optional<int64_t> most_columns;  // of a part of a table that is not
  TableCost cost = TableCost::kBytes;
  DlrmOptimizer optimizer = DlrmOptimizer::kSgd;
  bool training = true;  // else inference: forward alone
  Bytes bucket = Bytes{25 << 20};
};

// kBadInput, with what was expected, unless all numbers of a step fit into 64 bits. The model has
// passed CheckDlrm.
Status CheckDlrmPlan(const DlrmModel& model, const DlrmPlan& plan);

// Some columns of a table, all its rows.
struct TablePart {
  size_t table = 0;
  int64_t first_column = 0;
  int64_t columns = 0;

  friend bool operator==(const TablePart&, const TablePart&) = default;
};

// Tables by index; each is in one of the three.
struct TablePlacement {
  std::vector<size_t> replicated;
  std::vector<size_t> by_rows;
  std::vector<std::vector<TablePart>> parts;  // by rank
};

// The costliest part first, each to the rank that has least so far; the first of equals. One rank
// has all tables as parts.
TablePlacement PlaceTables(const DlrmModel& model, const DlrmPlan& plan);

// Tables and the other weights, and gradients of all that is not a table of the rank's own.
StepStates StatesOfRank(const DlrmModel& model, const DlrmPlan& plan,
                        const TablePlacement& placement, int64_t rank);

}  // namespace etude
