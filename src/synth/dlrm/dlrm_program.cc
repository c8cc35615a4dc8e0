#include "src/synth/dlrm/dlrm_program.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "src/synth/job/step_program.h"
#include "src/synth/network/replica_buckets.h"

namespace etude {
namespace {

constexpr int64_t kLookupIndexBytes = 8;
constexpr int64_t kAdagradStateBytes = 4;
// Per sample: exp, add, divide; and cross entropy, 2 logarithms, 2 products and 4 sums.
constexpr int64_t kSigmoidFlops = 3;
constexpr int64_t kEntropyFlops = 8;
constexpr int64_t kLossGradientFlops = 2;
// Per parameter.
constexpr int64_t kSgdFlops = 2;
constexpr int64_t kAdagradFlops = 7;

// Number of elements of the model's type that are read and written.
struct Moved {
  int64_t read = 0;
  int64_t written = 0;
};

// Rows of a table, or of some of its columns, that a rank reads for a number of samples.
struct Lookups {
  std::string name;
  int64_t columns = 0;
  int64_t count = 0;    // number of rows
  int64_t samples = 0;  // number of samples whose sums it computes
};

class DlrmProgramMaker {
 public:
  using In = std::vector<size_t>;

  DlrmProgramMaker(const DlrmModel& model, const DlrmPlan& plan, const TablePlacement& placement,
                   int64_t rank)
      : model_(model),
        plan_(plan),
        placement_(placement),
        width_(ElementBytes(model.type).value_or(0)),
        samples_(plan.batch),
        traffic_(LookupTrafficOf(model, plan, placement)),
        buckets_(program_, {.bucket = plan.bucket, .weight = width_, .gradient = width_},
                 {{.ranks = plan.ranks}}) {
    for (const TablePart& part : placement.parts[static_cast<size_t>(rank)]) {
      const EmbeddingTable& table = model.tables[part.table];
      std::string name = fmt::format("table {}", part.table);
      if (part.columns != table.dimension) {
        name += fmt::format("[{}:{}]", part.first_column, part.first_column + part.columns);
      }
      const int64_t all = plan.batch * plan.ranks;
      own_.push_back({std::move(name), part.columns, all * table.lookups, all});
    }
    // Each rank has its share of the looked-up rows.
    for (const size_t i : placement.by_rows) {
      const EmbeddingTable& table = model.tables[i];
      by_rows_.push_back({fmt::format("table {} rows", i), table.dimension,
                          plan.batch * table.lookups, plan.batch * plan.ranks});
    }
    for (const size_t i : placement.replicated) {
      const EmbeddingTable& table = model.tables[i];
      replicated_.push_back(
          {fmt::format("table {}", i), table.dimension, plan.batch * table.lookups, plan.batch});
    }
  }

  std::vector<StepWork> Run() {
    Forward();
    if (plan_.training) {
      Backward();
      Update();
    }
    return std::move(program_.works());
  }

 private:
  // ---- work

  In Compute(StepWork work) {
    std::ranges::sort(work.data);
    work.data.erase(std::ranges::unique(work.data).begin(), work.data.end());
    work.type = model_.type;
    return {program_.Compute(std::move(work))};
  }
  Bytes Memory(Moved moved) const { return Bytes{(moved.read + moved.written) * width_}; }
  In Elementwise(std::string name, In in, int64_t flops, Moved moved) {
    return Compute(
        {.name = std::move(name), .data = std::move(in), .flops = flops, .memory = Memory(moved)});
  }
  // Adds matrix products with `extra` operations.
  In Multiply(std::string name, In in, ProductShape shape, int64_t extra, Moved moved) {
    const int64_t flops = 2 * shape.count * shape.rows * shape.inner * shape.columns;
    return Compute({.name = std::move(name),
                    .data = std::move(in),
                    .flops = flops + extra,
                    .matrix_flops = flops,
                    .product = shape,
                    .memory = Memory(moved)});
  }
  In Collective(std::string name, In in, CollectiveType type, Bytes bytes) {
    return {program_.Collective(std::move(name), std::move(in), type, /*group=*/0, bytes)};
  }
  // Holds memory for backward from the begin of a work until another one is done.
  void Hold(const In& in, Bytes bytes) {
    Bytes& held = program_.works()[in.back()].held;
    if (plan_.training) held = held + bytes;
  }
  void Hold(const In& in, int64_t elements) { Hold(in, Bytes{elements * width_}); }
  void Free(const In& in, Bytes bytes) {
    Bytes& freed = program_.works()[in.back()].freed;
    if (plan_.training) freed = freed + bytes;
  }
  void Free(const In& in, int64_t elements) { Free(in, Bytes{elements * width_}); }
  static void Append(In& all, const In& more) { all.insert(all.end(), more.begin(), more.end()); }

