#include "src/cli/app/commands.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/cli/app/stop_signal.h"
#include "src/cli/simulate/machine_arguments.h"
#include "src/cli/simulate/variation_options.h"
#include "src/cli/tool/table_output.h"
#include "src/formats/io/atomic_file.h"
#include "src/formats/io/byte_source.h"
#include "src/formats/job/job_folder.h"
#include "src/jobs/capacity_table.h"
#include "src/jobs/edits/compared_steps.h"
#include "src/jobs/machine_options.h"
#include "src/jobs/recorded_times.h"
#include "src/jobs/shared_network.h"
#include "src/jobs/sim_job.h"
#include "src/jobs/sim_warnings.h"
#include "src/jobs/simulated_files.h"
#include "src/jobs/simulated_step.h"
#include "src/report/tables/energy_tables.h"
#include "src/report/tables/graph_time_tables.h"
#include "src/report/tables/measured_table.h"
#include "src/report/tables/simulated/sensitivity_table.h"
#include "src/report/tables/simulated/sharing_table.h"
#include "src/report/tables/simulated/sim_memory_table.h"
#include "src/report/tables/simulated/sim_page.h"
#include "src/report/tables/simulated/sim_path_tables.h"
#include "src/report/tables/simulated/sim_tables.h"
#include "src/report/tables/simulated/straggler_table.h"
#include "src/report/tables/simulated/variation_tables.h"
#include "src/report/text/format.h"
#include "src/report/text/json_output.h"
#include "src/report/text/plan_text.h"
#include "src/sim/result/energy_file.h"

