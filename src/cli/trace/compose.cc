#include "src/cli/app/commands.h"

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/compose/compose.h"
#include "src/compose/recipe.h"
#include "src/formats/io/atomic_file.h"
#include "src/formats/io/byte_source.h"
#include "src/formats/io/toml_text.h"
#include "src/formats/job/capture_folder.h"
#include "src/jobs/output_files.h"
#include "src/report/tables/accounts.h"
#include "src/report/text/format.h"
#include "src/report/text/json_output.h"
#include "src/transform/read_job.h"
#include "src/transform/write_trace.h"

namespace etude {
namespace {

using Align = TextTable::Align;
using Json = nlohmann::ordered_json;

constexpr uint64_t kMostRecipeBytes = uint64_t{1} << 20;

std::string PartsText(const Composition& composition) {
  TextTable table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kLeft});
  table.Row({"part", "times", "operators", "expected", ""});
  for (const ComposedPart& part : composition.parts) {
    std::string notes;
    const auto note = [&](int64_t count, std::string_view what) {
      if (count == 0) return;
      notes += fmt::format("{}{} {}", notes.empty() ? "" : ", ",
                           FormatCount(static_cast<uint64_t>(count)), what);
    };
    if (!part.step.empty()) notes = part.step;
    if (!part.changes.empty()) notes += (notes.empty() ? "" : ", ") + part.changes;
    note(part.dropped, "dropped");
    note(part.replaced, "replaced");
    note(part.scaled, "scaled");
    note(part.taken_apart, "expanded into callees");
    note(part.untimed, "without a time");
    table.Row({part.name, FormatCount(static_cast<uint64_t>(part.repetitions)),
               FormatCount(static_cast<uint64_t>(part.operators)),
               part.expected ? FormatTime(*part.expected) : "unknown", notes});
  }
  return table.Text();
}

std::string ExpectedText(const Composition& composition) {
  const auto operators = static_cast<uint64_t>(composition.operators());
  if (const auto expected = composition.expected()) {
    return fmt::format("expected: {} for the {} of a step, from recorded times\n",
                       FormatTime(*expected), FormatCount(operators, "operator"));
  }
  return fmt::format("expected: unknown, {} of {} operators of a step have no recorded time\n",
                     FormatCount(static_cast<uint64_t>(composition.untimed())),
                     FormatCount(operators));
}

class ComposeCommand : public Command {
 public:
  std::string_view name() const override { return "compose"; }
  std::string_view summary() const override {
    return "build a trace from parts of other traces by a recipe: select, repeat, mix, change";
  }

  void Declare(Options& options) override {
    options.Positional("recipe", &recipe_, "recipe in TOML");
    options.Output("-o,--output", &output_, "FILE", "linked JSON file to write", {".json"});
    options.Required("--output");
    options.Value("--rank", &rank_, "N", "rank in capture folders, if the recipe gives none",
                  {.least = 0});
    options.Flag("--json", &json_, "print a summary of the output as JSON");
  }

  Result<ExitCode> Run(const Console& console) override {
    const Limits& limits = console.context().limits;
    ETUDE_RETURN_IF_ERROR(CheckStandardOutput(output_, json_));
    ETUDE_RETURN_IF_ERROR(CheckOutput(output_, {recipe_}));
    ETUDE_ASSIGN_OR_RETURN(const std::string text,
                           ReadTomlText(recipe_, "a recipe", kMostRecipeBytes, limits));
    ETUDE_ASSIGN_OR_RETURN(const Recipe recipe, ParseRecipe(text, recipe_));
    std::vector<Trace> traces;
    std::vector<ComposeInput> inputs;
    for (const RecipeTrace& trace : recipe.traces) {
      ETUDE_ASSIGN_OR_RETURN(const RankInput input, FindInput(trace, console));
      ETUDE_ASSIGN_OR_RETURN(const auto threads, ThreadsOf(input, console.context()));
      ETUDE_RETURN_IF_ERROR(CheckOutput(output_, {input.path, input.device}));
      ETUDE_ASSIGN_OR_RETURN(traces.emplace_back(),
                             ReadRank(input, {.strict = console.strict()}, console.context()));
      inputs.push_back({.name = input.path, .threads = threads});
    }
    for (size_t i = 0; i < inputs.size(); ++i) inputs[i].trace = &traces[i];
    ETUDE_ASSIGN_OR_RETURN(const Composed composed, Compose(recipe, inputs, limits));
    ETUDE_ASSIGN_OR_RETURN(
        const WrittenTrace written,
        WriteTrace(composed.trace, output_, OutputFormat::kLinked, {.limits = limits}));
    if (output_ != "-") Report(console, composed.composition, written);
    return ExitCode::kOk;
  }

 private:
  // Paths are relative to the recipe's folder.
  Result<RankInput> FindInput(const RecipeTrace& trace, const Console& console) const {
    const std::filesystem::path folder = std::filesystem::path(recipe_).parent_path();
    const std::string path = (folder / trace.path).string();
    const auto fails = [&](std::string_view message) {
      return BadInput(fmt::format("{}: trace '{}': {}: {}", recipe_, trace.name, path, message));
    };
    if (const Status regular = CheckRegular(path); !regular) {
      return BadInput(
          fmt::format("{}: trace '{}': {}", recipe_, trace.name, regular.error().message));
    }
    ETUDE_ASSIGN_OR_RETURN(std::vector<RankInput> found,
                           FindRanks(std::vector<std::string>{path}, console.context()));
    const std::optional<int64_t> rank = trace.rank ? trace.rank : rank_;
    if (trace.rank || (rank && found.size() > 1)) {
      std::erase_if(found, [&](const RankInput& input) { return input.rank != rank; });
      if (found.empty()) return fails(fmt::format("has no rank {}", *rank));
    }
    if (found.size() > 1) {
      return fails(
          fmt::format("has {} ranks, expected one; choose it with 'rank' of the trace or --rank",
                      found.size()));
    }
    return std::move(found.front());
  }

  // Reads the number from the job.json beside the trace.
  static Result<std::optional<int64_t>> ThreadsOf(const RankInput& input,
                                                  const RunContext& context) {
    if (!input.files) return std::nullopt;
    const std::string folder = std::filesystem::path(input.path).parent_path().string();
    ETUDE_ASSIGN_OR_RETURN(const CaptureFolder capture, ListCaptureFolder(folder, context));
    const JobRank* job = capture.job_rank(*input.files);
    return job == nullptr ? std::nullopt : job->threads;
  }

  void Report(const Console& console, const Composition& composition,
              const WrittenTrace& written) const {
    if (json_) {
      Json json = Json::parse(CompositionJson(composition));
      json["output"] = ToJson(written);
      console.Print(JsonText(json));
      return;
    }
    console.Print(fmt::format("{}:\n{}{}{}", recipe_, PartsText(composition),
                              ExpectedText(composition), ToText(written)));
  }

  std::string recipe_;
  std::string output_;
  std::optional<int64_t> rank_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeComposeCommand() { return std::make_unique<ComposeCommand>(); }

}  // namespace etude