  // ---- layers

  In Linear(const std::string& name, In in, int64_t inputs, int64_t outputs, bool bias) {
    const int64_t out = samples_ * outputs;
    const int64_t weights = (inputs + (bias ? 1 : 0)) * outputs;
    return Multiply(name, std::move(in), {1, samples_, inputs, outputs}, bias ? out : 0,
                    {samples_ * inputs + weights, out});
  }
  // Adds the backward pass of a linear layer. Frees its input if nothing else needs it; returns the
  // input's gradient, if wanted.
  In LinearBackward(const std::string& name, const In& in, int64_t inputs, int64_t outputs,
                    bool bias, bool frees, bool has_input = true) {
    const int64_t out = samples_ * outputs;
    const int64_t weights = (inputs + (bias ? 1 : 0)) * outputs;
    const In gradient = Multiply(name + " weight gradient", in, {1, outputs, samples_, inputs},
                                 bias ? out : 0, {samples_ * inputs + out, weights});
    if (frees) Free(gradient, samples_ * inputs);
    buckets_.Add(0, weights, gradient);
    if (!has_input) return in;
    return Multiply(name + " input gradient", in, {1, samples_, outputs, inputs}, 0,
                    {out + inputs * outputs, samples_ * inputs});
  }
  In Mlp(const std::string& name, In in, int64_t inputs, const std::vector<int64_t>& units,
         bool last_relu) {
    for (size_t i = 0; i < units.size(); ++i) {
      const std::string layer = fmt::format("{} {}", name, i);
      in = Linear(layer, std::move(in), inputs, units[i], /*bias=*/true);
      const int64_t out = samples_ * units[i];
      if (last_relu || i + 1 < units.size()) {
        in = Elementwise(layer + " relu", std::move(in), out, {out, out});
        Hold(in, out);
      }
      inputs = units[i];
    }
    return in;
  }
  In MlpBackward(const std::string& name, In in, int64_t inputs, const std::vector<int64_t>& units,
                 bool last_relu, bool has_input) {
    for (size_t i = units.size(); i-- > 0;) {
      const std::string layer = fmt::format("{} {}", name, i);
      const int64_t out = samples_ * units[i];
      if (last_relu || i + 1 < units.size()) {
        in = Elementwise(layer + " relu backward", std::move(in), out, {2 * out, out});
        Free(in, out);
      }
      in = LinearBackward(layer, in, i == 0 ? inputs : units[i - 1], units[i], /*bias=*/true,
                          /*frees=*/i == 0, has_input || i > 0);
    }
    return in;
  }

  // ---- tables

  In LookUp(const Lookups& lookups, In in) {
    const int64_t elements = lookups.count * lookups.columns;
    const In sums = Compute({.name = lookups.name + " lookup",
                             .data = std::move(in),
                             .flops = elements,
                             .memory = Memory({elements, lookups.samples * lookups.columns}) +
                                       Bytes{lookups.count * kLookupIndexBytes}});
    Hold(sums, Bytes{lookups.count * kLookupIndexBytes});
    return sums;
  }
  // The gradient of each looked-up row updates it immediately.
  void UpdateRows(const Lookups& lookups, In in) {
    const int64_t elements = lookups.count * lookups.columns;
    const bool adagrad = plan_.optimizer == DlrmOptimizer::kAdagrad;
    const int64_t state = adagrad ? 2 * lookups.count * kAdagradStateBytes : 0;
    const In update =
        Compute({.name = lookups.name + " update",
                 .data = std::move(in),
                 .flops = adagrad ? 4 * elements + 5 * lookups.count : kSgdFlops * elements,
                 .memory = Memory({lookups.samples * lookups.columns + elements, elements}) +
                           Bytes{lookups.count * kLookupIndexBytes + state}});
    Free(update, Bytes{lookups.count * kLookupIndexBytes});
  }
  // Adds the gradient of all rows of a replicated table.
  void TableGradient(const Lookups& lookups, int64_t table_elements, const In& in) {
    const int64_t elements = lookups.count * lookups.columns;
    const In gradient =
        Compute({.name = lookups.name + " gradient",
                 .data = in,
                 .flops = elements,
                 .memory = Memory({lookups.samples * lookups.columns, table_elements}) +
                           Bytes{lookups.count * kLookupIndexBytes}});
    Free(gradient, Bytes{lookups.count * kLookupIndexBytes});
    buckets_.Add(0, table_elements, gradient);
  }

