#include "src/compat/stage/stage_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "src/compat/chakra/chakra_message.h"
#include "src/formats/chakra/chakra_kind.h"
#include "src/formats/chakra/chakra_schema.h"
#include "src/formats/json/py_literal.h"

namespace etude::stage {
namespace {

using chakra::ValueType;
using compat::ChakraAttr;
using compat::ChakraNode;
using compat::ChakraType;

constexpr uint32_t Field(ValueType type) { return static_cast<uint32_t>(type); }
constexpr uint32_t kStringList = Field(ValueType::kString) + 1;
constexpr std::string_view kSchema = "symbolic_tensor_network";

ChakraAttr WholeAttr(std::string_view name, ValueType type, int64_t value) {
  ChakraAttr attr(name);
  attr.Varint(Field(type), static_cast<uint64_t>(value));
  return attr;
}

ChakraAttr TextAttr(std::string_view name, std::string_view value) {
  ChakraAttr attr(name);
  attr.Bytes(Field(ValueType::kString), value);
  return attr;
}

// Truncates like STAGE.
int64_t Cut(double elements) { return static_cast<int64_t>(elements); }

// Makes nodes of one stage with the texts of their inputs and outputs.
class NodeWriter {
 public:
  NodeWriter(const TensorModel& model, const StageOptions& options, const StageGraph& graph,
             int64_t first_tag)
      : model_(model), options_(options), graph_(graph), first_tag_(first_tag) {}

  // Returns `node` without the attribute of its group or peer, and without the last one.
  ChakraNode Message(const GraphNode& node) const {
    deps_.clear();
    for (const uint32_t dep : node.deps) deps_.push_back(graph_.nodes[dep].id);
    const StageTensor& tensor = graph_.tensors[node.tensor];
    const std::string id = IdOf(tensor);
    switch (node.kind) {
      case GraphNode::Kind::kCompute: {
        ChakraNode message(node.id, id + "_COMP", ChakraType::kComp, deps_);
        std::vector<std::string> inputs;
        if (tensor.x1 != kNoTensor) AppendIo(tensor.x1, inputs);
        if (tensor.x2 != kNoTensor) AppendIo(tensor.x2, inputs);
        std::vector<std::string> outputs;
        AppendIo(node.tensor, outputs);
        AddIo(inputs, outputs, message);
        const Pattern& pattern = PatternOf(tensor);
        message.Attr(WholeAttr("num_ops", ValueType::kInt64, Cut(pattern.operations)));
        message.Attr(WholeAttr("tensor_size", ValueType::kUint64, Cut(pattern.elements)));
        message.Attr(TextAttr("op_type", Name(pattern.op)));
        return message;
      }
      case GraphNode::Kind::kCollectiveX1:
      case GraphNode::Kind::kCollectiveX2: {
        const bool first = node.kind == GraphNode::Kind::kCollectiveX1;
        ChakraNode message(node.id, id + (first ? "_X1COMM" : "_X2_COMM"), ChakraType::kColl,
                           deps_);
        std::vector<std::string> inputs;
        AppendIo(first ? tensor.x1 : tensor.x2, inputs);
        AddIo(inputs, {}, message);
        message.Attr(WholeAttr("comm_size", ValueType::kInt64, Cut(node.size)));
        message.Attr(WholeAttr("comm_type", ValueType::kInt64,
                               chakra::NumberOf(node.collective.type).value_or(0)));
        return message;
      }
      case GraphNode::Kind::kSend:
      case GraphNode::Kind::kRecv: break;
    }
    const bool sends = node.kind == GraphNode::Kind::kSend;
    ChakraNode message(node.id, id + (sends ? "_Y_SEND" : "_Y_RECV"),
                       sends ? ChakraType::kSend : ChakraType::kRecv, deps_);
    std::vector<std::string> io;
    AppendIo(node.tensor, io);
    const std::vector<std::string> none;
    AddIo(sends ? io : none, sends ? none : io, message);
    message.Attr(WholeAttr("comm_size", ValueType::kInt64, Cut(node.size)));
    message.Attr(WholeAttr("comm_tag", ValueType::kInt32, first_tag_ + node.message));
    return message;
  }

