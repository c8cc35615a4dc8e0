#include "src/jobs/sim_job.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "src/analysis/comm/transfers.h"
#include "src/formats/job/job_folder.h"
#include "src/formats/job/job_json.h"
#include "src/jobs/group_ranks.h"
#include "src/jobs/job_classes.h"
#include "src/jobs/job_health.h"
#include "src/jobs/output_files.h"
#include "src/jobs/plan_file.h"
#include "src/report/recording_cost.h"
#include "src/report/text/format.h"
#include "src/run/activity.h"
#include "src/run/calls/comm_log.h"
#include "src/sim/program/workload.h"
#include "src/synth/job/encode_job.h"
#include "src/trace/simulated.h"
#include "src/transform/astra_sim/for_astra_sim.h"
#include "src/transform/edit/recording_cost.h"
#include "src/transform/read_job.h"
#include "src/transform/runnable/launch_cost.h"
#include "src/transform/to_chakra.h"

namespace etude {
namespace {

// Returns whether `path` is PREFIX of PREFIX.0.et …, or of other such files, and nothing else has
// this name.
bool IsPrefix(const std::string& path) {
  return !IsThere(path) &&
         (IsThere(RankFileOf(path, 0)) || RankFileBeyond(path + ".", ".et", 0).has_value());
}

// Returns kBadInput if PREFIX.N.et exist but some files before them are missing.
Status CheckNoGap(const std::string& prefix) {
  int64_t ranks = 0;
  while (IsThere(RankFileOf(prefix, ranks))) ++ranks;
  const auto beyond = RankFileBeyond(prefix + ".", ".et", ranks);
  if (!beyond) return {};
  return BadInput(
      fmt::format("{}: missing rank file ({} exists)", RankFileOf(prefix, ranks), *beyond));
}

tl::unexpected<Error> OtherSize(const std::string& path, int64_t ranks, int64_t npus) {
  return BadInput(fmt::format("{}: found a job of {}, but the network has {}", path,
                              FormatCount(static_cast<uint64_t>(ranks), "rank"),
                              FormatCount(static_cast<uint64_t>(npus), "NPU")));
}

Result<SimJob> ReadPrefix(const SimJobOptions& options, int64_t npus, bool strict,
                          const RunContext& context) {
  const std::string& prefix = options.paths.front();
  ETUDE_RETURN_IF_ERROR(CheckNoGap(prefix));
  ETUDE_RETURN_IF_ERROR(CheckRankFiles(prefix, npus));
  if (IsThere(RankFileOf(prefix, npus))) {
    return BadInput(fmt::format("{}: found a trace beyond the {} of the network",
                                RankFileOf(prefix, npus),
                                FormatCount(static_cast<uint64_t>(npus), "NPU")));
  }
  SimJob read{.workload = {}, .job = std::nullopt, .prefix = prefix, .warnings = {}, .notes = {}};
  ETUDE_ASSIGN_OR_RETURN(read.workload, ReadSimFiles(prefix, npus, {.strict = strict}, context));
  const std::string file =
      options.groups.empty() ? GroupsBeside({RankFileOf(prefix, 0)}) : options.groups;
  if (!file.empty()) {
    ETUDE_ASSIGN_OR_RETURN(const GroupRanks groups, ReadGroupRanks(file, context));
    ETUDE_ASSIGN_OR_RETURN(read.workload.groups, NumberedGroups(groups, file, npus));
  }
  return read;
}

// Returns whether all ranks of the job do the same as the only recorded one, which is then made
// once.
bool IsOneForAll(const SimJobOptions& options, const RankTraces& read, const WhatIf& what_if) {
  const bool fills = options.fill_ranks || options.what_if.adds_ranks();
  return fills && read.traces.size() == 1 && !what_if.needs_all_ranks();
}

// Gives communications the times that they took after their last member had begun, by the ids of
// the recorded nodes.
void SetTransferTimes(const std::map<uint64_t, Nanos>& times, const Trace& trace,
                      RunnableRank& rank) {
  for (RunnableNode& node : rank.nodes) {
    if (!IsCommunication(node.kind)) continue;
    const auto found = times.find(trace.source_id(node.origin));
    if (found != times.end()) node.transfer = found->second;
  }
}

// Turns recorded traces into graphs that a simulator runs to their end. With IsOneForAll, there is
// only one. `transfers`: with SimJobOptions::recorded_communication.
Result<AstraJob> ToSimGraphs(const SimJobOptions& options, const std::vector<RankInput>& inputs,
                             const RankTraces& read, int64_t npus, bool strict,
                             const Limits& limits, const TransferTimes& transfers,
                             WhatIf& what_if) {
  const bool flops = options.compute == "flops";
  const RunnableCompute compute = flops ? RunnableCompute::kFlops : RunnableCompute::kDurations;
  std::vector<RunnableRank> ranks;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (options.what_if.data_parallel && read.ranks[i] >= npus) continue;  // fewer than recorded
    const Trace& trace = read.traces[i];
    auto made = [&]() -> Result<RunnableRank> {
      ETUDE_ASSIGN_OR_RETURN(const ToChakraResult chakra,
                             ToChakra(trace, {.break_cycles = !strict, .limits = limits}));
      ETUDE_ASSIGN_OR_RETURN(RunnableRank rank, MakeRunnableRank(chakra.trace, {.compute = compute,
                                                                                .limits = limits}));
      if (options.recorded_launches && rank.on_device) {
        ETUDE_RETURN_IF_ERROR(AddRecordedLaunches(chakra.trace, rank));
      }
      if (!options.recorded_communication) return rank;
      if (chakra.renumbered) {
        return BadInput("found several nodes with one id, expected one, for --machine recorded");
      }
      SetTransferTimes(transfers.of_nodes[i], chakra.trace, rank);
      return rank;
    }();
    if (!made) return MakeError(made.error().code, inputs[i].path + ": " + made.error().message);
    if (const Status edited = what_if.EditRank(trace, *made); !edited) {
      return MakeError(edited.error().code, inputs[i].path + ": " + edited.error().message);
    }
    if (made->world_size && *made->world_size != npus) {
      return OtherSize(inputs[i].path, *made->world_size, npus);
    }
    made->rank = read.ranks[i];
    for (RunnableGroup& group : made->groups) {
      const auto known = read.groups.find(group.name);
      if (!group.ranks && known != read.groups.end()) group.ranks = known->second;
    }
    ranks.push_back(*std::move(made));
  }
  const bool fills = options.fill_ranks || options.what_if.adds_ranks();
  if (const Status edited = what_if.EditRanks(ranks, npus, fills); !edited) {
    return MakeError(edited.error().code, inputs.front().path + ": " + edited.error().message);
  }
  ETUDE_ASSIGN_OR_RETURN(
      RunnableJob job,
      MakeRunnableJob(std::move(ranks), {.fill_ranks = fills,
                                         .one_for_all = IsOneForAll(options, read, what_if),
                                         .ranks = npus}));
  return ForAstraSim(std::move(job), {.compute = compute,
                                      .host_threads = true,
                                      .all_types = true,
                                      .transfers = options.recorded_communication});
}

// An edit of recorded jobs, and what has a similar effect on generated ones.
struct RecordedEdit {
  std::string_view option;
  bool is_given = false;
  std::string_view nearest;  // "": nothing
};

// Returns the refusal of edits of a generated job that its plan does not support.
tl::unexpected<Error> OnlyOfRecorded(const SimJobOptions& options) {
  const WhatIfOptions& edits = options.what_if;
  constexpr std::string_view kTimes =
      "`etude generate` with --measured FILE or another --device, or `simulate --straggler`";
  constexpr std::string_view kSystem = "algorithms of collectives in a file of `simulate --system`";
  const RecordedEdit known[] = {
      {"--scale", !edits.scale.empty(), kTimes},
      {"--drop", !edits.drop.empty(), kTimes},
      {"--operators", !edits.operators.empty() || edits.measure, kTimes},
      {"--all-reduce", !edits.communication.all_reduce.empty(), kSystem},
      {"--rank-order", !edits.communication.rank_order.empty(),
       "another order of the dimensions in `simulate --network`"},
      {"--overlap", !edits.communication.overlap.empty(), ""},
      {"--compress", !edits.communication.compress.empty(), ""},
      {"--sizes", !edits.sizes.empty(),
       "sizes of the plan, such as --batch, --sequence or --hidden"},
      {"--dtype", !edits.device.dtype.empty(), ""},
      {"--fuse", !edits.device.fuse.empty(), ""},
      {"--no-gaps", edits.device.no_gaps, ""},
      {"--launch-cost", !edits.device.launch_cost.empty(), ""},
  };
  const auto* const given = std::ranges::find(known, true, &RecordedEdit::is_given);
  const bool is_known = given != std::end(known);
  return BadInput(fmt::format(
      "{}: found a generated job, expected a recorded one for {}: generated jobs are edited by "
      "options of their plan alone{}{}",
      options.paths.front(), is_known ? given->option : "these edits",
      is_known && !given->nearest.empty() ? "; nearest possible: " : "",
      is_known ? given->nearest : ""));
}

tl::unexpected<Error> OnlyRecordedTimes(const SimJobOptions& options) {
  return BadInput(options.paths.front() +
                  ": found a job of Chakra traces, expected a recorded one for --machine recorded");
}

// Returns kUsage for options that have no effect on graphs that run unchanged.
Status CheckNoneOfRecorded(const SimJobOptions& options) {
  if (options.recorded_communication) return OnlyRecordedTimes(options);
  if (!options.what_if.empty() && IsThere(fmt::format("{}/{}", options.paths.front(), kPlanFile))) {
    return OnlyOfRecorded(options);
  }
  if (!options.what_if.empty()) {
    return BadInput(options.paths.front() +
                    ": found a job of Chakra traces, expected a recorded one to edit");
  }
  std::string_view of_recorded;
  if (options.fill_ranks) of_recorded = "--fill-ranks";
  if (options.compute != "durations") of_recorded = "--compute flops";
  if (options.recorded_launches) of_recorded = "--launches recorded";
  if (of_recorded.empty()) return {};
  return MakeError(ErrorCode::kUsage, fmt::format("{}: requires recorded traces", of_recorded));
}

// Returns the first partner outside `npus` ranks as text, such as " (rank 0 sends to rank 9 in node
// 3)", and "" if there is none.
std::string StrayPartner(const std::vector<RankOfJob>& ranks, int64_t npus) {
  for (const RankOfJob& one : ranks) {
    std::string found;
    ForEachNode(*one.trace, [&](NodeId node) {
      const Comm* comm = one.trace->comm(node);
      const NodeKind kind = one.trace->kind(node);
      const bool sends = kind == NodeKind::kSend;
      if (comm == nullptr || !found.empty() || (!sends && kind != NodeKind::kRecv)) return;
      const std::optional<int64_t> peer = comm->peer(kind);
      if (!peer || *peer < npus) return;
      found = fmt::format(" (rank {} {} rank {} in node {})", one.rank,
                          sends ? "sends to" : "receives from", *peer, one.trace->source_id(node));
    });
    if (!found.empty()) return found;
  }
  return "";
}

// Returns the notes on a job. Each of its traces represents `ranks` ranks. `has_launches`: of the
// recorded host.
std::vector<std::string> NotesOf(const AstraJob& job, int64_t ranks, bool has_launches) {
  std::vector<std::string> notes;
  Nanos host;
  for (const AstraRankReport& rank : job.ranks) host = host + Nanos{rank.host_time.count * ranks};
  if (host.count > 0 && !has_launches) {
    notes.push_back(
        fmt::format("{} of host work is left out, summed over all ranks", FormatTime(host)));
  }
  for (const RunnableNoteRow& row : kRunnableNotes) {
    const uint64_t count = job.notes[row.note];
    if (row.note == RunnableNote::kRenamedGroup) continue;  // has no effect here
    if (count > 0) notes.push_back(fmt::format("{}: {}", row.text, FormatCount(count)));
  }
  notes.insert(notes.end(), job.messages.begin(), job.messages.end());
  return notes;
}

// Subtracts the cost of recording, as far as known, from the times of one rank. Returns the notes
// about it.
Result<std::string> TakeOutCost(const RecordingCost& cost, bool keep, const Limits& limits,
                                Trace& trace, SimJob& job) {
  if (!cost.program || keep) return RecordingCostNote(cost);
  std::vector<Interval> steps;
  for (const StepWindow& step : FindSteps(trace)) steps.push_back(step.window);
  ETUDE_ASSIGN_OR_RETURN(auto without, TakeOutRecordingCost(trace, steps, *cost.program, limits));
  if (!without) return RecordingCostNote(cost);
  const Nanos per_step{without->taken.count / static_cast<int64_t>(steps.size())};
  job.recording_taken = std::max(job.recording_taken, per_step);
  trace = std::move(without->trace);
  return std::string();
}

// Adds the measured times of the step, and the notes about them.
Status AddRecordedTimes(const std::vector<RankInput>& inputs, std::vector<Trace>& traces,
                        bool is_recorded, bool keep, const RunContext& context, SimJob& job) {
  size_t steps = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const RecordingCost cost =
        FindRecordingCost(traces[i], inputs[i].path, inputs[i].rank, context);
    ETUDE_ASSIGN_OR_RETURN(const std::string note,
                           TakeOutCost(cost, keep || !is_recorded, context.limits, traces[i], job));
    if (!note.empty() && job.notes.empty()) job.notes.push_back(note);
    steps = std::max(steps, cost.steps);
    job.recorded_step = std::max(job.recorded_step, cost.recorded);
    job.program_step = std::max(job.program_step, cost.program);
    if (is_recorded) {
      job.workload.core_share = std::min(job.workload.core_share, cost.core_share);
    }
  }
  if (!is_recorded || steps > 1) job.recorded_step = job.program_step = std::nullopt;
  if (steps > 1) {
    job.notes.push_back(
        fmt::format("the traces contain {} consecutive steps, and the step time covers all of "
                    "them; select one step with `etude slice --step`",
                    FormatCount(steps)));
  }
  return {};
}

