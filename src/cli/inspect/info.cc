#include "src/cli/app/commands.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/analysis/view/motif_tree.h"
#include "src/analysis/view/summary.h"
#include "src/formats/job/capture_folder.h"
#include "src/formats/read_trace.h"
#include "src/jobs/generate/request_json.h"
#include "src/jobs/job_health.h"
#include "src/jobs/plan_file.h"
#include "src/report/tables/graph_time_tables.h"
#include "src/report/text/format.h"
#include "src/report/text/health_output.h"
#include "src/report/text/json_output.h"
#include "src/run/rank_run.h"
#include "src/transform/operators/program_phases.h"
#include "src/transform/read_job.h"

namespace etude {
namespace {

using Json = nlohmann::ordered_json;
using Align = TextTable::Align;

Json NanosOrNull(const std::optional<Nanos>& value) {
  return value ? Json(value->count) : Json(nullptr);
}

Json OpsJson(const std::vector<Summary::Op>& ops) {
  Json rows = Json::array();
  for (const Summary::Op& op : ops) {
    rows.push_back({{"name", op.name}, {"count", op.count}, {"total_ns", NanosOrNull(op.total)}});
  }
  return rows;
}

// `rank`: from the folder; a rank in the trace takes precedence.
Json TraceJson(const std::string& path, std::optional<int64_t> rank, const Trace& trace,
               const Summary& summary, const Health& health) {
  Json json;
  json["path"] = path;
  json["kind"] = Name(trace.info().format);
  json["schema"] = trace.info().schema.empty() ? Json(nullptr) : Json(trace.info().schema);
  json["rank"] = OrNull(trace.info().rank ? trace.info().rank : rank);
  json["world_size"] = OrNull(trace.info().world_size);
  json["nodes"] = summary.nodes;
  Json kinds = Json::object();
  for (size_t i = 0; i < kNodeKindCount; ++i) {
    if (summary.by_kind[i] != 0) {
      kinds[std::string(Name(static_cast<NodeKind>(i)))] = summary.by_kind[i];
    }
  }
  json["by_kind"] = std::move(kinds);
  json["dependencies"] = summary.dependencies;
  json["threads"] = summary.threads;
  json["streams"] = summary.streams;
  json["tensors"] = summary.tensors;
  json["timed_nodes"] = summary.timed;
  json["exclusive_durations"] = trace.traits().exclusive_durations;
  json["span_ns"] = NanosOrNull(summary.span);
  json["device_busy_ns"] = NanosOrNull(summary.device_busy);
  json["device_communication_ns"] = NanosOrNull(summary.device_comm);
  json["steps"] = summary.steps;
  json["operators"] = OpsJson(summary.operators);
  json["device_ops"] = OpsJson(summary.device_ops);
  Json collectives = Json::array();
  for (const Summary::Collective& row : summary.collectives) {
    collectives.push_back({{"type", row.type},
                           {"group", row.group},
                           {"count", row.count},
                           {"bytes", row.bytes ? Json(row.bytes->count) : Json(nullptr)},
                           {"total_ns", NanosOrNull(row.time)}});
  }
  json["collectives"] = std::move(collectives);
  Json groups = Json::array();
  for (const ProcessGroup& group : trace.process_groups()) {
    groups.push_back({{"name", trace.text(group.name)},
                      {"description", trace.text(group.description)},
                      {"backend", trace.text(group.backend)},
                      {"ranks", trace.ints(group.ranks)},
                      {"size", OrNull(group.size)}});
  }
  json["process_groups"] = std::move(groups);
  json["health"] = ToJson(trace.stats());
  json["trust"] = ToJson(health);
  json["memory_bytes"] = summary.memory_bytes;
  return json;
}

TextTable OpsTable(const std::vector<Summary::Op>& ops, size_t shown) {
  TextTable table({Align::kLeft, Align::kRight, Align::kRight});
  for (size_t i = 0; i < std::min(shown, ops.size()); ++i) {
    constexpr size_t kNameWidth = 60;
    table.Row({ShortName(ops[i].name, kNameWidth), FormatCount(ops[i].count) + " ×",
               ops[i].total ? FormatTime(*ops[i].total) : "time unknown"});
  }
  return table;
}

TextTable FactsTable(const Trace& trace, const Summary& summary, const Health& health) {
  TextTable facts({Align::kLeft, Align::kLeft});
  std::string kinds;
  for (size_t i = 0; i < kNodeKindCount; ++i) {
    if (summary.by_kind[i] == 0) continue;
    kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", FormatCount(summary.by_kind[i]),
                         Name(static_cast<NodeKind>(i)));
  }
  facts.Row({"nodes", FormatCount(summary.nodes) + (kinds.empty() ? "" : ": " + kinds)});
  facts.Row({"dependencies", FormatCount(summary.dependencies) + ", not counting nesting"});
  facts.Row({"lanes", fmt::format("{}, {}", FormatCount(summary.threads, "thread"),
                                  FormatCount(summary.streams, "stream"))});
  facts.Row({"timed", summary.nodes == 0
                          ? "0"
                          : fmt::format("{} ({})", FormatCount(summary.timed, "node"),
                                        FormatShare(static_cast<double>(summary.timed) /
                                                    static_cast<double>(summary.nodes)))});
  if (summary.span) facts.Row({"span", FormatTime(*summary.span)});
  if (const auto& time = health.graph_time) facts.Row({"graph time", GraphTimeText(*time)});
  if (const auto& waits = health.waits) facts.Row({"waits", WaitsText(*waits)});
  if (summary.device_busy) {
    std::string busy = FormatTime(*summary.device_busy);
    if (summary.device_comm) busy += ", communication " + FormatTime(*summary.device_comm);
    facts.Row({"device busy", std::move(busy)});
  }
  for (const ProcessGroup& group : trace.process_groups()) {
    std::string text = fmt::format("'{}'", trace.text(group.name));
    for (const StringId word : {group.description, group.backend}) {
      if (!trace.text(word).empty()) text += fmt::format(" {}", trace.text(word));
    }
    const std::string size =
        group.size ? FormatCount(static_cast<uint64_t>(*group.size), "rank") : "? ranks";
    facts.Row({"process group", text + ", " + size});
  }
  constexpr size_t kShownSteps = 4;
  if (!summary.steps.empty()) {
    std::string steps = FormatCount(summary.steps.size()) + ":";
    for (size_t i = 0; i < std::min(kShownSteps, summary.steps.size()); ++i) {
      steps += " " + std::string(summary.steps[i]);
    }
    facts.Row({"steps", steps + (summary.steps.size() > kShownSteps ? " …" : "")});
  }
  return facts;
}

TextTable CollectivesTable(const Summary& summary) {
  TextTable collectives({Align::kLeft, Align::kRight, Align::kRight, Align::kRight});
  for (const Summary::Collective& row : summary.collectives) {
    std::string name(row.type);
    if (!row.group.empty()) name += fmt::format(" in group '{}'", row.group);
    collectives.Row({std::move(name), FormatCount(row.count) + " ×",
                     row.bytes ? FormatBytes(*row.bytes) : "size unknown",
                     row.time ? FormatTime(*row.time) : "time unknown"});
  }
  return collectives;
}

// Time of a folder's rank, from its trace with times; from both files if they are a pair.
struct RankTimes {
  std::string rank;
  std::optional<int64_t> number;
  std::optional<Nanos> span;
  std::optional<Nanos> device_busy;