 private:
  const Pattern& PatternOf(const StageTensor& tensor) const {
    return model_.patterns[model_.tensors[tensor.tensor].pattern];
  }

  std::string IdOf(const StageTensor& tensor) const {
    const std::string& id = model_.tensors[tensor.tensor].id;
    return tensor.shadow ? "shadow_" + id : id;
  }

  static void AddIo(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                    ChakraNode& message) {
    for (const auto& [name, values] : {std::pair("inputs", &inputs), {"outputs", &outputs}}) {
      ChakraAttr attr(name);
      if (!values->empty()) attr.BytesList(kStringList, *values);
      message.Attr(attr);
    }
  }

  // Appends name with shape, and size; for passed-on tensors those of the original.
  void AppendIo(uint32_t index, std::vector<std::string>& io) const {
    const StageTensor* tensor = &graph_.tensors[index];
    if (!tensor->shadow && PatternOf(*tensor).op == Op::kIdentical) {
      tensor = &graph_.tensors[tensor->x1];
    }
    const Pattern& pattern = PatternOf(*tensor);
    const std::string id = IdOf(*tensor);
    io.push_back(id + pattern.shape_text);
    io.push_back(IsTransient(id) ? "0" : SizeText(pattern.elements, IsTrained(*tensor)));
  }

  bool IsTrained(const StageTensor& tensor) const {
    if (tensor.shadow) return false;
    const std::string_view id = model_.tensors[tensor.tensor].id;
    return PatternOf(tensor).op == Op::kWeight || id.ends_with("@1");
  }

  // Returns whether STAGE does not count the tensor as memory if weights are sharded: whole
  // weights, and gradients.
  bool IsTransient(std::string_view id) const {
    if (!options_.weight_sharded || options_.dp == 1) return false;
    return id.find("_assembled_weight") != std::string_view::npos ||
           id.find("_assembled_grad") != std::string_view::npos ||
           id.find("_backward") != std::string_view::npos ||
           id.substr(id.rfind('.') + 1).starts_with('d');
  }

  // Returns elements, with four more for each trained one; with mixed precision bytes instead.
  std::string SizeText(double elements, bool trained) const {
    const double optimizer = trained ? elements * 4 : 0;
    // Files of the debug model never use mixed precision.
    if (options_.mixed_precision && options_.model != Model::kDebug) {
      const int64_t bytes = Cut(elements * (trained ? 1.5 : 0.5)) * 4;
      if (!trained) return std::to_string(bytes);
      elements = static_cast<double>(bytes);
    }
    std::string text;
    AppendPyDouble(elements + optimizer, text);
    return text;
  }