// Reads the second recording of an edit, with the times that the first one has. Adds the notes
// about its times.
Result<std::vector<Trace>> ReadSecond(const SimJobOptions& options, bool strict,
                                      const RunContext& context, std::vector<std::string>& notes) {
  ETUDE_ASSIGN_OR_RETURN(const std::vector<RankInput> inputs,
                         FindRanks(std::vector<std::string>{options.what_if.second}, context));
  ETUDE_ASSIGN_OR_RETURN(RankTraces read, ReadRankTraces(inputs, options.groups, options.jobs,
                                                         {.strict = strict}, context));
  SimJob times;
  ETUDE_RETURN_IF_ERROR(AddRecordedTimes(inputs, read.traces, /*is_recorded=*/true,
                                         options.with_recording, context, times));
  if (times.recording_taken > Nanos{}) times.notes.push_back(TakenText(times));
  for (const std::string& note : times.notes) notes.push_back("--second: " + note);
  return std::move(read.traces);
}

void NoteUngrouped(const RankTraces& ranks, std::vector<std::string>& notes) {
  uint64_t ungrouped = 0;
  for (size_t i = 0; i < ranks.traces.size(); ++i) {
    ungrouped += ReadCommLog(ranks.traces[i], ranks.ranks[i]).ungrouped;
  }
  if (ungrouped != 0) notes.push_back(UngroupedText(ungrouped));
}