namespace etude {
namespace {

void DeclareJob(SimJobOptions& job, Options& options) {
  options.Positionals("job", &job.paths,
                      "folder of rank classes, capture folder, traces of all ranks in any format, "
                      "or PREFIX for PREFIX.0.et …");
  options.Value("--comm-groups", &job.groups, "FILE",
                "file with the ranks of process groups, in ASTRA-sim's format, for traces that "
                "lack them (default: PREFIX.comm_groups.json next to the traces)");
  options.Choice("--compute", &job.compute, {"durations", "flops"},
                 "cost of computations in recorded traces: durations, or also FLOPs and bytes by "
                 "shape for a roofline");
  options.Flag("--fill-ranks", &job.fill_ranks,
               "use the trace of the nearest recorded rank for ranks without one");
  options.Value(
      "--operators", &job.what_if.operators, "FILE",
      "table of measured operators (etude calibrate --operators), such as those of another "
      "machine, for the times of a recorded job");
  options.Value("--recorded-operators", &job.what_if.recorded_operators, "FILE",
                "with --operators of another machine: table of the machine of the recording");
  options.Flag("--with-recording", &job.with_recording,
               "keep the recording overhead in the times of recorded jobs");
  options.Jobs(&job.jobs, "traces");
}

void DeclareFiles(SimulatedFilesOptions& files, Options& options) {
  options.Output("-o,--output", &files.folder, "FOLDER",
                 "write the simulated job: traces with simulated times", {});
  options.Choice(
      "--to", &files.to, {"et", "classes", "packed"},
      "output format: one Chakra trace per rank, one per class of ranks, or the latter packed");
}

// Returns the table without times and unfinished counts that are 0 or unknown in all rows.
Table WithoutZeros(Table table) {
  for (size_t i = table.columns.size(); i-- > 0;) {
    const auto is_zero = [&](const std::vector<Cell>& row) {
      return row[i] == Cell(int64_t{0}) || row[i] == Cell();
    };
    static constexpr std::string_view kAlways[] = {"end_ns", "compute_ns", "idle_ns"};
    const std::string& key = table.columns[i].key;
    const bool may_go = key == "unfinished" || (table.columns[i].unit == Unit::kTime &&
                                                std::ranges::count(kAlways, key) == 0);
    if (!may_go || !std::ranges::all_of(table.rows, is_zero)) continue;
    table.columns.erase(table.columns.begin() + static_cast<ptrdiff_t>(i));
    for (std::vector<Cell>& row : table.rows) row.erase(row.begin() + static_cast<ptrdiff_t>(i));
  }
  return table;
}

// Returns the recorded time as text, "" if the job was not recorded or the time is unknown.
std::string RecordedTextOf(const SimJob& job) {
  std::vector<std::string> times;
  if (job.edited_from) {
    const std::optional<Nanos>& recorded = job.edited_from->recorded_step;
    const std::optional<Nanos>& program = job.edited_from->program_step;
    if (!recorded && !program) return "";
    return fmt::format("  recorded     before the edit a step {}{}\n",
                       recorded ? FormatTime(*recorded) : "",
                       program ? ", without recording " + FormatTime(*program) : "");
  }
  if (job.recorded_step) times.push_back("a step " + FormatTime(*job.recorded_step));
  if (job.program_step) times.push_back("without recording " + FormatTime(*job.program_step));
  if (job.recording_taken > Nanos{} && job.recorded_step) {
    times.push_back(FormatTime(job.recording_taken) + " of recording overhead subtracted");
  }
  return times.empty() ? "" : fmt::format("  recorded     {}\n", fmt::join(times, ", "));
}

class SimulateCommand : public Command {
 public:
  std::string_view name() const override { return "simulate"; }
  std::string_view summary() const override {
    return "simulate a job on a machine: step time and waits";
  }
  void Declare(Options& options) override {
    DeclareJob(job_, options);
    DeclareMachine(machine_,
                   "dimensions such as \"Ring(8):50GB/s,500ns …\", or a file: ASTRA-sim's, an "
                   "InfraGraph or a list of links",
                   options);
    options.Choice("--launches", &launches_, {"none", "recorded"},
                   "host of recorded jobs with device work: without time, or with the recorded "
                   "times of its launches (default: recorded with --machine recorded)");
    options.Choice("--times", &times_, {"model", "recorded"},
                   "node times: simulated on a machine, or as recorded");
    options.Flag("--sensitivity", &sensitivity_,
                 "also simulate machines that are 1 % faster in one respect: what limits the step");
    options.Flag("--ideal", &ideal_,
                 "also simulate all ranks with the mean times of ranks that do the same: what "
                 "stragglers cost, by rank, pipeline stage and operator, and what remedies gain");
    options.Values("--measured", &measured_, "JOB",
                   "recorded job whose measured step is compared, such as a recording of the "
                   "program with the edits; it is simulated on the same machine, too");
    options.Value("--energy", &energy_, "FILE",
                  "power of devices and hosts, and energy of links: also print the energy of the "
                  "step");
    options.Values("--beside", &shared_.beside, "JOB",
                   "another job on the same network: what the jobs cost each other");
    options.Value(
        "--place", &shared_.place, "HOW",
        "NPUs of the jobs: packed (default), spread, random, random:SEED, or NPUs such as "
        "0-3,8/4-7,9; others are idle");
    options.Value("--capacity", &capacity_text_, "SIZE|DEVICE",
                  "memory of a device, such as 80GB or h100-sxm: whether the job fits into it");
    DeclareVariation(variation_, options);
    options.Output("--report", &report_, "FILE", "also write a page with charts (HTML)", {".html"});
    DeclareFiles(files_, options);
    std::vector<std::string> names = SimTableNames();
    names.insert(names.end(), kSimPathTables.begin(), kSimPathTables.end());
    names.emplace_back(kSimMemoryTable);
    names.emplace_back(kCapacityTable);
    names.emplace_back(kSensitivityTable);
    names.emplace_back(kVariationTable);
    names.emplace_back(kFailureTable);
    names.emplace_back(kStragglerTable);
    names.emplace_back(kRemedyTable);
    names.emplace_back(kSharingTable);
    names.emplace_back(kMeasuredTable);
    names.insert(names.end(), kEnergyTables.begin(), kEnergyTables.end());
    names.insert(names.end(), kGraphTimeTables.begin(), kGraphTimeTables.end());
    output_.Declare(options, std::move(names));
  }
  Result<ExitCode> Run(const Console& console) override {
    ETUDE_RETURN_IF_ERROR(output_.Check());
    const bool is_recorded = times_ == "recorded";
    const bool is_of_recorded = std::ranges::count(kGraphTimeTables, output_.table()) > 0;
    if (!output_.table().empty() && is_recorded != is_of_recorded) {
      return MakeError(ErrorCode::kUsage,
                       fmt::format("--table: table '{}' {} --times recorded", output_.table(),
                                   is_recorded ? "is not available with" : "requires"));
    }
    if (output_.table() == kSensitivityTable && !sensitivity_) {
      return MakeError(ErrorCode::kUsage, "--table: table 'sensitivity' requires --sensitivity");
    }
    if ((output_.table() == kStragglerTable || output_.table() == kRemedyTable) && !ideal_) {
      return MakeError(ErrorCode::kUsage,
                       fmt::format("--table: table '{}' requires --ideal", output_.table()));
    }
    if (output_.table() == kCapacityTable && capacity_text_.empty()) {
      return MakeError(ErrorCode::kUsage, "--table: table 'capacity' requires --capacity");
    }
    if (launches_ == "recorded" && (is_recorded || !shared_.empty())) {
      return MakeError(ErrorCode::kUsage,
                       "simulate: --launches cannot be combined with --times recorded, --beside or "
                       "--place");
    }
    if (!capacity_text_.empty()) {
      if (is_recorded || !shared_.empty()) {
        return MakeError(ErrorCode::kUsage,
                         "simulate: --capacity cannot be combined with --times recorded, --beside "
                         "or --place");
      }
      ETUDE_ASSIGN_OR_RETURN(capacity_, ParseCapacity(capacity_text_));
      job_.memory = true;
    }
    ETUDE_RETURN_IF_ERROR(CheckVariation(variation_, output_.table()));
    if (output_.table() == kMeasuredTable && measured_.empty()) {
      return MakeError(ErrorCode::kUsage, "--table: table 'measured' requires --measured");
    }
    if (energy_.empty() && std::ranges::count(kEnergyTables, output_.table()) > 0) {
      return MakeError(ErrorCode::kUsage,
                       fmt::format("--table: table '{}' requires --energy FILE", output_.table()));
    }
    if (is_recorded && !report_.empty()) {
      return MakeError(ErrorCode::kUsage,
                       "simulate: --report cannot be combined with --times recorded");
    }
    if (is_recorded) return RunRecorded(console);
    const bool is_shared = !shared_.empty();
    if (output_.table() == kSharingTable && !is_shared) {
      return MakeError(ErrorCode::kUsage, "--table: table 'jobs' requires --beside or --place");
    }
    if (report_ == "-") {
      return MakeError(ErrorCode::kUsage, "simulate: --report: found '-', expected a file");
    }
    if (is_shared) return RunShared(console);
    if (files_.folder.empty() && files_ != SimulatedFilesOptions()) {
      return MakeError(ErrorCode::kUsage, "simulate: --to requires -o FOLDER");
    }
    const bool strict = console.strict();
    ETUDE_RETURN_IF_ERROR(files_.Check(job_, console.context()));
    ETUDE_ASSIGN_OR_RETURN(const std::optional<EnergyFigures> figures, ReadEnergy(console));
    const bool is_timed = !machine_.machine.empty();
    SimMachine machine;
    SimJob job;
    SimJobOptions options = job_;
    options.recorded_communication = machine_.machine == kRecordedMachine;
    options.recorded_launches = HasRecordedLaunches();
    // A folder of classes has all ranks; measured jobs may lack some.
    const bool has_all = options.paths.size() == 1 && IsJobFolder(options.paths.front());
    if (!measured_.empty() && has_all) options.fill_ranks = false;
    if (is_timed) {
      ETUDE_ASSIGN_OR_RETURN(job, ReadSimJob(options, /*npus=*/0, strict, console.context()));
    }
    ETUDE_ASSIGN_OR_RETURN(
        machine, ReadMachine(machine_, std::ssize(job.workload.ranks), strict, console.context()));
    if (!is_timed) {
      ETUDE_ASSIGN_OR_RETURN(job, ReadSimJob(options, machine.npus(), strict, console.context()));
    }
    for (const AppliedEdit& edit : job.edits) {
      job.notes.push_back(fmt::format("{}: {} ({})", edit.edit, edit.text, Name(edit.certainty)));
    }
    ETUDE_RETURN_IF_ERROR(files_.CheckJob(job));
    std::optional<ComparedSteps> compared;
    ETUDE_ASSIGN_OR_RETURN(const auto stop, StopSignal::Make());
    RunContext context = console.context();
    context.stop = stop->flag();
    ETUDE_ASSIGN_OR_RETURN(const SimulatedStep step,
                           SimulateUntilStopped(std::move(machine), std::move(job), figures, strict,
                                                context, compared));
    // A signal ends the simulation, and its files are written. A signal meanwhile ends that, too.
    if (context.stopped()) context.stop = nullptr;
    const auto written = WriteSimulatedFiles(files_, step.job, step.result, strict, context);
    if (!written && written.error().code == ErrorCode::kInterrupted) {
      Print(step, {}, console);
      return tl::unexpected<Error>(written.error());
    }
    if (!written) return tl::unexpected<Error>(written.error());
    if (!files_.folder.empty()) {
      ETUDE_RETURN_IF_ERROR(WriteComparedSteps(compared, files_.folder));
    }
    if (!report_.empty()) ETUDE_RETURN_IF_ERROR(WriteFile(report_, ToHtml(SimPage(PageOf(step)))));
    Print(step, *written, console);
    if (step.result.stopped) {
      console.Complain("interrupted: figures cover only the part simulated so far");
      return ExitCode::kInterrupted;
    }
    if (!step.diagnosis) return ExitCode::kOk;
    for (const std::string& line : WhyStuck(*step.diagnosis, step.job.prefix)) {
      console.Complain(line);
    }
    return ExitCode::kNo;
  }