  const TensorModel& model_;
  const StageOptions& options_;
  const StageGraph& graph_;
  int64_t first_tag_;
  mutable std::vector<uint64_t> deps_;
};

void AppendLength(size_t length, std::string& out) {
  ByteBuffer buffer;
  buffer.Ensure(10);
  compat::PutVarint(length, buffer);
  out += buffer.view();
}

void AppendAttr(const ChakraAttr& attr, std::string& out) {
  ByteBuffer buffer;
  compat::AppendBytesField(static_cast<uint32_t>(chakra::NodeField::kAttr), attr.view(), buffer);
  out += buffer.view();
}

}  // namespace

StageFile::StageFile(const TensorModel& model, const StageOptions& options, const StageGraph& graph,
                     int64_t first_tag) {
  ByteBuffer metadata;
  compat::AppendBytesField(static_cast<uint32_t>(chakra::MetadataField::kAttr),
                           TextAttr("schema", kSchema).view(), metadata);
  AppendLength(metadata.size(), fixed_);
  fixed_ += metadata.view();
  const NodeWriter writer(model, options, graph, first_tag);
  for (const GraphNode& node : graph.nodes) {
    const ChakraNode message = writer.Message(node);
    if (node.kind == GraphNode::Kind::kCompute) {
      AppendLength(message.view().size(), fixed_);
      fixed_ += message.view();
    } else {
      holes_.push_back({.at = fixed_.size(),
                        .before = std::string(message.view()),
                        .kind = node.kind,
                        .group = node.collective.over,
                        .peer_stage = node.peer_stage});
    }
  }
  nodes_ = graph.nodes.size();
}

void StageFile::AppendRank(const RankGrid& grid, int64_t rank, std::string& out) const {
  std::array<std::string, kSymbolCount> group_attrs;
  std::string last;
  AppendAttr(WholeAttr("is_cpu_op", ValueType::kInt32, 0), last);
  std::string peer;
  size_t done = 0;
  for (const Hole& hole : holes_) {
    out.append(fixed_, done, hole.at - done);
    done = hole.at;
    std::string* attr = &peer;
    if (hole.kind == GraphNode::Kind::kSend || hole.kind == GraphNode::Kind::kRecv) {
      const bool sends = hole.kind == GraphNode::Kind::kSend;
      peer.clear();
      AppendAttr(WholeAttr(sends ? "comm_dst" : "comm_src", ValueType::kInt32,
                           grid.RankIn(hole.peer_stage, rank)),
                 peer);
    } else {
      attr = &group_attrs[static_cast<size_t>(hole.group)];
      if (attr->empty()) {
        AppendAttr(TextAttr("pg_name", std::to_string(grid.Group(rank, hole.group))), *attr);
      }
    }
    AppendLength(hole.before.size() + attr->size() + last.size(), out);
    out += hole.before;
    out += *attr;
    out += last;
  }
  out.append(fixed_, done);
}

Result<StageJob> StageJob::Make(const StageOptions& options, int64_t first_tag) {
  ETUDE_RETURN_IF_ERROR(CheckStageOptions(options));
  ETUDE_ASSIGN_OR_RETURN(const TensorModel model, MakeTensorModel(options));
  ETUDE_ASSIGN_OR_RETURN(const std::vector<StageGraph> graphs, MakeStageGraphs(model));
  StageJob job(model);
  const int64_t head = StageOfHead(options);
  if (options.model != Model::kDebug && head != options.pp - 1) {
    job.remarks_.push_back(
        fmt::format("out_emb and loss are on pipeline stage {} of 0 to {}, as STAGE has it where "
                    "--pp does not divide --num_stacks",
                    head, options.pp - 1));
  }
  if (std::ranges::any_of(model.patterns, [](const Pattern& one) {
        return one.elements != std::trunc(one.elements);
      })) {
    job.remarks_.emplace_back(
        "sizes that are no whole numbers are cut off: the degrees do not divide the dimensions");
  }
  if (options.model == Model::kMoe && options.top_experts > options.experts) {
    job.remarks_.push_back(
        fmt::format("--kexperts {}: tokens go to more experts than the {} of --experts, as STAGE "
                    "has it",
                    options.top_experts, options.experts));
  }
  for (const StageGraph& graph : graphs) {
    job.stages_.emplace_back(model, options, graph, first_tag);
  }
  return job;
}

uint64_t StageJob::nodes() const {
  uint64_t nodes = 0;
  for (const StageFile& stage : stages_) nodes += stage.nodes();
  return nodes * static_cast<uint64_t>(ranks()) / stages_.size();
}

void StageJob::RankBytes(int64_t rank, std::string& out) const {
  out.clear();
  stages_[static_cast<size_t>(grid_.stage(rank))].AppendRank(grid_, rank, out);
}

std::string StageJob::GroupsJson() const {
  std::string text = "{";
  for (const auto& [number, ranks] : grid_.Groups()) {
    text += fmt::format("{}\"{}\": [{}]", number == 1 ? "" : ", ", number, fmt::join(ranks, ", "));
  }
  return text + "}";
}

}  // namespace etude::stage