// When the ranks of a recorded job began their step.
struct RecordedBegins {
  std::map<int64_t, int64_t> of_ranks;  // ns after the first one, by rank, as far as known
  Nanos span;                           // from the first begin to the last end
};

// Ranks whose clocks cannot be compared begin first.
RecordedBegins FindBegins(const RankTraces& job, const TransferTimes& transfers) {
  std::map<int64_t, Interval> steps;  // by rank
  std::optional<Nanos> first;
  RecordedBegins found;
  for (size_t i = 0; i < job.traces.size(); ++i) {
    const std::vector<StepWindow> own = FindSteps(job.traces[i]);
    if (own.empty()) continue;
    const Interval window{own.front().window.begin, own.back().window.end};
    found.span = std::max(found.span, window.length());
    if (!transfers.offsets[i]) continue;
    const Nanos offset = *transfers.offsets[i];
    steps[job.ranks[i]] = {window.begin - offset, window.end - offset};
    first = std::min(first.value_or(window.begin - offset), window.begin - offset);
  }
  for (const auto& [rank, window] : steps) {
    found.of_ranks[rank] = (window.begin - *first).count;
    found.span = std::max(found.span, window.end - *first);
  }
  return found;
}

void NoteTransfers(const TransferTimes& transfers, std::vector<std::string>& notes) {
  if (transfers.unaligned == 0) return;
  notes.push_back(fmt::format(
      "communications of ranks whose clocks cannot be compared: {}; they take their shortest "
      "duration on a rank",
      FormatCount(transfers.unaligned)));
}

