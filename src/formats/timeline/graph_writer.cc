#include "src/formats/timeline/graph_writer.h"

#include <fmt/format.h>

#include <string_view>

#include "src/base/text/function_name.h"

namespace etude {
namespace {

// Max label size in pictures; GraphML has whole labels.
constexpr size_t kMostLabelBytes = 60;

// Returns the beginning of `whole`, without splitting a character.
std::string Shortened(std::string_view whole) {
  if (whole.size() <= kMostLabelBytes) return std::string(whole);
  const std::string text = BareFunctionName(whole);
  if (text.size() <= kMostLabelBytes) return text;
  size_t end = kMostLabelBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

// Returns a quoted text for DOT. Escapes quotes, backslashes and, because Graphviz reads entities,
// ampersands; control bytes become blanks.
std::string DotText(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '&') {
      out += "&amp;";
      continue;
    }
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? ' ' : c;
  }
  return out + "\"";
}

// Returns text for XML; control bytes, which XML cannot hold, become U+FFFD.
std::string XmlText(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      case '\n':
      case '\t': out += fmt::format("&#{};", static_cast<int>(c)); break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += "\xEF\xBF\xBD";
        } else {
          out += c;
        }
    }
  }
  return out;
}

struct Style {
  std::string_view shape;
  std::string_view colour;
};

// Returns the style of a box by the kind of its nodes.
Style StyleOf(const DrawnGraph::Box& box) {
  if (IsCommunication(box.kind)) return {"box", "#f4c7a1"};
  if (box.place == Place::kDevice) return {"box", "#b9dcb4"};
  switch (box.kind) {
    case NodeKind::kLabel:
    case NodeKind::kThread:
    case NodeKind::kProcess: return {"box", "#dddddd"};
    case NodeKind::kCompute:
    case NodeKind::kKernel: return {"box", "#b9dcb4"};
    case NodeKind::kMemLoad:
    case NodeKind::kMemStore:
    case NodeKind::kMemcpy:
    case NodeKind::kMemset: return {"box", "#e8d5ee"};
    default: return {"box", "#c9ddf2"};
  }
}

std::string_view DotStyleOf(DrawnGraph::EdgeKind kind) {
  switch (kind) {
    case DrawnGraph::EdgeKind::kCall: return "color=\"#999999\", arrowhead=none";
    case DrawnGraph::EdgeKind::kControl: return "color=\"#555555\"";
    case DrawnGraph::EdgeKind::kData: return "color=\"#1f5fa8\"";
    case DrawnGraph::EdgeKind::kSync: return "color=\"#b03030\", style=dashed";
  }
  return "";
}

}  // namespace

std::string_view Name(DrawnGraph::EdgeKind kind) {
  switch (kind) {
    case DrawnGraph::EdgeKind::kCall: return "call";
    case DrawnGraph::EdgeKind::kControl: return "control";
    case DrawnGraph::EdgeKind::kData: return "data";
    case DrawnGraph::EdgeKind::kSync: return "sync";
  }
  return "data";
}

Status WriteDot(const DrawnGraph& graph, const ByteSink& sink) {
  SinkBuffer out(sink);
  ETUDE_RETURN_IF_ERROR(out.Put(fmt::format(
      "digraph {} {{\n  rankdir=TB;\n  node [style=filled, fontname=\"Helvetica\", fontsize=10];\n",
      DotText(graph.title))));
  for (size_t i = 0; i < graph.boxes.size(); ++i) {
    const DrawnGraph::Box& box = graph.boxes[i];
    const Style style = StyleOf(box);
    std::string label = DotText(Shortened(box.label));
    label.pop_back();  // lines follow
    if (box.nodes > 1) label += fmt::format("\\n{} nodes", box.nodes);
    if (box.time) label += fmt::format("\\n{:.3f} ms", box.time->ms());
    std::string tooltip = DotText(box.label);
    ETUDE_RETURN_IF_ERROR(
        out.Put(fmt::format("  n{} [label={}\", shape={}, fillcolor=\"{}\", tooltip={}];\n", i,
                            label, style.shape, style.colour, tooltip)));
  }
  for (const DrawnGraph::Edge& edge : graph.edges) {
    const std::string count =
        edge.count > 1 ? fmt::format(", label=\"{}\", fontsize=8", edge.count) : std::string();
    ETUDE_RETURN_IF_ERROR(out.Put(
        fmt::format("  n{} -> n{} [{}{}];\n", edge.from, edge.to, DotStyleOf(edge.kind), count)));
  }
  ETUDE_RETURN_IF_ERROR(out.Put("}\n"));
  return out.Flush();
}

Status WriteGraphml(const DrawnGraph& graph, const ByteSink& sink) {
  SinkBuffer out(sink);
  ETUDE_RETURN_IF_ERROR(
      out.Put("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
              "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n"
              "  <key id=\"label\" for=\"node\" attr.name=\"label\" attr.type=\"string\"/>\n"
              "  <key id=\"kind\" for=\"node\" attr.name=\"kind\" attr.type=\"string\"/>\n"
              "  <key id=\"place\" for=\"node\" attr.name=\"place\" attr.type=\"string\"/>\n"
              "  <key id=\"nodes\" for=\"node\" attr.name=\"nodes\" attr.type=\"long\"/>\n"
              "  <key id=\"source\" for=\"node\" attr.name=\"source_id\" attr.type=\"string\"/>\n"
              "  <key id=\"time\" for=\"node\" attr.name=\"time_ns\" attr.type=\"long\"/>\n"
              "  <key id=\"edge\" for=\"edge\" attr.name=\"kind\" attr.type=\"string\"/>\n"
              "  <key id=\"count\" for=\"edge\" attr.name=\"count\" attr.type=\"long\"/>\n"));
  ETUDE_RETURN_IF_ERROR(
      out.Put(fmt::format("  <graph id=\"{}\" edgedefault=\"directed\">\n", XmlText(graph.title))));
  const auto data = [](std::string_view key, std::string_view value) {
    return fmt::format("<data key=\"{}\">{}</data>", key, value);
  };
  for (size_t i = 0; i < graph.boxes.size(); ++i) {
    const DrawnGraph::Box& box = graph.boxes[i];
    std::string text = fmt::format("    <node id=\"n{}\">", i);
    text += data("label", XmlText(box.label)) + data("kind", Name(box.kind)) +
            data("place", Name(box.place)) + data("nodes", std::to_string(box.nodes));
    if (box.id) text += data("source", std::to_string(*box.id));
    if (box.time) text += data("time", std::to_string(box.time->count));
    ETUDE_RETURN_IF_ERROR(out.Put(text + "</node>\n"));
  }
  for (const DrawnGraph::Edge& edge : graph.edges) {
    ETUDE_RETURN_IF_ERROR(out.Put(
        fmt::format("    <edge source=\"n{}\" target=\"n{}\">{}{}</edge>\n", edge.from, edge.to,
                    data("edge", Name(edge.kind)), data("count", std::to_string(edge.count)))));
  }
  ETUDE_RETURN_IF_ERROR(out.Put("  </graph>\n</graphml>\n"));
  return out.Flush();
}

}  // namespace etude