  void Take(const Summary& summary) {
    if (!summary.span) return;
    span = summary.span;
    device_busy = summary.device_busy;
  }
};

std::string TimesText(const std::vector<RankTimes>& ranks) {
  TextTable table({Align::kLeft, Align::kRight, Align::kRight});
  table.Row({"rank", "span", "device busy"});
  const auto text = [](std::optional<Nanos> time) { return time ? FormatTime(*time) : "–"; };
  for (const RankTimes& row : ranks) table.Row({row.rank, text(row.span), text(row.device_busy)});
  return table.Text();
}

Json TimesJson(const std::vector<RankTimes>& ranks) {
  Json rows = Json::array();
  for (const RankTimes& row : ranks) {
    rows.push_back({{"rank", OrNull(row.number)},
                    {"span_ns", NanosOrNull(row.span)},
                    {"device_busy_ns", NanosOrNull(row.device_busy)}});
  }
  return rows;
}

// Returns ", 12 layers of up to 3".
std::string ShapeText(const std::optional<LayerShape>& shape) {
  if (!shape) return ", no layers: a cycle";
  return fmt::format(", {} of up to {}", FormatCount(shape->layers, "layer"),
                     FormatCount(shape->width));
}

std::optional<LayerShape> ShapeOf(const MotifRow& row) {
  return row.layered ? std::optional(row.layered->form.shape()) : std::nullopt;
}

// Returns "  8 × 172 nodes, 12 layers of up to 3: layer 0 norm … layer 0 add", with nested rows
// indented.
std::string MotifText(const Trace& trace, const MotifTree& tree) {
  std::string text = fmt::format(
      "structure: {}, {}, {}{}\n", FormatCount(tree.node_kinds, "kind of nodes", "kinds of nodes"),
      FormatCount(tree.motifs, "motif"), FormatCount(tree.parts, "part"), ShapeText(tree.shape));
  for (const MotifRow& row : tree.rows) {
    constexpr size_t kNameWidth = 30;
    text += fmt::format("{:{}}{} × {}", "", 2 + 2 * row.depth, FormatCount(row.times),
                        FormatCount(row.nodes, "node"));
    if (row.nodes > 1) text += ShapeText(ShapeOf(row));
    if (!row.same_everywhere) text += " (first occurrence)";
    text += ": " + ShortText(trace.name(row.first), kNameWidth);
    if (row.nodes > 1) text += " … " + ShortText(trace.name(row.last), kNameWidth);
    text += "\n";
  }
  return text;
}

Json ShapeJson(const std::optional<LayerShape>& shape) {
  if (!shape) return nullptr;
  return {{"count", shape->layers}, {"width", shape->width}};
}

// Returns node ids by layer.
Json LayersJson(const Trace& trace, const MotifRow& row) {
  Json json = ShapeJson(ShapeOf(row));
  if (!row.layered) return json;
  const auto& [form, order, edge_order] = *row.layered;
  json["same_everywhere"] = row.same_everywhere;
  json["nodes"] = Json::array();
  for (size_t layer = 0; layer < form.layer_count(); ++layer) {
    Json ids = Json::array();
    for (uint32_t i = form.begins[layer]; i < form.begins[layer + 1]; ++i) {
      ids.push_back(trace.source_id(NodeId(row.first.value() + order[i])));
    }
    json["nodes"].push_back(std::move(ids));
  }
  return json;
}

Json MotifJson(const Trace& trace, const MotifTree& tree) {
  Json json = {{"node_kinds", tree.node_kinds}, {"motifs", tree.motifs}};
  json["motifs_same_everywhere"] = tree.same_everywhere;
  json["parts"] = tree.parts;
  json["layers"] = ShapeJson(tree.shape);
  json["rows"] = Json::array();
  for (const MotifRow& row : tree.rows) {
    json["rows"].push_back({{"depth", row.depth},
                            {"times", row.times},
                            {"nodes", row.nodes},
                            {"first", trace.name(row.first)},
                            {"last", trace.name(row.last)},
                            {"first_id", trace.source_id(row.first)},
                            {"last_id", trace.source_id(row.last)},
                            {"layers", LayersJson(trace, row)}});
  }
  return json;
}

// Returns "  forward   4 × 26 to 28 nodes"; for phases by labels "  forward   104 nodes".
std::string PhasesText(const ProgramPhases& phases) {
  if (phases.rows.empty()) return "";
  std::string text = fmt::format("phases{}: {}", phases.stated ? "" : " by labels",
                                 FormatCount(phases.steps, "step"));
  if (phases.micro_batches != 0) {
    text += ", " + FormatCount(phases.micro_batches, "micro-batch", "micro-batches");
  }
  TextTable table({Align::kLeft, Align::kLeft});
  for (const PhaseRow& row : phases.rows) {
    std::string nodes = FormatCount(row.nodes, "node");
    if (row.stretches != 0) {
      nodes = fmt::format("{} × {}{}", FormatCount(row.stretches),
                          row.least == row.most ? "" : FormatCount(row.least) + " to ",
                          FormatCount(row.most, "node"));
    }
    nodes += ShapeText(row.shape);
    table.Row({std::string(Name(row.phase)), std::move(nodes)});
  }
  return text + "\n" + table.Text();
}

Json PhasesJson(const ProgramPhases& phases) {
  Json json = {{"stated", phases.stated}, {"steps", phases.steps}};
  json["micro_batches"] = phases.micro_batches == 0 ? Json(nullptr) : Json(phases.micro_batches);
  json["rows"] = Json::array();
  for (const PhaseRow& row : phases.rows) {
    json["rows"].push_back({{"phase", Name(row.phase)},
                            {"stretches", row.stretches == 0 ? Json(nullptr) : Json(row.stretches)},
                            {"nodes", row.nodes},
                            {"layers", ShapeJson(row.shape)}});
  }
  return json;
}

std::string TraceText(const std::string& path, const Trace& trace, const Summary& summary,
                      const Health& health, size_t shown_ops) {
  std::string text = fmt::format("{}: {}", path, Name(trace.info().format));
  if (!trace.info().schema.empty()) text += ", schema " + trace.info().schema;
  const std::optional<int64_t> rank = trace.info().rank;
  if (rank) text += fmt::format(", rank {}", *rank);
  if (const std::optional<int64_t> size = trace.info().world_size) {
    text += fmt::format("{} of {}", rank ? "" : ", a rank", *size);
  }
  text += "\n" + FactsTable(trace, summary, health).Text();
  const TextTable ops = OpsTable(summary.operators, shown_ops);
  if (!ops.empty()) text += "top operators\n" + ops.Text();
  const TextTable device_ops = OpsTable(summary.device_ops, shown_ops);
  if (!device_ops.empty()) text += "top device operations\n" + device_ops.Text();
  const TextTable collectives = CollectivesTable(summary);
  if (!collectives.empty()) text += "communication\n" + collectives.Text();
  TextTable met({Align::kRight, Align::kLeft});
  for (const StatInfo& info : StatTable()) {
    if (trace.stats()[info.stat] == 0) continue;
    met.Row({FormatCount(trace.stats()[info.stat]), std::string(info.help)});
  }
  text += met.empty() ? "issues while reading: none\n" : "issues while reading\n" + met.Text();
  return text + ToText(health);
}

// The plan of a generated job, for output.
struct PlanOutput {
  std::string text;  // one line, or ""
  Json json;         // null without a plan
};

// Reads the plan next to a trace or a job. A damaged one is none.
PlanOutput PlanOutputOf(const std::string& path, const RunContext& context) {
  const auto found = FindPlanBeside(path, context);
  if (!found) context.Warn(found.error().message + "; ignored");
  if (!found || !*found || !(*found)->plan.request) return {};
  const FoundPlan& plan = **found;
  PlanOutput output{
      .text = fmt::format("generated by: etude generate {}\n", CommandText(*plan.plan.request)),
      .json = ToJson(*plan.plan.request)};
  output.json["plan_file"] = plan.path;
  output.json["mismatch"] = plan.mismatch.empty() ? Json(nullptr) : Json(plan.mismatch);
  if (!plan.mismatch.empty()) {
    output.text += fmt::format("  and changed later: {}\n", plan.mismatch);
  }
  return output;
}

class InfoCommand : public Command {
 public:
  std::string_view name() const override { return "info"; }
  std::string_view summary() const override { return "summarize a trace or a capture folder"; }