// Returns whether this is a Chakra trace of a recorded rank whose host communicates. Own time of a
// node has no place between the nodes that it called, and other tools also count waiting as own
// time.
bool HasRecordedHost(const Trace& trace) {
  if (!trace.traits().states_order || IsSimulated(trace)) return false;
  bool is_recorded = false;
  ForEachNode(trace, [&](NodeId node) {
    is_recorded = is_recorded ||
                  (trace.place(node) == Place::kHost && trace.start(node) && trace.duration(node));
  });
  return is_recorded && !trace.comms().empty();
}

// Returns the number of ranks of a job, with those without a trace.
int64_t RanksIn(const std::vector<Trace>& traces) {
  int64_t ranks = std::ssize(traces);
  for (const Trace& trace : traces) ranks = std::max(ranks, trace.info().world_size.value_or(0));
  return ranks;
}

constexpr std::string_view kRecordedHost =
    "Chakra traces of a recorded job run unchanged: host time of a caller (in traces of other "
    "tools also its waits) precedes its calls and overlaps no communication; `etude convert --for "
    "astra-sim` keeps it in place";

// Gives the edits the tables of measured operators. Returns the machine of the table with which
// recorded times are compared; nullopt without one.
Result<std::optional<OperatorMachine>> ReadOperatorTables(const WhatIfOptions& options,
                                                          const OperatorMeasurer& measure,
                                                          const RunContext& context,
                                                          WhatIf& what_if) {
  if (options.measure) {
    what_if.UseOperators(measure);
    return std::nullopt;
  }
  if (options.operators.empty()) return std::nullopt;
  const auto read = [&](const std::string& path) -> Result<OperatorTable> {
    ETUDE_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path, context.limits));
    return ParseOperatorTable(text, path);
  };
  MeasuredOperators tables;
  ETUDE_ASSIGN_OR_RETURN(tables.times, read(options.operators));
  if (!options.recorded_operators.empty()) {
    ETUDE_ASSIGN_OR_RETURN(tables.recorded, read(options.recorded_operators));
  } else if (options.resizes()) {
    tables.recorded = tables.times;
  }
  const OperatorMachine machine =
      options.recorded_operators.empty() ? tables.times.machine : tables.recorded.machine;
  what_if.UseOperators(std::move(tables));
  return std::optional(machine);
}