 private:
  bool HasRecordedLaunches() const {
    return launches_.empty() ? machine_.machine == kRecordedMachine : launches_ == "recorded";
  }

  // Adds the table of sensitivities to a step that has ended.
  Status AddSensitivities(const RunContext& context, SimulatedStep& step) const {
    if (!sensitivity_ || !step.ended()) return {};
    ETUDE_ASSIGN_OR_RETURN(std::vector<Sensitivity> found,
                           SensitivitiesOf(step.machine, step.job.workload, context));
    step.tables.push_back(SensitivityTable(std::move(found), step.account.step));
    return {};
  }

  Status AddVariation(const RunContext& context, SimulatedStep& step) const {
    if (!step.ended()) return {};
    ETUDE_ASSIGN_OR_RETURN(
        std::vector<Table> tables,
        VariationTables(variation_, step.machine, step.job.workload, step.account.step, context));
    std::ranges::move(tables, std::back_inserter(step.tables));
    return {};
  }

  // Returns nullopt without --energy.
  Result<std::optional<EnergyFigures>> ReadEnergy(const Console& console) const {
    if (energy_.empty()) return std::nullopt;
    ETUDE_ASSIGN_OR_RETURN(const std::string text,
                           ReadWholeFile(energy_, console.context().limits));
    return ParseEnergyFigures(text, energy_);
  }
  // Adds the energy of a step that has ended.
  Status AddEnergy(const std::optional<EnergyFigures>& figures, SimulatedStep& step) const {
    if (!figures || !step.ended()) return {};
    ETUDE_ASSIGN_OR_RETURN(const StepEnergy energy,
                           EnergyOf(*figures, step.machine, step.result, step.account));
    for (Table& table : EnergyTables(*figures, energy, step.result, step.account)) {
      step.tables.push_back(std::move(table));
    }
    std::ranges::copy(energy.notes, std::back_inserter(step.job.notes));
    return {};
  }