  void Declare(Options& options) override {
    options.Positional("path", &path_, "trace in any format, capture folder, or - for stdin");
    options.Flag("--json", &json_, "print JSON with all operators");
    options.Value("--top", &top_, "N", "number of operators to list", {.least = 0});
    options.Flag("--motifs", &motifs_,
                 "also show steps, phases and repeated node sequences (one trace only)");
  }

  Result<ExitCode> Run(const Console& console) override {
    const ReadOptions read{.strict = console.strict()};
    if (path_ == "-" || !IsFolder(path_)) {
      ETUDE_ASSIGN_OR_RETURN(const Trace trace, ReadTrace(path_, read, console.context()));
      const Summary summary = Summarise(trace);
      const Health health = JudgeTrace(trace);
      std::optional<MotifTree> tree;
      ProgramPhases phases;
      if (motifs_) {
        Result<ProgramPhases> found = FindPhases(trace);
        if (!found) return MakeError(found.error().code, path_ + ": " + found.error().message);
        phases = *std::move(found);
        ETUDE_ASSIGN_OR_RETURN(tree, MakeMotifTree(trace, {}, console.context().limits));
      }
      const PlanOutput plan = path_ == "-" ? PlanOutput() : PlanOutputOf(path_, console.context());
      if (json_) {
        Json json = {{"format", "etude-info"}, {"version", 1}};
        if (!plan.json.is_null()) json["generated"] = plan.json;
        json["traces"] = Json::array({TraceJson(path_, std::nullopt, trace, summary, health)});
        if (tree) json["traces"][0]["phases"] = PhasesJson(phases);
        if (tree) json["traces"][0]["structure"] = MotifJson(trace, *tree);
        console.Print(JsonText(json));
      } else {
        std::string text = TraceText(path_, trace, summary, health, shown_ops());
        text += plan.text;
        if (tree) text += PhasesText(phases) + MotifText(trace, *tree);
        console.Print(text);
      }
      return ExitCode::kOk;
    }
    if (motifs_) {
      return MakeError(ErrorCode::kUsage,
                       "info: --motifs requires one trace; name one in the folder");
    }
    return RunFolder(console, read);
  }