// Returns a note if a table of operators describes another machine than the job.json beside a
// recorded trace; "" if both agree or one is unknown.
std::string OtherMachineNote(const WhatIfOptions& options, const OperatorMachine& table,
                             const std::string& trace, const RunContext& context) {
  const auto file = std::filesystem::path(trace).parent_path() / kJobFile;
  if (!IsThere(file.string())) return "";
  // Errors in job.json are reported by the commands that need it.
  const Result<JobFile> job = ReadJobFile(file.string(), context.Unwarned());
  if (!job) return "";
  const auto differ = [](std::string_view one, std::string_view other) {
    one = one.substr(0, one.find('+'));  // "2.13.0+cpu"
    other = other.substr(0, other.find('+'));
    return !one.empty() && !other.empty() && one != other;
  };
  const bool has_recorded = !options.recorded_operators.empty();
  const auto text = [&](std::string_view what, std::string_view of_table, std::string_view of_job) {
    return fmt::format(
        "{}: the table was measured with {} '{}', and the job was recorded with '{}'{}",
        has_recorded ? "--recorded-operators" : "--operators", what, of_table, of_job,
        has_recorded || options.resizes()
            ? ""
            : "; --recorded-operators with a table of the recording's machine gives the ratio of "
              "both");
  };
  if (differ(table.processor, job->processor)) {
    return text("processor", table.processor, job->processor);
  }
  if (differ(table.torch, job->torch)) return text("PyTorch", table.torch, job->torch);
  return "";
}

