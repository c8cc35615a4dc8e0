#include "src/cli/torch/calibrate_operators.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "src/analysis/compare/step_kinds.h"
#include "src/base/machine/core_use.h"
#include "src/base/text/format_count.h"
#include "src/cli/torch/measure_operators.h"
#include "src/cli/torch/rank_processes.h"
#include "src/cli/torch/replay_kinds.h"
#include "src/cli/torch/replay_source.h"
#include "src/formats/io/atomic_file.h"
#include "src/formats/job/capture_folder.h"
#include "src/report/text/json_output.h"
#include "src/report/text/table.h"
#include "src/run/step/recorded_step.h"
#include "src/torch/operator_library.h"
#include "src/transform/operators/operator_key.h"
#include "src/transform/operators/operator_table.h"

namespace etude {
namespace {

using nlohmann::ordered_json;

class OperatorCalibrator {
 public:
  // `gate`: measure beside other processes; may be null.
  OperatorCalibrator(const OperatorCalibration& wanted, const Console& console, StepGate* gate)
      : wanted_(wanted), console_(console), gate_(gate) {
    if (writes()) return;
    context_.warn = {};
    context_.progress = {};
  }

  Result<ExitCode> Run() {
    for (const std::string& library : wanted_.libraries) {
      ETUDE_RETURN_IF_ERROR(LoadOperatorLibrary(library));
    }
    std::vector<std::optional<int64_t>> ranks = {std::nullopt};
    if (IsFolder(wanted_.job)) {
      ETUDE_ASSIGN_OR_RETURN(const RanksOfJob job, ChooseRanks(wanted_.job, "all", context_));
      ranks.assign(job.present.begin(), job.present.end());
    }
    for (const std::optional<int64_t> rank : ranks) ETUDE_RETURN_IF_ERROR(MeasureRank(rank));
    return writes() ? Answer() : ExitCode::kOk;
  }

 private:
  bool writes() const { return gate_ == nullptr || gate_->is_lead(); }

  Status MeasureRank(std::optional<int64_t> rank) {
    ETUDE_ASSIGN_OR_RETURN(const ReplaySource source,
                           OpenSource(wanted_.job, rank, console_.strict(), context_));
    ReplayOptions options;
    options.device = "cpu";
    FollowProgram(source, wanted_.threads, options);
    // The replay of a part need not have the recorded page faults.
    options.minor_faults = std::nullopt;
    options.launched = nullptr;
    const OperatorMachine machine =
        OperatorMachineNow(options.threads, wanted_.in == "step", wanted_.at_once);
    ETUDE_RETURN_IF_ERROR(CheckCores(options.threads));
    if (!is_open_) {
      if (is_stdout()) {
        table_.machine = machine;
      } else {
        ETUDE_ASSIGN_OR_RETURN(table_, OpenOperatorTable(wanted_.output, machine, context_));
        if (writes()) ETUDE_RETURN_IF_ERROR(AtomicFile::Create(wanted_.output));
      }
      is_open_ = true;
    }
    if (const std::string other = DifferenceOf(machine, table_.machine); !other.empty()) {
      return BadInput(fmt::format("{}: {} for another rank; choose the number with --threads",
                                  wanted_.job, other));
    }
    std::vector<StepToMeasure> steps;
    bool has_news = false;
    for (const StepKind& kind : source.Kinds()) {
      TakeStep(kind, options);
      ETUDE_ASSIGN_OR_RETURN(const RecordedStep step,
                             RecordedStep::Select(source.trace, "", options.step));
      has_news = HasNews(step) || has_news;
      steps.push_back({&source.trace, options});
    }
    if (gate_ != nullptr) has_news = gate_->Pass(has_news);
    return has_news ? MeasureSteps(steps) : Status();
  }