  // ---- passes

  void Forward() {
    program_.Begin({.phase = Phase::kForward});
    const bool spread = traffic_.indices.count > 0;
    In indices;
    if (spread) {
      indices = Collective("indices all_to_all", {}, CollectiveType::kAllToAll, traffic_.indices);
    }
    In own;
    for (const Lookups& lookups : own_) Append(own, LookUp(lookups, indices));
    In features;
    if (traffic_.pooled.count > 0) {
      if (own.empty()) own = indices;
      Append(features,
             Collective("lookups all_to_all", own, CollectiveType::kAllToAll, traffic_.pooled));
    } else {
      features = own;
    }
    if (!by_rows_.empty()) {
      In partial;
      for (const Lookups& lookups : by_rows_) Append(partial, LookUp(lookups, indices));
      Append(features, Collective("lookups reduce_scatter", partial, CollectiveType::kReduceScatter,
                                  traffic_.partial));
    }
    for (const Lookups& lookups : replicated_) Append(features, LookUp(lookups, {}));
    const size_t bottom = program_.works().size();
    Append(features, Mlp("bottom", {}, model_.dense, model_.bottom, /*last_relu=*/true));
    Hold({bottom}, samples_ * model_.dense);
    In out = Mlp("top", Interact(std::move(features)), model_.top_input(), model_.top,
                 /*last_relu=*/false);
    const int64_t flops = kSigmoidFlops + (plan_.training ? kEntropyFlops : 0);
    // Training also reads labels.
    loss_ = Elementwise(plan_.training ? "loss" : "sigmoid", std::move(out), flops * samples_,
                        {(plan_.training ? 2 : 1) * samples_, samples_});
    Hold(loss_, samples_);
  }

  In Interact(In in) {
    const int64_t all = samples_ * model_.feature_elements();
    in = Elementwise("features", std::move(in), 0, {all, all});
    Hold(in, all);
    switch (model_.interaction) {
      case Interaction::kConcat: return in;
      case Interaction::kCross:
        for (int64_t i = 0; i < model_.cross_layers; ++i) in = Cross(i, in);
        return in;
      case Interaction::kDot: break;
    }
    const int64_t f = model_.features();
    in = Multiply("interaction", std::move(in), {samples_, f, model_.bottom.back(), f}, 0,
                  {all, samples_ * f * f});
    const int64_t out = samples_ * model_.top_input();
    in = Elementwise("interaction output", std::move(in), 0, {out, out});
    Hold(in, out);
    return in;
  }
  In Cross(int64_t layer, const In& in) {
    const std::string name = fmt::format("cross {}", layer);
    const int64_t units = model_.feature_elements();
    In out = Linear(name + " down", in, units, model_.cross_rank, /*bias=*/false);
    Hold(out, samples_ * model_.cross_rank);
    out = Linear(name + " up", std::move(out), model_.cross_rank, units, /*bias=*/true);
    Hold(out, samples_ * units);
    Append(out, in);
    out = Elementwise(name, std::move(out), 2 * samples_ * units,
                      {3 * samples_ * units, samples_ * units});
    Hold(out, samples_ * units);
    return out;
  }

  void Backward() {
    program_.Begin({.phase = Phase::kBackward});
    In in = Elementwise("loss backward", loss_, kLossGradientFlops * samples_,
                        {2 * samples_, samples_});
    Free(in, samples_);
    in = MlpBackward("top", std::move(in), model_.top_input(), model_.top, /*last_relu=*/false,
                     /*has_input=*/true);
    in = InteractBackward(std::move(in));
    pooled_gradients_ = in;
    partial_gradients_ = in;
    if (traffic_.pooled.count > 0) {
      pooled_gradients_ =
          Collective("lookups gradient all_to_all", in, CollectiveType::kAllToAll, traffic_.pooled);
    }
    if (!by_rows_.empty()) {
      partial_gradients_ = Collective("lookups gradient all_gather", in, CollectiveType::kAllGather,
                                      traffic_.gathered);
    }
    for (size_t i = 0; i < replicated_.size(); ++i) {
      TableGradient(replicated_[i], model_.tables[placement_.replicated[i]].elements(), in);
    }
    MlpBackward("bottom", std::move(in), model_.dense, model_.bottom, /*last_relu=*/true,
                /*has_input=*/false);
  }