Result<SimJob> ReadAnyJob(const SimJobOptions& options, int64_t npus, bool strict,
                          const RunContext& context, const OperatorMeasurer& measure) {
  const bool of_job = npus == 0;
  ETUDE_ASSIGN_OR_RETURN(WhatIf what_if, WhatIf::Make(options.what_if));
  ETUDE_ASSIGN_OR_RETURN(const std::optional<OperatorMachine> table,
                         ReadOperatorTables(options.what_if, measure, context, what_if));
  const std::string& first = options.paths.front();
  const bool is_one = options.paths.size() == 1;
  if (is_one && IsPrefix(first)) {
    ETUDE_RETURN_IF_ERROR(CheckNoneOfRecorded(options));
    while (of_job && IsThere(RankFileOf(first, npus))) ++npus;
    return ReadPrefix(options, npus, strict, context);
  }
  SimJob read;
  RecordedBegins begins;
  bool is_recorded = false;
  bool rounded_times = false;
  std::string stray;         // a partner beyond the ranks of the network
  std::string disagreement;  // about a collective; "" without one
  if (is_one && IsJobFolder(first)) {
    ETUDE_RETURN_IF_ERROR(CheckNoneOfRecorded(options));
    if (!options.groups.empty()) {
      return MakeError(ErrorCode::kUsage,
                       "--comm-groups cannot be combined with a folder of classes, which contains "
                       "the ranks of its groups");
    }
    ETUDE_ASSIGN_OR_RETURN(read.job, ReadJobFolder(first, context));
    for (size_t i = 0; i < read.job->classes.size(); ++i) {
      WarnOfIds(read.job->classes[i].program, fmt::format("{}, class {}", first, i), context);
    }
    // Conversion of the recorded job has put the host's time in place.
    ETUDE_ASSIGN_OR_RETURN(read.edited_from, ReadEditedFrom(first, context));
    rounded_times = read.edited_from && read.edited_from->times_known;
    if (read.edited_from) read.memory = read.edited_from->memory;
    if (!read.edited_from &&
        std::ranges::any_of(read.job->classes, HasRecordedHost, &RankClass::program)) {
      read.notes.emplace_back(kRecordedHost);
    }
    ETUDE_ASSIGN_OR_RETURN(read.plan, ReadPlanFile(first, strict, context));
  } else {
    ETUDE_ASSIGN_OR_RETURN(const std::vector<RankInput> inputs, FindRanks(options.paths, context));
    ETUDE_ASSIGN_OR_RETURN(RankTraces traces, ReadRankTraces(inputs, options.groups, options.jobs,
                                                             {.strict = strict}, context));
    for (size_t i = 0; i < inputs.size(); ++i) {
      WarnOfIds(traces.traces[i], inputs[i].path, context);
    }
    const bool is_chakra = std::ranges::all_of(
        traces.traces, [](const Trace& trace) { return trace.traits().states_order; });
    is_recorded = !is_chakra;
    TransferTimes transfers;
    if (options.recorded_communication) {
      if (is_chakra) return OnlyRecordedTimes(options);
      transfers = FindTransferTimes(traces.traces, traces.ranks, traces.groups);
      NoteTransfers(transfers, read.notes);
      begins = FindBegins(traces, transfers);
    }
    ETUDE_RETURN_IF_ERROR(AddRecordedTimes(inputs, traces.traces, is_recorded,
                                           options.with_recording, context, read));
    if (options.recorded_communication && read.recorded_step) read.recorded_step = begins.span;
    if (is_recorded) NoteUngrouped(traces, read.notes);
    if (table) {
      const std::string note =
          OtherMachineNote(options.what_if, *table, inputs.front().path, context);
      if (!note.empty()) read.notes.push_back(note);
      // Times of a table replace recorded ones, which contain the sharing of cores.
      const bool replaces =
          options.what_if.recorded_operators.empty() && !options.what_if.resizes();
      if (replaces) read.workload.core_share = 1;
    }
    if (is_chakra && !options.fill_ranks) ETUDE_RETURN_IF_ERROR(CheckNoneOfRecorded(options));
    if (options.memory && is_recorded) {
      read.memory.before = read.memory.after = TensorPeaksOf(traces.traces);
    }
    if (!options.what_if.empty()) {
      if (is_chakra) ETUDE_RETURN_IF_ERROR(CheckNoneOfRecorded(options));
      std::vector<Trace> second;
      if (!options.what_if.second.empty()) {
        ETUDE_ASSIGN_OR_RETURN(second, ReadSecond(options, strict, context, read.notes));
      }
      if (options.memory) what_if.FindMemory();
      if (const Status edited = what_if.EditTraces(traces.traces, second, context.limits);
          !edited) {
        return MakeError(edited.error().code, first + ": " + edited.error().message);
      }
      const int64_t wanted = npus;
      npus = what_if.RanksOf(RanksIn(traces.traces));
      if (!of_job && npus != wanted) return OtherSize(first, npus, wanted);
    } else if (of_job) {
      npus = RanksIn(traces.traces);
    }
    const bool is_one_for_all =
        (!is_chakra || options.fill_ranks) && IsOneForAll(options, traces, what_if);
    if (!is_chakra || options.fill_ranks) {
      ETUDE_ASSIGN_OR_RETURN(AstraJob graphs, ToSimGraphs(options, inputs, traces, npus, strict,
                                                          context.limits, transfers, what_if));
      ETUDE_ASSIGN_OR_RETURN(read.edits, what_if.Applied());
      if (!options.what_if.empty()) read.memory.after = what_if.PeaksAfter();
      const bool has_device = std::ranges::any_of(graphs.ranks, &AstraRankReport::on_device);
      if (options.recorded_launches && !options.recorded_communication && !has_device) {
        read.notes.emplace_back("the job has no device work: --launches changes nothing");
      }
      const bool has_launches =
          options.recorded_launches || options.what_if.device.launch_cost == kRecordedLaunches;
      std::ranges::move(NotesOf(graphs, is_one_for_all ? npus : 1, has_launches),
                        std::back_inserter(read.notes));
      if (!graphs.messages.empty()) disagreement = graphs.messages.front();
      rounded_times = is_recorded && graphs.notes[RunnableNote::kUnknownTime] == 0;
      traces.groups.clear();
      for (auto& [id, members] : graphs.groups) traces.groups[std::to_string(id)] = members;
      traces.ranks.clear();
      for (const AstraRankReport& rank : graphs.ranks) traces.ranks.push_back(rank.rank);
      traces.traces = std::move(graphs.traces);
    } else if (std::ranges::any_of(traces.traces, HasRecordedHost)) {
      read.notes.emplace_back(kRecordedHost);
    }
    std::vector<RankOfJob> ranks;
    for (size_t i = 0; i < traces.traces.size(); ++i) {
      ranks.push_back({.rank = traces.ranks[i], .trace = &traces.traces[i]});
    }
    stray = StrayPartner(ranks, npus);
    Result<Job> job =
        EncodeJob(ranks, {.groups = std::move(traces.groups), .limits = context.limits});
    if (!job && !disagreement.empty()) job.error().message += "; " + disagreement;
    ETUDE_ASSIGN_OR_RETURN(read.job, std::move(job));
    if (is_one_for_all) {
      read.job->classes.front().ranks = RankSet::Below(read.job->mesh.size());
      ETUDE_RETURN_IF_ERROR(CheckJob(*read.job));
    }
  }
  if (of_job) npus = std::max(npus, read.job->mesh.size());
  if (const int64_t ranks = read.job->rank_count(); ranks != npus) {
    tl::unexpected<Error> error = OtherSize(first, ranks, npus);
    if (is_recorded && ranks < npus && !options.fill_ranks) {
      error.value().message += "; --fill-ranks copies the nearest rank for the others";
    }
    return error;
  }
  if (const int64_t ranks = read.job->mesh.size(); ranks != npus) {
    return BadInput(fmt::format(
        "{}: found communication with ranks up to {} in its {}{}, but the network has {}", first,
        ranks - 1, FormatCount(static_cast<uint64_t>(npus), "rank"), stray,
        FormatCount(static_cast<uint64_t>(npus), "NPU")));
  }
  const double core_share =
      read.edited_from ? read.edited_from->core_share : read.workload.core_share;
  ETUDE_ASSIGN_OR_RETURN(read.workload, WorkloadOfJob(*read.job, context.limits));
  read.workload.rounded_times = rounded_times;
  read.workload.core_share = core_share;
  if (options.recorded_communication) {
    read.workload.begins.resize(read.workload.ranks.size());
    for (const auto& [rank, begin] : begins.of_ranks) {
      if (rank >= 0 && rank < npus) read.workload.begins[static_cast<size_t>(rank)] = begin;
    }
  }
  if (core_share < 1) {
    read.notes.push_back(fmt::format(
        "recorded by more ranks than cores: times of computations contain the sharing of cores, so "
        "they demand {:.3g} of a core",
        core_share));
  }
  return read;
}

}  // namespace