  // Adds the table of stragglers to a step that has ended.
  Status AddStragglers(const RunContext& context, SimulatedStep& step) const {
    if (!ideal_ || !step.ended()) return {};
    if (!step.job.job) {
      return BadInput(
          fmt::format("--ideal: found {}.0.et …, expected traces or a folder with "
                      "the names of operators",
                      step.job.prefix));
    }
    const WorkNames names = WorkNamesOf(*step.job.job, step.job.workload);
    ETUDE_ASSIGN_OR_RETURN(const StragglerStudy study,
                           StudyStragglers(step.machine, step.job.workload, names, context));
    step.tables.push_back(StragglerTable(study, step.account.step));
    step.tables.push_back(RemedyTable(study, step.account.step));
    if (study.kinds > 1) {
      step.job.notes.push_back(
          fmt::format("--ideal compares ranks that do the same: {} of ranks, {} alone",
                      FormatCount(study.kinds, "kind"), FormatCount(study.unlike)));
    }
    return {};
  }

  // Adds the table of measured jobs, each simulated on the machine of `step`. Returns the steps of
  // an edited job, or one with measured ones, side by side.
  Result<std::optional<ComparedSteps>> CompareSteps(bool strict, const RunContext& context,
                                                    SimulatedStep& step) const {
    const std::optional<EditedFrom>& from = step.job.edited_from;
    if (!step.ended() || (measured_.empty() && !from)) return std::nullopt;
    const auto compared = [](std::string name, const SimulatedStep& one) {
      const auto& job = one.job;
      const auto measured = job.program_step ? job.program_step : job.recorded_step;
      return ComparedStep{.job = std::move(name),
                          .measured = measured ? std::optional(measured->count) : std::nullopt,
                          .simulated = one.account.step,
                          .mean = MeanOf(one.account).times};
    };
    std::vector<ComparedStep> jobs{compared("this job", step)};
    if (from && (from->program_step || from->recorded_step)) jobs.push_back(BeforeEdit(*from));
    const bool is_timed = !machine_.machine.empty();
    for (const std::string& path : measured_) {
      const SimJobOptions options{.paths = {path},
                                  .fill_ranks = job_.fill_ranks,
                                  .recorded_communication = machine_.machine == kRecordedMachine,
                                  .recorded_launches = HasRecordedLaunches(),
                                  .jobs = job_.jobs};
      ETUDE_ASSIGN_OR_RETURN(
          SimJob job, ReadSimJob(options, is_timed ? 0 : step.machine.npus(), strict, context));
      if (!job.program_step && !job.recorded_step) {
        return BadInput(fmt::format(
            "{}: found no measured step, expected the recording of one step with times", path));
      }
      ETUDE_ASSIGN_OR_RETURN(
          SimMachine machine,
          ReadMachine(machine_, std::ssize(job.workload.ranks), strict, context.Unwarned()));
      ETUDE_ASSIGN_OR_RETURN(const SimulatedStep simulated,
                             SimulateStep(machine_, std::move(machine), std::move(job), strict,
                                          /*files_again=*/false, context));
      if (simulated.result.stopped) return MakeError(ErrorCode::kInterrupted, "interrupted");
      if (!simulated.ended()) return BadInput(path + ": this job does not end on the machine");
      jobs.push_back(compared(path, simulated));
    }
    Table table = MeasuredTable(jobs, step.account.step);
    if (!measured_.empty()) step.tables.push_back(table);
    return ComparedSteps{.edits = from ? from->edits : std::vector<EditLine>(),
                         .steps = std::move(table)};
  }

