#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "src/base/result.h"
#include "src/base/units.h"
#include "src/synth/dlrm/dlrm_model.h"
#include "src/synth/job/step_job.h"

// Distribution of a recommendation model over ranks: docs/models/dlrm.md.
namespace etude {

enum class DlrmOptimizer : uint8_t {
  kSgd,
  kAdagrad,  // row-wise for tables: one number per row
};

// Cost by which tables are distributed.
enum class TableCost : uint8_t {
  kBytes,    // their size
  kLookups,  // elements read per sample
};

struct DlrmPlan {
  int64_t ranks = 1;
  int64_t batch = 2048;                 // samples per rank
  Bytes replicate;                      // tables of up to this size are on all ranks
  std::optional<Bytes> split_rows;      // other tables above this size are split by rows over all
                                        // ranks
  std::optional<int64_t> most_columns;  // max columns of a part of a table that is not split by
                                        // rows
  TableCost cost = TableCost::kBytes;
  DlrmOptimizer optimizer = DlrmOptimizer::kSgd;
  bool training = true;  // else inference: forward only
  Bytes bucket = Bytes{25 << 20};
};

// Returns kBadInput, with the expected values, unless all numbers of a step fit into 64 bits. The
// model must have passed CheckDlrm.
Status CheckDlrmPlan(const DlrmModel& model, const DlrmPlan& plan);

// Some columns of a table, with all its rows.
struct TablePart {
  size_t table = 0;
  int64_t first_column = 0;
  int64_t columns = 0;

  friend bool operator==(const TablePart&, const TablePart&) = default;
};

// Tables by index; each is in exactly one of the three.
struct TablePlacement {
  std::vector<size_t> replicated;
  std::vector<size_t> by_rows;
  std::vector<std::vector<TablePart>> parts;  // by rank
};

// Places the parts of tables: the costliest first, each on the rank with the least cost so far;
// ties go to the first. A single rank has all tables as parts.
TablePlacement PlaceTables(const DlrmModel& model, const DlrmPlan& plan);

// Returns the states of a rank: tables and other weights, and gradients of everything except the
// rank's own tables.
StepStates StatesOfRank(const DlrmModel& model, const DlrmPlan& plan,
                        const TablePlacement& placement, int64_t rank);

}  // namespace etude
