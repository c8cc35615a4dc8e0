#include "src/cli/app/commands.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/open_file.h"
#include "src/cli/tool/child_process.h"
#include "src/cli/trace/selection_options.h"
#include "src/formats/io/atomic_file.h"
#include "src/formats/io/byte_source.h"
#include "src/formats/timeline/graph_writer.h"
#include "src/jobs/file_endings.h"
#include "src/report/text/format.h"
#include "src/report/text/json_output.h"
#include "src/transform/graph_view.h"

namespace etude {
namespace {

using Json = nlohmann::ordered_json;

// Describes how the graph was reduced.
std::string CollapseText(const GraphView& view) {
  switch (view.collapse) {
    case Collapse::kNone: return "";
    case Collapse::kDepth:
      return fmt::format("nodes more than {} levels below a root are merged into the box above",
                         view.depth);
    case Collapse::kPath:
      return fmt::format(
          "nodes of the same name below the same box are merged, down to level {} below the roots",
          view.depth);
    case Collapse::kName: return "nodes whose names differ only in numbers are merged";
    case Collapse::kKind: return "nodes of the same kind are merged";
  }
  return "";
}

// A memory file that a child process can open by the same path.
class SharedFile {
 public:
  explicit SharedFile(const char* name) : fd_(memfd_create(name, 0)) {}
  ~SharedFile() {
    if (fd_ >= 0) close(fd_);
  }
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  std::string path() const { return PathOfOpen(fd_); }
  // Returns false, with errno set, on failure.
  bool Write(std::string_view bytes) const { return WriteAll(fd_, bytes); }

 private:
  int fd_;
};

class GraphCommand : public Command {
 public:
  std::string_view name() const override { return "graph"; }
  std::string_view summary() const override {
    return "draw the dependency graph as DOT, GraphML, or SVG (requires Graphviz)";
  }

  void Declare(Options& options) override {
    options.Positional("input", &input_, "trace in any format, capture folder with --rank, or -");
    options.Value("-o,--output", &output_, "FILE", "output file: .dot, .graphml or .svg");
    options.Required("--output");
    options.Choice("--to", &to_, {"dot", "graphml", "svg"},
                   "output format (default: from the file name)");
    options.Value("--most-nodes", &most_, "N", "max boxes to draw; larger graphs are collapsed",
                  {.least = 1, .most = 10'000'000});
    what_.Declare(options);
    options.Flag("--json", &json_, "print a summary of the output as JSON");
  }

  Result<ExitCode> Run(const Console& console) override {
    ETUDE_RETURN_IF_ERROR(CheckStandardOutput(output_, json_));
    ETUDE_ASSIGN_OR_RETURN(const std::string format, Format());
    ETUDE_ASSIGN_OR_RETURN(const std::vector<RankInput> inputs,
                           what_.FindInputs({input_}, console.context()));
    if (inputs.size() != 1) {
      return MakeError(ErrorCode::kUsage,
                       fmt::format("graph: found {} ranks; choose one with --rank", inputs.size()));
    }
    const RankInput& input = inputs.front();
    ETUDE_RETURN_IF_ERROR(CheckOutput(output_, {input.path, input.device}));
    ETUDE_ASSIGN_OR_RETURN(Trace trace,
                           ReadRank(input, {.strict = console.strict()}, console.context()));
    ETUDE_ASSIGN_OR_RETURN(trace,
                           what_.Select(std::move(trace), input.path, console.context().limits));
    GraphView view = ViewGraph(trace, static_cast<size_t>(most_));
    view.graph.title = std::filesystem::path(input.path).filename().string();
    ETUDE_RETURN_IF_ERROR(format == "svg" ? WriteSvg(view.graph, console.context())
                                          : WriteText(view.graph, format));
    if (output_ != "-") Report(console, view, trace.node_count());
    return ExitCode::kOk;
  }

 private:
  Result<std::string> Format() const {
    if (!to_.empty()) return to_;
    const std::string ending = FormatEnding(output_);
    if (ending == ".dot" || ending == ".gv" || output_ == "-") return "dot";
    if (ending == ".graphml") return "graphml";
    if (ending == ".svg") return "svg";
    return MakeError(
        ErrorCode::kUsage,
        "graph: " + output_ + ": expected a name that ends in .dot, .graphml or .svg, or --to");
  }