 private:
  size_t shown_ops() const { return static_cast<size_t>(top_); }

  Result<ExitCode> RunFolder(const Console& console, const ReadOptions& read);

  std::string path_;
  bool json_ = false;
  bool motifs_ = false;
  int64_t top_ = 8;
};

// Describes a native capture together with its device profile.
std::string PairText(const RankInput& pair, const Health& health) {
  std::string text = fmt::format("\n{} + {}\n", pair.path, pair.device);
  if (const auto& time = health.graph_time) {
    TextTable facts({Align::kLeft, Align::kLeft});
    facts.Row({"graph time", GraphTimeText(*time)});
    text += facts.Text();
  }
  return text + ToText(health);
}

Json PairJson(const RankInput& pair, std::optional<int64_t> rank, const Health& health) {
  return {{"path", pair.path},
          {"device", pair.device},
          {"rank", OrNull(rank)},
          {"trust", ToJson(health)}};
}

Result<ExitCode> InfoCommand::RunFolder(const Console& console, const ReadOptions& read) {
  ETUDE_ASSIGN_OR_RETURN(const CaptureFolder folder, ListCaptureFolder(path_, console.context()));
  Json traces = Json::array();
  Json pairs = Json::array();
  std::string text;
  std::vector<RankTimes> times;
  JobHealth job;
  for (const CaptureRank& rank : folder.ranks) {
    times.push_back({.rank = std::to_string(rank.number()),
                     .number = folder.known_rank(rank),
                     .span = {},
                     .device_busy = {}});
    Health pair;  // of a native capture with its device profile
    const auto take = [&](const RankInput& input, const Result<Trace>& trace) -> Status {
      if (!trace) return tl::unexpected<Error>(trace.error());
      const RecordedRun recorded(*trace);
      RankRun run = MakeRankRun(recorded, rank.number());
      Health health = JudgeTrace(recorded, run);
      if (input.is_half) health.LeaveOutGraphTime();
      job.Add(health, std::move(run), UseOf(input, rank));
      const Summary summary = Summarise(*trace);
      times.back().Take(summary);
      if (input.as_profile) {
        pair.LeaveOutGraphTime();
        pair.Add(health, "");
        pair.graph_time = health.graph_time;
        pairs.push_back(PairJson(input, folder.known_rank(rank), pair));
        text += PairText(input, pair);
      } else if (!input.device.empty()) {
        pair = std::move(health);
      }
      if (!input.device.empty()) return {};  // the files of the pair are already shown
      if (json_) {
        traces.push_back(TraceJson(input.path, folder.known_rank(rank), *trace, summary, health));
      } else {
        text += "\n" + TraceText(input.path, *trace, summary, health, shown_ops());
      }
      return {};
    };
    ETUDE_RETURN_IF_ERROR(ReadAllOf(rank, read, console.context(), take));
  }
  const bool is_job = job.is_job();
  if (is_job) job.Judge();
  const PlanOutput plan = PlanOutputOf(path_, console.context());
  if (json_) {
    Json json = {{"format", "etude-info"}, {"version", 1}};
    if (!plan.json.is_null()) json["generated"] = plan.json;
    json["ranks"] = folder.ranks.size();
    json["times"] = TimesJson(times);
    json["traces"] = std::move(traces);
    if (!pairs.empty()) json["pairs"] = std::move(pairs);
    if (is_job) json["job"] = job.Json();
    console.Print(JsonText(json));
    return ExitCode::kOk;
  }
  if (is_job) text += "\n" + job.Text();
  console.Print(fmt::format("{}: capture of {}\n{}{}{}", path_,
                            FormatCount(folder.ranks.size(), "rank"), plan.text, TimesText(times),
                            text));
  return ExitCode::kOk;
}

}  // namespace

std::unique_ptr<Command> MakeInfoCommand() { return std::make_unique<InfoCommand>(); }

}  // namespace etude