  // Processes that wait for cores would add this to the times.
  Status CheckCores(int64_t threads) const {
    const double cores = CoreLimit();
    if (wanted_.at_once == 1 || cores <= 0) return {};
    if (static_cast<double>(threads) * static_cast<double>(wanted_.at_once) <= cores) return {};
    return Unavailable(fmt::format(
        "--at-once: found {} of {}, expected at most as many threads as the {:.6g} cores here",
        FormatCount(static_cast<uint64_t>(wanted_.at_once), "process", "processes"),
        FormatCount(static_cast<uint64_t>(threads), "thread"), cores));
  }

  // Notes the operators of a step, and returns whether outermost ones were not seen before and are
  // not in the table.
  bool HasNews(const RecordedStep& step) {
    bool has_news = false;
    for (const NodeId node : step.top_operators()) {
      const std::optional<OperatorKey> key = KeyOf(step.trace(), node);
      if (!key) ++unknown_;
      if (!NoteKept(step.trace(), node) && key) has_news = tried_.insert(*key).second || has_news;
    }
    return has_news;
  }

  // Notes an operator if the table has it, or those that it calls. Returns whether the table has
  // the operator itself.
  bool NoteKept(const Trace& trace, NodeId outermost) {
    bool is_kept = false;
    std::vector<NodeId> open = {outermost};
    while (!open.empty()) {
      const NodeId node = open.back();
      open.pop_back();
      const std::optional<OperatorKey> key = KeyOf(trace, node);
      const MeasuredCall* time = key ? table_.Find(*key) : nullptr;
      if (time != nullptr && !IsRefused(*time)) {
        states_.try_emplace(*key, "kept");
        is_kept = is_kept || node == outermost;
      } else {
        const auto children = trace.children(node);
        open.insert(open.end(), children.begin(), children.end());
      }
    }
    return is_kept;
  }

  // Rows that are too noisy are measured again.
  bool IsRefused(const MeasuredCall& time) const { return time.noisy && !wanted_.force; }

  Status MeasureSteps(const std::vector<StepToMeasure>& steps) {
    const auto is_wanted = [&](const OperatorKey& key) {
      const MeasuredCall* time = table_.Find(key);
      return time == nullptr || IsRefused(*time);
    };
    ETUDE_ASSIGN_OR_RETURN(OperatorsMeasured found,
                           MeasureOperators(steps, table_.machine.in_step, wanted_.rounds,
                                            is_wanted, context_, gate_));
    for (const auto& [key, time] : found.times) {
      if (IsRefused(time)) {
        states_[key] = "refused";
        refused_.insert_or_assign(key, time);
        continue;
      }
      states_[key] = time.noisy ? "noisy" : "measured";
      refused_.erase(key);
      table_.times.insert_or_assign(key, time);
    }
    for (auto& [key, reason] : found.failures) failures_.insert_or_assign(key, reason);
    if (!writes() || is_stdout()) return {};
    return WriteFile(wanted_.output, OperatorTableText(table_));
  }

  // Whether the table goes to standard output, at once and without an answer.
  bool is_stdout() const { return wanted_.output == "-"; }

  Table Rows() const {
    Table table{.key = "operators",
                .title = "operators, by time of a call",
                .columns = {{"operator", "operator"},
                            {"arguments", "arguments"},
                            {"time_ns", "time", Unit::kTime},
                            {"spread", "spread", Unit::kShare},
                            {"calls", "calls", Unit::kCount},
                            {"state", "state"}}};
    std::vector<std::pair<double, std::vector<Cell>>> rows;
    for (const auto& [key, state] : states_) {
      const MeasuredCall& time = state == "refused" ? refused_.at(key) : table_.times.at(key);
      rows.emplace_back(time.time_ns,
                        std::vector<Cell>{key.name, key.arguments, std::llround(time.time_ns),
                                          time.spread, time.calls, state});
    }
    std::ranges::stable_sort(rows, std::ranges::greater{},
                             &std::pair<double, std::vector<Cell>>::first);
    for (auto& [time, row] : rows) table.rows.push_back(std::move(row));
    return table;
  }

  uint64_t Count(std::string_view state) const {
    return static_cast<uint64_t>(
        std::ranges::count_if(states_, [&](const auto& one) { return one.second == state; }));
  }