  In InteractBackward(In in) {
    const int64_t all = samples_ * model_.feature_elements();
    switch (model_.interaction) {
      case Interaction::kConcat: return in;
      case Interaction::kCross: return CrossBackward(std::move(in));
      case Interaction::kDot: break;
    }
    const int64_t f = model_.features();
    const int64_t squares = samples_ * f * f;
    const int64_t bottom = samples_ * model_.bottom.back();
    in = Elementwise("interaction output backward", std::move(in), 0,
                     {samples_ * model_.top_input(), squares + bottom});
    // A product for each of the two sides, their sum, and the gradient that bypassed them to the
    // bottom.
    const int64_t units = model_.bottom.back();
    const Moved moved = {squares + all, all};
    In both = Multiply("interaction right gradient", in, {samples_, units, f, f}, 0, moved);
    Append(both, Multiply("interaction left gradient", in, {samples_, f, f, units}, 0, moved));
    both =
        Elementwise("interaction gradient", std::move(both), all + bottom, {2 * all + bottom, all});
    Free(both, all);
    return both;
  }
  In CrossBackward(In in) {
    const int64_t units = model_.feature_elements();
    const int64_t all = samples_ * units;
    In first;  // gradient of the first layer's input, as far as known
    for (int64_t i = model_.cross_layers; i-- > 0;) {
      const std::string name = fmt::format("cross {}", i);
      In both = in;
      Append(both, first);
      const int64_t sums = first.empty() ? 0 : 1;
      first = Elementwise(name + " backward", std::move(both), (2 + sums) * all,
                          {(3 + sums) * all, 2 * all});
      Free(first, all);
      In out = LinearBackward(name + " up", first, model_.cross_rank, units, /*bias=*/true,
                              /*frees=*/true);
      out = LinearBackward(name + " down", out, units, model_.cross_rank, /*bias=*/false,
                           /*frees=*/i > 0);
      Append(out, in);
      in = Elementwise(name + " sum", std::move(out), all, {2 * all, all});
    }
    Append(in, first);
    in = Elementwise("features gradient", std::move(in), all, {2 * all, all});
    Free(in, all);
    return in;
  }

  void Update() {
    In reduced = buckets_.EndBackward();
    program_.Begin({.phase = Phase::kOptimizer});
    for (const Lookups& lookups : own_) UpdateRows(lookups, pooled_gradients_);
    for (const Lookups& lookups : by_rows_) UpdateRows(lookups, partial_gradients_);
    const bool adagrad = plan_.optimizer == DlrmOptimizer::kAdagrad;
    const int64_t updated = buckets_.updated();
    const int64_t state = adagrad ? 2 * updated * kAdagradStateBytes : 0;
    Compute({.name = "optimizer",
             .data = std::move(reduced),
             .flops = (adagrad ? kAdagradFlops : kSgdFlops) * updated,
             .memory = Memory({2 * updated, updated}) + Bytes{state}});
  }

  const DlrmModel& model_;
  const DlrmPlan& plan_;
  const TablePlacement& placement_;
  const int64_t width_;
  const int64_t samples_;
  const LookupTraffic traffic_;
  std::vector<Lookups> own_;
  std::vector<Lookups> by_rows_;
  std::vector<Lookups> replicated_;

  StepProgram program_{1};
  ReplicaBuckets buckets_;
  In loss_;
  In pooled_gradients_;
  In partial_gradients_;
};

}  // namespace

LookupTraffic LookupTrafficOf(const DlrmModel& model, const DlrmPlan& plan,
                              const TablePlacement& placement) {
  if (plan.ranks == 1) return {};
  const int64_t width = ElementBytes(model.type).value_or(0);
  int64_t most_indices = 0;  // per sample
  int64_t most_columns = 0;
  for (const std::vector<TablePart>& parts : placement.parts) {
    int64_t indices = 0;
    int64_t columns = 0;
    for (const TablePart& part : parts) {
      indices += model.tables[part.table].lookups;
      columns += part.columns;
    }
    most_indices = std::max(most_indices, indices);
    most_columns = std::max(most_columns, columns);
  }
  int64_t row_indices = 0;
  int64_t row_columns = 0;
  for (const size_t table : placement.by_rows) {
    row_indices += model.tables[table].lookups;
    row_columns += model.tables[table].dimension;
  }
  const int64_t all = plan.batch * plan.ranks;
  return {.indices = Bytes{(all * most_indices + plan.batch * row_indices) * kLookupIndexBytes},
          .pooled = Bytes{all * most_columns * width},
          .partial = Bytes{all * row_columns * width},
          .gathered = Bytes{plan.batch * row_columns * width}};
}

std::vector<StepWork> DlrmProgram(const DlrmModel& model, const DlrmPlan& plan,
                                  const TablePlacement& placement, int64_t rank) {
  return DlrmProgramMaker(model, plan, placement, rank).Run();
}

}  // namespace etude