  // If interrupted, returns the results so far. A second signal ends the command. Sets `compared`
  // as CompareSteps.
  Result<SimulatedStep> SimulateUntilStopped(SimMachine machine, SimJob job,
                                             const std::optional<EnergyFigures>& figures,
                                             bool strict, const RunContext& context,
                                             std::optional<ComparedSteps>& compared) const {
    ETUDE_ASSIGN_OR_RETURN(
        SimulatedStep step,
        SimulateStep(machine_, std::move(machine), std::move(job), strict,
                     /*files_again=*/output_.table() == kSimMemoryTable, context));
    if (capacity_) {
      ETUDE_ASSIGN_OR_RETURN(const Table table,
                             CapacityTable(job_.paths, step.job, *capacity_, context));
      step.tables.push_back(table);
    }
    ETUDE_RETURN_IF_ERROR(AddSensitivities(context, step));
    ETUDE_RETURN_IF_ERROR(AddVariation(context, step));
    ETUDE_RETURN_IF_ERROR(AddStragglers(context, step));
    ETUDE_ASSIGN_OR_RETURN(compared, CompareSteps(strict, context, step));
    ETUDE_RETURN_IF_ERROR(AddEnergy(figures, step));
    return step;
  }

  // Simulates several jobs on one network.
  Result<ExitCode> RunShared(const Console& console) const {
    if (files_ != SimulatedFilesOptions() || sensitivity_ || ideal_ || !measured_.empty() ||
        !energy_.empty() || !machine_.machine.empty() || variation_ != VariationOptions()) {
      return MakeError(ErrorCode::kUsage,
                       "simulate: --beside and --place cannot be combined with --machine, "
                       "--sensitivity, --ideal, --measured, --energy, --noise, --slow-ranks, "
                       "--mtbf or -o");
    }
    const std::vector<std::string> keys = SharedNetworkTables();
    if (!output_.table().empty() && std::ranges::count(keys, output_.table()) == 0) {
      return MakeError(ErrorCode::kUsage,
                       fmt::format("--table: found '{}', expected with --beside and --place one "
                                   "of {}",
                                   output_.table(), fmt::join(keys, ", ")));
    }
    ETUDE_ASSIGN_OR_RETURN(const auto stop, StopSignal::Make());
    RunContext context = console.context();
    context.stop = stop->flag();
    ETUDE_ASSIGN_OR_RETURN(const SimMachine machine,
                           ReadMachine(machine_, /*ranks=*/0, console.strict(), context));
    ETUDE_ASSIGN_OR_RETURN(const SharedNetwork shared,
                           SimulateShared(shared_, job_, machine, console.strict(), context));
    if (!report_.empty()) {
      ETUDE_RETURN_IF_ERROR(WriteFile(report_, ToHtml(SimPage(PageOf(shared, machine)))));
    }
    if (output_.csv()) {
      PrintCsv(shared.tables, console);
    } else if (output_.json()) {
      nlohmann::ordered_json json = {{"format", "etude-simulate-shared"},
                                     {"version", 1},
                                     {"model", machine.ModelName()},
                                     {"machine", ToJson(machine)},
                                     {"time_ns", shared.time},
                                     {"notes", shared.notes}};
      AddWanted(shared.tables, json);
      console.Print(JsonText(json));
    } else {
      console.Print(TextOf(shared, machine));
    }
    return ExitCode::kOk;
  }