  // Returns the operators that cannot be measured, with reasons.
  std::map<std::string, std::string> NotMeasured() const {
    std::map<std::string, std::string> names;
    for (const auto& [key, reason] : failures_) names[key.name] = reason;
    for (const OperatorKey& key : tried_) {
      if (!states_.contains(key)) {
        names.try_emplace(key.name, "the replay runs the operators that it calls instead, or none");
      }
    }
    return names;
  }

  Result<ExitCode> Answer() const {
    constexpr size_t kShownRows = 20;
    const ExitCode code = refused_.empty() ? ExitCode::kOk : ExitCode::kNo;
    if (is_stdout()) {
      ETUDE_RETURN_IF_ERROR(WriteFile(wanted_.output, OperatorTableText(table_)));
      ComplainOfNoise();
      return code;
    }
    const OperatorMachine& machine = table_.machine;
    const Table rows = Rows();
    const std::map<std::string, std::string> missing = NotMeasured();
    if (wanted_.json) {
      ordered_json not_measured = ordered_json::array();
      for (const auto& [name, reason] : missing) {
        not_measured.push_back({{"operator", name}, {"reason", reason}});
      }
      console_.Print(JsonText(ordered_json{{"output", wanted_.output},
                                           {"device", machine.device},
                                           {"processor", machine.processor},
                                           {"threads", machine.threads},
                                           {"torch", machine.torch},
                                           {"measured", Count("measured") + Count("noisy")},
                                           {"kept", Count("kept")},
                                           {"refused", Count("refused")},
                                           {"without_sizes", unknown_},
                                           {"not_measured", std::move(not_measured)},
                                           {rows.key, ToJson(rows)}}));
      return code;
    }
    std::string text =
        fmt::format("{}: {} on {}, {}, torch {}\n{} measured, {} kept, {} refused\n{}",
                    wanted_.output, FormatCount(table_.times.size(), "operator"),
                    machine.processor.empty() ? machine.device : machine.processor,
                    FormatCount(static_cast<uint64_t>(machine.threads), "thread"), machine.torch,
                    FormatCount(Count("measured") + Count("noisy")), FormatCount(Count("kept")),
                    FormatCount(Count("refused")), ToText(rows, kShownRows));
    for (const auto& [name, reason] : missing) {
      text += fmt::format("not measured: {}: {}\n", name, reason);
    }
    if (unknown_ > 0) {
      text += fmt::format("not measured: {} whose sizes the trace lacks\n",
                          FormatCount(unknown_, "call"));
    }
    console_.Print(text);
    ComplainOfNoise();
    return code;
  }

  void ComplainOfNoise() const {
    for (const auto& [key, time] : refused_) {
      console_.Complain(fmt::format("too noisy to be written: {}({}): spread {:.0f} %", key.name,
                                    key.arguments, time.spread * 100));
    }
  }

  const OperatorCalibration& wanted_;
  const Console& console_;
  StepGate* const gate_;
  RunContext context_ = console_.context();
  bool is_open_ = false;
  OperatorTable table_;
  std::set<OperatorKey> tried_;                // outermost operators that the table lacked
  std::map<OperatorKey, std::string> states_;  // "kept", "measured", "noisy" or "refused"
  std::map<OperatorKey, MeasuredCall> refused_;
  std::map<OperatorKey, std::string> failures_;
  uint64_t unknown_ = 0;  // operators without sizes in the trace
};

}  // namespace

Result<ExitCode> CalibrateOperators(const OperatorCalibration& wanted, const Console& console) {
  if (wanted.at_once == 1) return OperatorCalibrator(wanted, console, nullptr).Run();
  ETUDE_ASSIGN_OR_RETURN(StepGate gate, StepGate::Make(static_cast<size_t>(wanted.at_once)));
  std::vector<int64_t> processes(static_cast<size_t>(wanted.at_once));
  std::iota(processes.begin(), processes.end(), 0);
  return RunRanks(processes, /*lead=*/0, [&](int64_t process) {
    gate.Join(process == 0);
    return OperatorCalibrator(wanted, console, &gate).Run();
  });
}

}  // namespace etude