  Status WriteText(const DrawnGraph& graph, const std::string& format) const {
    ETUDE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(output_));
    const auto sink = [&](std::string_view bytes) { return file.Write(bytes); };
    ETUDE_RETURN_IF_ERROR(format == "dot" ? WriteDot(graph, sink) : WriteGraphml(graph, sink));
    return file.Commit();
  }

  // Graphviz reads and writes memory files, so nothing remains in any case.
  Status WriteSvg(const DrawnGraph& graph, const RunContext& context) const {
    if (output_ == "-") {
      return MakeError(ErrorCode::kUsage, "graph: SVG requires an output file; -o - writes DOT");
    }
    const SharedFile dot("graph.dot");
    const SharedFile svg("graph.svg");
    const auto sink = [&](std::string_view bytes) -> Status {
      if (dot.Write(bytes)) return {};
      return MakeError(ErrorCode::kIo,
                       fmt::format("{}: cannot draw it: {}", output_, std::strerror(errno)));
    };
    ETUDE_RETURN_IF_ERROR(WriteDot(graph, sink));
    const Result<ChildEnd> end = RunChild({"dot", "-Tsvg", "-o", svg.path(), dot.path()}, {});
    if (!end && end.error().code == ErrorCode::kUnavailable) {
      return Unavailable(
          "graph: SVG requires the program `dot` of Graphviz; install the package graphviz, or "
          "write a .dot file");
    }
    if (!end) return tl::unexpected<Error>(end.error());
    if (end->killed && (end->value == SIGINT || end->value == SIGTERM)) {
      return MakeError(ErrorCode::kInterrupted, "interrupted");
    }
    if (end->exit_code() != 0) {
      return Unavailable(
          fmt::format("graph: `dot` failed with exit code {}; draw fewer boxes with --most-nodes",
                      end->exit_code()));
    }
    ETUDE_ASSIGN_OR_RETURN(const std::string drawn,
                           ReadWholeFile(svg.path(), context.limits, context.limits.total_bytes));
    if (drawn.empty()) return Unavailable("graph: `dot` wrote no drawing");
    return WriteFile(output_, drawn);
  }

  void Report(const Console& console, const GraphView& view, size_t nodes) const {
    const DrawnGraph& graph = view.graph;
    if (json_) {
      const Json json = {{"format", "etude-graph"},
                         {"version", 1},
                         {"path", output_},
                         {"nodes", nodes},
                         {"boxes", graph.boxes.size()},
                         {"edges", graph.edges.size()},
                         {"collapse", Name(view.collapse)},
                         {"depth", view.depth},
                         {"edges_inside_boxes", view.inside},
                         {"dangling_references", view.dangling}};
      console.Print(JsonText(json));
      return;
    }
    std::string text = fmt::format("wrote {}: {} in {}, {}\n", output_, FormatCount(nodes, "node"),
                                   FormatCount(graph.boxes.size(), "box", "boxes"),
                                   FormatCount(graph.edges.size(), "edge"));
    if (const std::string collapse = CollapseText(view); !collapse.empty()) {
      const bool fits = graph.boxes.size() <= static_cast<size_t>(most_);
      const std::string most = FormatCount(static_cast<uint64_t>(most_));
      text += fmt::format("  collapsed {} (--most-nodes): {}\n",
                          fits ? fmt::format("to at most {} boxes", most)
                               : fmt::format("as far as possible, but to more than {} boxes", most),
                          collapse);
    }
    if (view.inside != 0) {
      text += fmt::format("  edges inside boxes, not drawn: {}\n", FormatCount(view.inside));
    }
    if (view.dangling != 0) {
      text +=
          fmt::format("  references to missing nodes, not drawn: {}\n", FormatCount(view.dangling));
    }
    console.Print(text);
  }

  std::string input_;
  std::string output_;
  std::string to_;
  int64_t most_ = 300;
  SelectionOptions what_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeGraphCommand() { return std::make_unique<GraphCommand>(); }

}  // namespace etude
