#include "src/cli/app/commands.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/cli/generate/model_options.h"
#include "src/jobs/generate/generate_job.h"
#include "src/jobs/generate/model_kind.h"
#include "src/report/text/format.h"
#include "src/report/text/json_output.h"
#include "src/synth/device/device_file.h"
#include "src/synth/pattern/microbench.h"

namespace etude {
namespace {

using Json = nlohmann::ordered_json;

class GenerateCommand : public Command {
 public:
  std::string_view name() const override { return "generate"; }
  std::string_view summary() const override {
    return "generate Chakra traces of a communication pattern, or of a model's training or "
           "inference, for any number of ranks";
  }

  void Declare(Options& options) override {
    const std::vector<GenerateOption> values = OptionsOf(request_);
    const auto add = [&](std::string_view name, std::string_view what, std::string_view help) {
      DeclareOption(values, name, what, help, options);
    };
    options.Positional("what", &request_.what, GenerateWhatText());
    options.Positional("pattern", &request_.model,
                       "microbench: a pattern from the list below; text: a file with a model; "
                       "others: a model from the lists below, or a .toml file",
                       /*required=*/false);
    options.Output("-o,--output", &request_.output, "PREFIX", "write PREFIX.RANK.et for each rank",
                   {});
    options.Required("--output");
    add("--ranks", "N",
        "number of ranks (default: 2; for models, set by their parallelism options)");
    add("--count", "N", "microbench, text: number of repetitions in sequence");
    options.Flag("--json", &json_, "print a summary of the output as JSON");
    options.Group("Patterns (microbench)");
    add("--size", "BYTES",
        "bytes that each rank contributes, sends or moves, such as 64MiB (default: 1MiB)");
    add("--duration", "TIME", "duration of each computation, such as 50us (default: 100us)");
    add("--group-size", "N",
        "run collectives in groups of N neighbouring ranks (default: all ranks)");
    add("--native", "",
        "write collectives that ASTRA-sim does not support as one node, not as sends and receives");
    options.Group(kAllModels);
    add("--device", "NAME",
        "compute durations from the roofline of a device from the list below, or of a .toml file");
    add("--measured", "FILE",
        "take durations of matrix products from a recorded trace or a .csv table; --device sets "
        "the others");
    add("--memory", "",
        "report the memory of each rank, and write memory use over time into the traces");
    options.Choice(
        "--to", &request_.to, {"et", "classes"},
        "et: one file per rank; classes: a folder with one file per class of identical ranks");
    DeclareModelOptions(values, options);
    std::string footer = "Patterns:\n";
    for (const PatternInfo& info : Patterns()) {
      footer += fmt::format("  {:<15} {}\n", info.name, info.help);
    }
    for (const ModelKind& kind : ModelKinds()) {
      footer += fmt::format("Models for {} ({}):\n", kind.name, kind.family);
      for (const auto& [name, source] : kind.presets) {
        footer += fmt::format("  {:<16} {}\n", name, source);
      }
    }
    footer += "Devices:\n";
    for (const DevicePreset& device : DevicePresets()) {
      footer += fmt::format("  {:<15} {}\n", device.name, device.source);
    }
    options.Footer(footer);
  }

  Result<ExitCode> Run(const Console& console) override {
    ETUDE_ASSIGN_OR_RETURN(const WrittenJob job, GenerateJob(request_, console.context()));
    if (json_) {
      console.Print(JsonText(ToJson(job)));
    } else {
      console.Print(job.classes ? TextOfClasses(job) : TextOfFiles(job));
    }
    return ExitCode::kOk;
  }

 private:
  Json ToJson(const WrittenJob& job) const {
    Json json = {{"format", "etude-generate"},
                 {"version", 1},
                 {"what", request_.what},
                 {"pattern", request_.model}};
    if (job.classes) {
      json["output"] = request_.output;
      json["ranks"] = job.classes->ranks;
      json["classes"] = job.classes->classes;
      json["communications"] = job.classes->communications;
      json["nodes"] = job.classes->nodes;
      json["nodes_kept"] = job.classes->nodes_kept;
    } else {
      const RankFile sum = SumOf(job.files);
      json["prefix"] = request_.output;
      json["groups"] = job.groups.empty() ? Json(nullptr) : Json(job.groups);
      json["ranks"] = job.files.size();
      json["nodes"] = sum.nodes;
      json["bytes"] = sum.bytes;
    }
    if (job.plan) {
      json["model"] = job.facts;
      json["plan"] = etude::ToJson(*job.plan);
    }
    AddDurations(job, json);
    AddMemory(job, json);
    return json;
  }

  // Adds the durations of the programs' computations.
  void AddDurations(const WrittenJob& job, Json& json) const {
    if (!job.durations) return;
    Json durations = {{"measured", job.durations->measured},
                      {"modelled", job.durations->modelled},
                      {"unknown", job.durations->unknown}};
    if (request_.device) durations["device"] = *request_.device;
    json["durations"] = std::move(durations);
  }

  void AddMemory(const WrittenJob& job, Json& json) const {
    if (!request_.memory) return;
    Json places = Json::array();
    for (const PlaceMemory& place : job.memory) {
      places.push_back({{"weights_bytes", place.states.weights.count},
                        {"gradients_bytes", place.states.gradients.count},
                        {"optimizer_bytes", place.states.optimizer.count},
                        {"cache_before_bytes", place.states.cache.count},
                        {"peak_bytes", place.peak.count}});
    }
    json["memory"] = std::move(places);
  }

  std::string TextOfClasses(const WrittenJob& job) const {
    return fmt::format("{}\nwrote {}: {}, {}\n", job.text, request_.output,
                       ClassesText(*job.classes), NodesText(*job.classes));
  }

  std::string TextOfFiles(const WrittenJob& job) const {
    const RankFile sum = SumOf(job.files);
    std::string text = job.plan ? job.text + "\n" : "";
    text += fmt::format("wrote {}", job.files.front().path);
    if (job.files.size() > 1) text += fmt::format(" … {}", job.files.back().path);
    text += fmt::format(": {}, {}\n", FormatCount(sum.nodes, "node"),
                        FormatBytes(Bytes{static_cast<int64_t>(sum.bytes)}));
    text += "  --workload-configuration=" + request_.output;
    if (!job.groups.empty()) text += " --comm-group-configuration=" + job.groups;
    return text + "\n";
  }

  static RankFile SumOf(const std::vector<RankFile>& files) {
    RankFile sum;
    for (const RankFile& file : files) {
      sum.nodes += file.nodes;
      sum.bytes += file.bytes;
    }
    return sum;
  }

  GenerateRequest request_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeGenerateCommand() { return std::make_unique<GenerateCommand>(); }

}  // namespace etude