std::string TakenText(const SimJob& job) {
  constexpr double kWorthSaying = 0.2;
  std::string text =
      FormatTime(job.recording_taken) + " of recording overhead subtracted from each step";
  if (!job.recorded_step || job.recorded_step->count <= 0) return text;
  text += ", of " + FormatTime(*job.recorded_step);
  const double share = static_cast<double>(job.recording_taken.count) /
                       static_cast<double>(job.recorded_step->count);
  if (share <= kWorthSaying) return text;
  return text + fmt::format(": {:.0f} % of its time, so the rest is less certain", share * 100);
}

Result<std::vector<std::string>> FilesOfPrefixes(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (!IsPrefix(path)) {
      files.push_back(path);
      continue;
    }
    ETUDE_RETURN_IF_ERROR(CheckNoGap(path));
    for (int64_t rank = 0; IsThere(RankFileOf(path, rank)); ++rank) {
      files.push_back(RankFileOf(path, rank));
    }
  }
  return files;
}

Status CheckRankFiles(const std::string& prefix, int64_t npus) {
  // A missing file in between is reported when it is read.
  if (IsThere(RankFileOf(prefix, npus - 1))) return {};
  int64_t ranks = 0;
  while (ranks < npus && IsThere(RankFileOf(prefix, ranks))) ++ranks;
  if (ranks == 0 || ranks == npus) return {};
  return OtherSize(prefix, ranks, npus);
}

Result<SimJob> ReadSimJob(const SimJobOptions& options, int64_t npus, bool strict,
                          const RunContext& context, const OperatorMeasurer& measure) {
  std::vector<std::string> warnings;
  RunContext noting = context;
  noting.warn = [&](std::string_view text) {
    warnings.emplace_back(text);
    context.Warn(text);
  };
  Result<SimJob> read = ReadAnyJob(options, npus, strict, noting, measure);
  if (read) read->warnings = std::move(warnings);
  return read;
}

}  // namespace etude
