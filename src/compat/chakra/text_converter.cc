#include "src/compat/chakra/text_converter.h"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "src/compat/chakra/chakra_fails.h"
#include "src/compat/chakra/chakra_message.h"
#include "src/synth/text/text_model.h"

namespace etude::compat {
namespace {

constexpr std::string_view kSchema = "1.0.2-chakra.1.0.0";

using Id = std::optional<uint64_t>;

// A phase of a layer, and its most recent nodes. Chakra resets only some of them between traces.
struct Phase {
  TextPhase text;
  Id comp = {};
  Id comm = {};
};

struct Layer {
  std::string_view name;
  Phase forward;
  Phase input_grad;
  Phase weight_grad;
};

// Any other name, including NONE, is the first collective.
ChakraComm CommOf(std::string_view name) {
  if (name == "ALLTOALL") return ChakraComm::kAllToAll;
  if (name == "ALLGATHER") return ChakraComm::kAllGather;
  if (name == "REDUCESCATTER") return ChakraComm::kReduceScatter;
  return ChakraComm::kAllReduce;
}

class TextConverter {
 public:
  TextConverter(std::string text, const TextRequest& request, const FileSink& sink)
      : text_(std::move(text)), request_(request), sink_(sink) {}

  Status Run() {
    ETUDE_RETURN_IF_ERROR(Read());
    for (int64_t npu = 0; npu < request_.num_npus; ++npu) {
      file_.Clear();
      AddMetadata();
      for (int64_t pass = 0; pass < request_.num_passes && failure_.empty(); ++pass) AddPass();
      Forget();
      if (!failure_.empty()) {
        return ChakraFails(request_.input, failure_, "AttributeError or ValueError");
      }
      ETUDE_RETURN_IF_ERROR(sink_(fmt::format("{}.{}.et", request_.output, npu), file_.view()));
    }
    return {};
  }

 private:
  tl::unexpected<Error> Fails(std::string_view what) const {
    return ChakraFails(request_.input, what, "ValueError or IndexError");
  }

  Status Read() {
    Result<TextModel> model = ParseTextModel(text_);
    if (!model) return Fails(model.error().message);
    model_ = *std::move(model);
    for (const TextLayer& layer : model_.layers) {
      layers_.push_back({.name = layer.name,
                         .forward = {layer.forward},
                         .input_grad = {layer.input_grad},
                         .weight_grad = {layer.weight_grad}});
    }
    return {};
  }

  void AddMetadata() {
    ByteBuffer metadata;
    AppendBytesField(2, ChakraAttr("schema").Bytes(29, kSchema).view(), metadata);
    AppendBytesField(2, ChakraAttr("input_file").Bytes(29, text_).view(), metadata);
    AppendMessage(metadata.view(), file_);
  }

  void AddPass() {
    switch (model_.parallelism) {
      case TextParallelism::kMicro: AddMicro(); break;
      case TextParallelism::kData: AddData(); break;
      case TextParallelism::kModel: AddModel(); break;
      case TextParallelism::kDataModel: AddHybrid("_IG_COMM_"); break;
      case TextParallelism::kModelData: AddHybrid(""); break;
      case TextParallelism::kDlrm: AddDlrm(); break;
    }
  }

  void Forget() {
    for (Layer& layer : layers_) {
      if (model_.parallelism != TextParallelism::kModel) layer.weight_grad.comm.reset();
      if (model_.parallelism == TextParallelism::kModel) layer.weight_grad.comp.reset();
      if (model_.parallelism != TextParallelism::kDlrm) continue;
      layer.weight_grad.comp.reset();
      layer.input_grad.comm.reset();
      layer.input_grad.comp.reset();
    }
  }

  // Returns a required node; fails where Chakra would stop.
  uint64_t Need(const Id& id) {
    if (!id) failure_ = "a layer that depends on one without the node for it";
    return id.value_or(0);
  }

  Id Comp(const Layer& layer, std::string_view name, const Phase& phase,
          const std::vector<uint64_t>& deps) {
    if (phase.text.time < 0) failure_ = "a negative time";
    const uint64_t id = next_id_++;
    const ChakraNode node(id, fmt::format("COMP_NODE_{}_{}", layer.name, name), ChakraType::kComp,
                          deps, static_cast<uint64_t>(phase.text.time));
    AppendMessage(node.view(), file_);
    return id;
  }

  Id Comm(std::string_view name, const Phase& phase, const std::vector<uint64_t>& deps) {
    const uint64_t id = next_id_++;
    ChakraNode node(id, fmt::format("COMM_COLL_NODE_{}_{}", name, phase.text.comm),
                    ChakraType::kColl, deps);
    node.Attr(ChakraAttr("comm_type").Varint(9, static_cast<uint64_t>(CommOf(phase.text.comm))));
    node.Attr(ChakraAttr("comm_size").Varint(9, static_cast<uint64_t>(phase.text.size)));
    AppendMessage(node.view(), file_);
    return id;
  }

  void AddMicro() {
    for (const Layer& layer : layers_) Comm(layer.name, layer.weight_grad, {});
  }

  void AddData() {
    Id last;
    for (size_t i = 0; i < layers_.size(); ++i) {
      Layer& layer = layers_[i];
      std::vector<uint64_t> deps;
      if (i != 0) deps.push_back(Need(layers_[i - 1].forward.comp));
      if (layer.weight_grad.comm) deps.push_back(*layer.weight_grad.comm);
      last = layer.forward.comp = Comp(layer, "FWD", layer.forward, deps);
    }
    for (size_t i = layers_.size(); i-- > 0;) {
      Layer& layer = layers_[i];
      const bool is_last = i + 1 == layers_.size();
      const uint64_t dep = Need(is_last ? last : layers_[i + 1].input_grad.comp);
      const Id comp = Comp(layer, "BWD_WG", layer.weight_grad, {dep});
      layer.weight_grad.comm = Comm(layer.name, layer.weight_grad, {*comp});
      if (i != 0) layer.input_grad.comp = Comp(layer, "BWD_IG", layer.input_grad, {*comp});
    }
  }