  std::string TextOf(const SharedNetwork& shared, const SimMachine& machine) const {
    std::string text;
    if (output_.table().empty()) {
      text = fmt::format("{} on {}, {} until all have ended: {}\n",
                         FormatCount(shared.names.size(), "job"),
                         FormatCount(static_cast<uint64_t>(machine.npus()), "NPU"),
                         FormatTime(Nanos{shared.time}), machine.ModelName()) +
             ToText(machine);
    }
    for (const Table& table : shared.tables) {
      const bool is_long = table.key == "path_ranks" || table.key == "path";
      if (output_.table() == table.key) text += ToTextOfWanted(table, output_.top());
      if (output_.table().empty() && !is_long) text += etude::ToText(table, output_.top());
    }
    for (const std::string& note : shared.notes) text += "note: " + note + "\n";
    return text;
  }

  Result<ExitCode> RunRecorded(const Console& console) const {
    const SimJobOptions job{.paths = job_.paths, .jobs = job_.jobs};
    const bool is_plain = machine_ == MachineOptions() && files_ == SimulatedFilesOptions();
    if (!is_plain || job_ != job || sensitivity_ || ideal_ || !measured_.empty() ||
        !energy_.empty() || !shared_.empty() || variation_ != VariationOptions()) {
      return MakeError(
          ErrorCode::kUsage,
          "simulate: --times recorded cannot be combined with --network and other "
          "machine options, --comm-groups, --compute, --fill-ranks, --sensitivity, --ideal, "
          "--measured, --energy, --beside, --place, --noise, --slow-ranks, --mtbf or -o");
    }
    ETUDE_ASSIGN_OR_RETURN(
        const Inspected found,
        SimulateRecordedTimes(job_.paths, job_.jobs, console.strict(), console.context()));
    if (output_.csv()) {
      PrintCsv(found.tables, console);
    } else if (output_.json()) {
      nlohmann::ordered_json json = {
          {"format", "etude-simulate-recorded"}, {"version", 1}, {"notes", found.notes}};
      AddWanted(found.tables, json);
      console.Print(JsonText(json));
    } else {
      console.Print(etude::ToText(std::vector{found}, output_.table(), output_.top()));
    }
    return ExitCode::kOk;
  }

