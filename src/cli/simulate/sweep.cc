#include "src/cli/app/commands.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/text/quantity.h"
#include "src/cli/app/options.h"
#include "src/cli/app/stop_signal.h"
#include "src/jobs/sweep/sweep.h"
#include "src/report/tables/sweep_tables.h"
#include "src/report/text/format.h"
#include "src/report/text/json_output.h"

namespace etude {
namespace {

// Parses a shard: "3/8" selects every eighth task, from the third on.
Result<SweepShard> ParseShard(const std::string& text) {
  const size_t slash = text.find('/');
  const auto number = ParseWhole(std::string_view(text).substr(0, slash));
  const auto of = slash == std::string::npos ? std::nullopt
                                             : ParseWhole(std::string_view(text).substr(slash + 1));
  if (!number || !of || *number < 1 || *of < *number) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("--shard: found '{}', expected I/N with I from 1 to N", text));
  }
  return SweepShard{.number = *number, .of = *of};
}

class SweepCommand : public Command {
 public:
  std::string_view name() const override { return "sweep"; }
  std::string_view summary() const override {
    return "simulate and rank all combinations of jobs, plans and machines in a file";
  }

  void Declare(Options& options) override {
    options.Positional("spec", &request_.spec, "sweep file in TOML");
    options.Output("-o,--output", &request_.folder, "DIR", "folder for results; created if missing",
                   {});
    options.Flag("--dry-run", &request_.dry_run, "list the points without simulating");
    options.Value("--shard", &shard_, "I/N",
                  "simulate only part I of N; a final run without --shard prints all results");
    options.Jobs(&request_.threads, "points");
    options.Value("--top", &top_, "N", "number of points to print as text; 0 for all",
                  {.least = 0});
    std::vector<std::string> orders = {"auto"};
    for (const SweepOrder order : kSweepOrders) orders.emplace_back(Name(order));
    options.Choice(
        "--by", &by_, std::move(orders),
        "rank points by this figure; auto: throughput if all points have it, else step time");
    options.Output("--report", &request_.report, "FILE", "also write a page with charts (HTML)",
                   {".html"});
    options.Flag("--json", &json_, "print JSON");
    options.Flag("--csv", &csv_, "print all points as CSV");
  }

  Result<ExitCode> Run(const Console& console) override {
    ETUDE_RETURN_IF_ERROR(CheckUsage());
    ETUDE_ASSIGN_OR_RETURN(request_.shard, ParseShard(shard_.value_or("1/1")));
    for (const SweepOrder order : kSweepOrders) {
      if (by_ == Name(order)) request_.order = order;
    }
    request_.strict = console.strict();
    Sweep sweep(request_);
    ETUDE_RETURN_IF_ERROR(sweep.Prepare(console.context()));
    if (!request_.dry_run) {
      ETUDE_ASSIGN_OR_RETURN(const SweepCounts counts, SimulateUntilStopped(sweep, console));
      console.Say(ToText(counts));
    }
    ETUDE_ASSIGN_OR_RETURN(const SweepResults results, sweep.Finish());
    if (json_) {
      console.Print(JsonText(SweepJson(results)));
    } else if (csv_) {
      console.PrintData(ToCsv(SweepPointTable(results)));
    } else {
      console.Print(SweepText(results, static_cast<size_t>(top_)));
    }
    const bool all_done = SweepFailureTable(results).rows.empty();
    return all_done ? ExitCode::kOk : ExitCode::kNo;
  }

 private:
  Status CheckUsage() const {
    const auto wrong = [](std::string_view message) {
      return MakeError(ErrorCode::kUsage, fmt::format("sweep: {}", message));
    };
    if (request_.folder.empty() && !request_.dry_run) return wrong("missing -o DIR");
    if (request_.folder == "-") return wrong("-o -: expected a folder");
    if (json_ && csv_) return wrong("use either --json or --csv");
    if (request_.report == "-" || (request_.dry_run && !request_.report.empty())) {
      return wrong("--report requires a file and cannot be combined with --dry-run");
    }
    return {};
  }

  // If interrupted, keeps the finished points. A second signal ends the command.
  static Result<SweepCounts> SimulateUntilStopped(Sweep& sweep, const Console& console) {
    ETUDE_ASSIGN_OR_RETURN(const auto stop, StopSignal::Make());
    RunContext context = console.context();
    context.stop = stop->flag();
    return sweep.Simulate(context);
  }

  static std::string ToText(const SweepCounts& counts) {
    if (counts.simulated + counts.refused + counts.excluded == 0)
      return "all points are already simulated";
    std::string text = fmt::format("{} simulated", FormatCount(counts.simulated, "point"));
    if (counts.refused > 0) text += fmt::format(", {} rejected", counts.refused);
    if (counts.excluded > 0) text += fmt::format(", {} excluded", FormatCount(counts.excluded));
    return text;
  }

  SweepRequest request_;
  std::optional<std::string> shard_;
  int64_t top_ = 20;
  std::string by_ = "auto";
  bool json_ = false;
  bool csv_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeSweepCommand() { return std::make_unique<SweepCommand>(); }

}  // namespace etude