  // Adds the input gradients of a layer, from those of the following layer.
  Id AddInputGrad(size_t i, const Id& last_comm) {
    std::vector<uint64_t> deps;
    if (i + 1 == layers_.size()) {
      deps = {Need(last_comm)};
    } else {
      deps = {Need(layers_[i + 1].weight_grad.comp), Need(layers_[i + 1].input_grad.comm)};
    }
    return Comp(layers_[i], "BWD_IG", layers_[i].input_grad, deps);
  }

  // Returns whether a layer, counted from the last, is not the last announced one.
  bool IsNotFirst(size_t i) const {
    return static_cast<int64_t>(layers_.size() - 1 - i) != model_.layer_count - 1;
  }

  void AddModel() {
    Id last;
    for (size_t i = 0; i < layers_.size(); ++i) {
      Layer& layer = layers_[i];
      std::vector<uint64_t> deps;
      if (i != 0) deps.push_back(Need(layers_[i - 1].forward.comm));
      if (layer.weight_grad.comp) deps.push_back(*layer.weight_grad.comp);
      layer.forward.comp = Comp(layer, "FWD", layer.forward, deps);
      last = layer.forward.comm = Comm(layer.name, layer.forward, {*layer.forward.comp});
    }
    for (size_t i = layers_.size(); i-- > 0;) {
      Layer& layer = layers_[i];
      const Id comp = AddInputGrad(i, last);
      if (IsNotFirst(i)) layer.input_grad.comm = Comm(layer.name, layer.input_grad, {*comp});
      layer.weight_grad.comp = Comp(layer, "BWD_WG", layer.weight_grad, {*comp});
    }
  }

  void AddHybrid(std::string_view input_grad_suffix) {
    Id last;
    for (size_t i = 0; i < layers_.size(); ++i) {
      Layer& layer = layers_[i];
      std::vector<uint64_t> deps;
      if (layer.weight_grad.comm) deps.push_back(*layer.weight_grad.comm);
      if (i != 0) deps.push_back(Need(layers_[i - 1].forward.comm));
      const Id comp = Comp(layer, "FWD", layer.forward, deps);
      last = layer.forward.comm = Comm(layer.name, layer.forward, {*comp});
    }
    for (size_t i = layers_.size(); i-- > 0;) {
      Layer& layer = layers_[i];
      const Id comp = AddInputGrad(i, last);
      if (IsNotFirst(i)) {
        layer.input_grad.comm = Comm(std::string(layer.name) + std::string(input_grad_suffix),
                                     layer.input_grad, {*comp});
      }
      layer.weight_grad.comp = Comp(layer, "BWD_WG", layer.weight_grad, {*comp});
      layer.weight_grad.comm = Comm(layer.name, layer.weight_grad, {*layer.weight_grad.comp});
    }
  }

  void AddDlrm() {
    Id last;
    for (size_t i = 0; i < layers_.size(); ++i) {
      Layer& layer = layers_[i];
      std::vector<uint64_t> deps;
      if (layer.weight_grad.comm) {
        deps.push_back(*layer.weight_grad.comm);
      } else if (layer.weight_grad.comp) {
        deps.push_back(*layer.weight_grad.comp);
      }
      if (i != 0) deps.push_back(Need(layers_[i - 1].forward.comp));
      if (static_cast<int64_t>(i) == model_.last_bottom)
        deps.push_back(Need(layers_[0].forward.comm));
      last = layer.forward.comp = Comp(layer, "FWD", layer.forward, deps);
      if (layer.forward.text.comm == "ALLTOALL") {
        layer.forward.comm = Comm(layer.name, layer.forward, {*last});
      }
    }
    for (size_t i = layers_.size(); i-- > 0;) {
      Layer& layer = layers_[i];
      std::vector<uint64_t> deps;
      if (i + 1 == layers_.size()) {
        deps.push_back(Need(last));
      } else {
        if (layers_[i + 1].input_grad.comp) deps.push_back(*layers_[i + 1].input_grad.comp);
        if (layer.input_grad.comm) deps.push_back(*layer.input_grad.comm);
      }
      layer.weight_grad.comp = Comp(layer, "BWD_WG", layer.weight_grad, deps);
      if (layer.weight_grad.text.comm != "NONE") {
        layer.weight_grad.comm = Comm(layer.name, layer.weight_grad, {*layer.weight_grad.comp});
      }
      Id comp;
      if (i != 0) {
        comp = layer.input_grad.comp =
            Comp(layer, "BWD_IG", layer.input_grad, {*layer.weight_grad.comp});
      }
      if (static_cast<int64_t>(i) == model_.last_bottom + 1) {
        Layer& first = layers_[0];
        first.input_grad.comm = Comm(first.name, first.input_grad, {Need(comp)});
      }
    }
  }

  const std::string text_;
  const TextRequest& request_;
  const FileSink& sink_;
  TextModel model_;
  std::vector<Layer> layers_;
  uint64_t next_id_ = 0;  // continues across files
  std::string failure_;
  ByteBuffer file_;
};

}  // namespace

Status ConvertText(std::string_view text, const TextRequest& request, const FileSink& sink) {
  return TextConverter(WithPlainLines(text), request, sink).Run();
}

}  // namespace etude::compat