  void PrintCsv(const std::vector<Table>& tables, const Console& console) const {
    const std::string& key = output_.table().empty() ? tables.front().key : output_.table();
    // A step that did not end lacks some tables.
    const auto table = std::ranges::find(tables, key, &Table::key);
    if (table != tables.end()) console.PrintData(ToCsv(*table));
  }
  void AddWanted(const std::vector<Table>& tables, nlohmann::ordered_json& json) const {
    for (const Table& table : tables) {
      if (output_.table().empty() || output_.table() == table.key) json[table.key] = ToJson(table);
    }
  }

  void Print(const SimulatedStep& step, const std::vector<std::string>& written,
             const Console& console) const {
    if (output_.csv()) {
      PrintCsv(step.tables, console);
    } else if (output_.json()) {
      console.Print(JsonText(ToJson(step, written, output_.table())));
    } else {
      console.Print(TextOf(step, written));
    }
  }

  static SimPageInput PageOf(const SharedNetwork& shared, const SimMachine& machine) {
    return {.job = fmt::format("{}", fmt::join(shared.names, " ")),
            .machine = ToText(machine),
            .model = machine.ModelName(),
            .step = shared.time,
            .ranks = shared.ranks,
            .tables = shared.tables,
            .notes = shared.notes};
  }

  SimPageInput PageOf(const SimulatedStep& step) const {
    std::vector<Table> tables;
    for (const Table& table : step.tables) tables.push_back(WithoutZeros(table));
    return {.job = fmt::format("{}", fmt::join(job_.paths, " ")),
            .machine = ToText(step.machine),
            .model = step.model,
            .step = step.account.step,
            .ranks = std::ssize(step.result.class_of),
            .tables = std::move(tables),
            .notes = step.job.notes};
  }

  std::string TextOf(const SimulatedStep& step, const std::vector<std::string>& written) const {
    std::string text;
    if (output_.table().empty()) {
      const char* what = "step time";
      if (step.diagnosis) what = "stuck after";
      if (step.result.stopped) what = "interrupted after";
      const std::string ranks = FormatCount(step.result.class_of.size(), "rank");
      const std::string classes =
          step.machine.times != nullptr
              ? ""  // ranks are simulated one by one
              : " in " + FormatCount(step.result.ranks.size(), "class", "classes");
      text += fmt::format("{} {}: {}{}, {}\n", what, FormatTime(Nanos{step.account.step}), ranks,
                          classes, step.model);
      text += ToText(step.machine) + RecordedTextOf(step.job);
      if (step.job.plan) text += PlanText(*step.job.plan, step.rates());
    }
    for (const Table& table : step.tables) {
      // "times" contains the ranks' work in short form, and "sums" the path.
      const bool is_long = table.key == "ranks" || table.key == "path_ranks" ||
                           table.key == "path" || table.key == "energy_ranks";
      if (output_.table() == table.key) text += ToTextOfWanted(WithoutZeros(table), output_.top());
      if (output_.table().empty() && !is_long) {
        text += etude::ToText(WithoutZeros(table), output_.top());
      }
    }
    for (const std::string& note : step.job.notes) text += "note: " + note + "\n";
    for (const std::string& line : written) text += line + "\n";
    return text;
  }

  SimJobOptions job_;
  std::string launches_;  // "": recorded with --machine recorded only
  std::string capacity_text_;
  std::optional<DeviceCapacity> capacity_;
  MachineOptions machine_;
  VariationOptions variation_;
  std::string report_;
  SimulatedFilesOptions files_;
  std::string times_ = "model";
  bool sensitivity_ = false;
  bool ideal_ = false;
  std::vector<std::string> measured_;
  std::string energy_;
  SharedNetworkOptions shared_;
  TableOutput output_;
};

}  // namespace

std::unique_ptr<Command> MakeSimulateCommand() { return std::make_unique<SimulateCommand>(); }

}  // namespace etude
