#include "src/compat/stage/stage_model.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

namespace etude::stage {
namespace {

constexpr int64_t kMostRanks = int64_t{1} << 20;
constexpr int64_t kMostExperts = 1 << 16;  // on a rank
constexpr int64_t kMostTensors = 20'000'000;

Product Of(Symbol symbol) {
  Product product;
  product[symbol] = 1;
  return product;
}

// Values of the letters in a table.
class Letters {
 public:
  Letters() {
    using enum Symbol;
    const std::pair<char, Symbol> plain[] = {
        {'B', kMicroBatch}, {'S', kSeq},     {'D', kDmodel}, {'F', kDff},     {'H', kHead},
        {'K', kKVHead},     {'G', kQkvHead}, {'V', kDvocal}, {'E', kExperts}, {'k', kKExperts},
        {'d', kDp},         {'t', kTp},      {'c', kCp},     {'e', kEp}};
    for (const auto& [letter, symbol] : plain) products_[letter] = Of(symbol);
    Set('q', "S/c");
    Set('s', "S/c/t");
  }

  void Set(char letter, std::string_view product) { products_[letter] = Parse(product); }

  // Parses "3H/t": a number, then letters; each '/' divides by the following letter.
  Product Parse(std::string_view text) const {
    Product product;
    const auto [rest, error] =
        std::from_chars(text.data(), text.data() + text.size(), product.factor);
    if (error != std::errc()) product.factor = 1;
    for (const char* at = rest; at != text.data() + text.size(); ++at) {
      product = *at == '/' ? product / products_.at(*++at) : product * products_.at(*at);
    }
    return product;
  }

  Shape ParseShape(std::string_view text) const {
    Shape shape;
    while (!text.empty()) {
      const size_t space = text.find(' ');
      shape.emplace_back(Parse(text.substr(0, space)));
      text = space == std::string_view::npos ? "" : text.substr(space + 1);
    }
    return shape;
  }

 private:
  std::map<char, Product> products_;
};

// Parses "3:H/t": a dimension and a product.
std::pair<size_t, Product> ParseChange(std::string_view attr, const Letters& letters) {
  return {static_cast<size_t>(attr[0] - '0'), letters.Parse(attr.substr(2))};
}

// Returns the layout of an einsum's result for operands of these shapes.
Layout EinsumLayout(std::string_view einsum, const Shape& x1, const Shape& x2) {
  const size_t comma = einsum.find(',');
  const size_t arrow = einsum.find("->");
  const std::string_view first = einsum.substr(0, comma);
  const std::string_view second = einsum.substr(comma + 1, arrow - comma - 1);
  const std::string_view result = einsum.substr(arrow + 2);
  Layout y;
  for (const char letter : result) {
    const size_t in_first = first.find(letter);
    y.shape.push_back(in_first != std::string_view::npos ? x1[in_first] : x2[second.find(letter)]);
  }
  for (size_t i = 0; i < first.size(); ++i) {
    if (result.find(first[i]) == std::string_view::npos) y.partial.push_back(x1[i]);
  }
  return y;
}

Size Times(Size size, int64_t factor) {
  for (Product& term : size.terms) term.factor *= factor;
  return size;
}

std::string_view LastPart(std::string_view name) { return name.substr(name.rfind('.') + 1); }

// STAGE recognises gradients by this name; they read weights that are gathered again.
bool IsBackward(std::string_view name) { return LastPart(name).starts_with('d'); }

// Returns "mha.dwo" for "mha.wo".
std::string GradientOf(std::string_view weight) {
  const std::string_view last = LastPart(weight);
  return fmt::format("{}d{}", weight.substr(0, weight.size() - last.size()), last);
}

// A tensor of one layer, before its micro-batch and position are set.
struct PlannedTensor {
  std::string name;
  uint32_t pattern = 0;
  std::string x1;  // name in the layer; with a '~' prefix: of all micro-batches; "@below", "@above"
  std::string x2;
  std::vector<std::string> after;
};

using Links = std::map<std::string_view, std::string>;

// Location of a plan's tensors.
struct Site {
  std::string micro;  // "mb0."
  std::string name;   // "transformer.3."
  int64_t stage = 0;
  std::string below;  // source of the layer's input, and of its output's gradient
  std::string above;
};

class ModelMaker {
 public:
  explicit ModelMaker(const StageOptions& options) : options_(options) {
    using enum Symbol;
    model_.stages = options.pp;
    model_.dimensions = {kDp, kTp, kCp};
    const bool has_experts = options.model == Model::kMoe || options.model == Model::kDebug;
    if (has_experts) model_.dimensions.push_back(kEp);
    SymbolValues& values = model_.values;
    values[kDff] = options.dff;
    values[kDmodel] = options.dmodel;
    values[kDvocal] = options.vocabulary;
    values[kExperts] = options.experts;
    values[kHead] = options.heads;
    values[kKExperts] = options.top_experts;
    values[kKVHead] = options.kv_heads;
    values[kMicroBatch] = options.micro_batch;
    values[kSeq] = options.sequence;
    values[kCp] = options.cp;
    values[kDp] = options.dp;
    values[kEp] = options.ep;
    values[kTp] = has_experts ? options.tp : options.tp * options.ep;
    values[kQkvHead] = options.heads + 2 * options.kv_heads;
    if (options.model == Model::kGpt) {
      letters_.Set('K', "H");
      letters_.Set('G', "3H");
      if (!options.tpsp) letters_.Set('s', "S/c");
    }
  }

  Result<TensorModel> Run() {
    if (options_.model == Model::kDebug) {
      PlanDebug();
      Place(embedding_in_, {});
    } else {
      PlanLayer();
      PlanEnds();
      const int64_t micro_batches = options_.batch / options_.micro_batch;
      const auto tensors = static_cast<int64_t>(layer_.size()) * options_.layers;
      if (tensors > kMostTensors / micro_batches) {
        return BadInput(fmt::format("more than {} tensors in a step", kMostTensors));
      }
      for (int64_t micro = 0; micro < micro_batches; ++micro) PlaceMicroBatch(micro);
      PlaceWeights(micro_batches);
    }
    if (failed_) return tl::unexpected<Error>(*failed_);
    ETUDE_RETURN_IF_ERROR(Resolve());
    return std::move(model_);
  }

 private:
  using Plan = std::vector<PlannedTensor>;

  uint32_t AddPattern(Op op, Layout x1, Layout x2, Layout y, const Size& operations) {
    Pattern pattern{.op = op, .x1 = std::move(x1), .x2 = std::move(x2), .y = std::move(y)};
    const auto evaluate = [&](const Size& size) {
      if (size.terms.empty()) return 0.0;
      const Result<double> value = Evaluate(size, model_.values);
      if (!value && !failed_) failed_ = value.error();
      return value.value_or(0.0);
    };
    pattern.operations = evaluate(operations);
    pattern.elements = evaluate(Elements(pattern.y.shape));
    for (const Size& dimension : pattern.y.shape) {
      if (!pattern.shape_text.empty()) pattern.shape_text += ',';
      pattern.shape_text += Text(dimension);
    }
    model_.patterns.push_back(std::move(pattern));
    return static_cast<uint32_t>(model_.patterns.size() - 1);
  }

  // Adds the pattern of a tensor whose result follows from its row.
  uint32_t AddPattern(const TensorRow& row, const Letters& letters) {
    Layout x1{.shape = letters.ParseShape(row.shape1)};
    Layout x2{.shape = letters.ParseShape(row.shape2)};
    const auto factor = [&] { return std::stoll(std::string(row.attr)); };
    switch (row.op) {
      case Op::kPlaceholder:
      case Op::kWeight:
      case Op::kShadow:
      case Op::kIdentical: return AddPattern(row.op, x1, {}, x1, {});
      case Op::kAdd:
        x1.partial = x2.partial = letters.ParseShape(row.partial);
        return AddPattern(row.op, x1, x2, x1, Elements(x1.shape));
      case Op::kElement:
      case Op::kElement2: {
        const int64_t each = factor();
        return AddPattern(row.op, x1, x2, x1, each == 0 ? Size() : Times(Elements(x1.shape), each));
      }
      case Op::kEinsum: {
        const Layout y = EinsumLayout(row.attr, x1.shape, x2.shape);
        Shape all = y.shape;
        all.insert(all.end(), y.partial.begin(), y.partial.end());
        return AddPattern(row.op, x1, x2, y, Elements(all));
      }
      case Op::kSlice:
      case Op::kBroadcast: {
        const auto [dimension, product] = ParseChange(row.attr, letters);
        Layout y = x1;
        Size& changed = y.shape[dimension];
        changed = row.op == Op::kSlice ? Size(product) : Size(changed.terms[0] * product);
        return AddPattern(row.op, x1, x2, y, Elements(y.shape));
      }
      case Op::kReshape: return AddPattern(row.op, x1, {}, x2, Elements(x2.shape));
      case Op::kCustom:
        x2.partial = letters.ParseShape(row.partial);
        return AddPattern(row.op, x1, {}, x2, Times(Elements(x1.shape), factor()));
    }
    return 0;
  }

  // Appends the tensors of `rows`. Names get `prefix`; '@' names are looked up in `links`, where ""
  // makes a tensor a placeholder. Weights are moved out, except those of the debug model.
  void AddRows(std::span<const TensorRow> rows, const std::string& prefix, const Links& links,
               const Letters& letters, Plan& plan) {
    const auto name_of = [&](std::string_view name) -> std::string {
      if (name.empty()) return {};
      if (!name.starts_with('@')) return prefix + std::string(name);
      const auto link = links.find(name);
      return link == links.end() ? std::string(name) : link->second;
    };
    for (const TensorRow& row : rows) {
      PlannedTensor tensor{.name = name_of(row.name), .x1 = name_of(row.x1), .x2 = name_of(row.x2)};
      TensorRow own = row;
      if (row.op == Op::kIdentical && tensor.x1.empty()) own.op = Op::kPlaceholder;
      tensor.pattern = AddPattern(own, letters);
      for (std::string_view rest = row.after; !rest.empty();) {
        const size_t space = rest.find(' ');
        tensor.after.push_back(name_of(rest.substr(0, space)));
        rest = space == std::string_view::npos ? "" : rest.substr(space + 1);
      }
      plan.push_back(std::move(tensor));
    }
  }

  const Pattern& PatternOf(const PlannedTensor& tensor) const {
    return model_.patterns[tensor.pattern];
  }
  static const PlannedTensor& Find(const Plan& plan, std::string_view name) {
    return *std::ranges::find(plan, name, &PlannedTensor::name);
  }

  void PlanLayer() {
    const bool moe = options_.model == Model::kMoe;
    const Links links = {{"@x", "post_attn_norm.y"},
                         {"@dy", "ffn_res.dx1"},
                         {"@ffn_y", moe ? "moe.y" : "ffn.xdown"},
                         {"@ffn_dx", moe ? "moe.dx" : "ffn.dx0"}};
    const auto add = [&](std::span<const TensorRow> rows) {
      AddRows(rows, "", links, letters_, layer_);
    };
    const bool gpt = options_.model == Model::kGpt;
    add(AttentionRows());
    add(gpt ? KernelRows() : GroupedKernelRows());
    add(MiddleRows());
    if (moe) {
      PlanExperts();
    } else {
      add(gpt ? FeedForwardRows() : GatedFeedForwardRows());
    }
    add(FeedForwardSumRows());
    ShardWeights();
  }

  void PlanExperts() {
    const int64_t experts = options_.experts / options_.ep;
    Letters letters = letters_;
    letters.Set('p', "kS/c/t");
    letters.Set('r', "kS/c/t/e");
    // Sum over all experts of the rank.
    const auto sum_of = [&](std::string_view what, std::string_view sum) {
      return experts == 1 ? fmt::format("moe.0.ldis.{}", what)
                          : fmt::format("moe.{}_r{}", sum, experts - 1);
    };
    AddRows(ExpertFrameRows(), "",
            {{"@yrouted", sum_of("y", "yrouted")}, {"@dxrouted", sum_of("dx", "dxrouted")}},
            letters, layer_);
    letters.Set('q', "kS/E/c/e");
    letters.Set('s', "kS/E/c/e/t");
    const std::string first = "moe.0.";
    const Links links = {{"@xrouted", "moe.xrouted"},
                         {"@dyrouted", "moe.dyrouted"},
                         {"@x", first + "ldis.x_expert"},
                         {"@dy", first + "ldis.dy_expert"}};
    Plan expert;
    AddRows(ExpertRows(), first, links, letters, expert);
    AddRows(FeedForwardRows(), first, links, letters, expert);
    for (int64_t i = 0; i < experts; ++i) {
      const auto rename = [&](std::string& name) {
        if (name.starts_with(first)) name = fmt::format("moe.{}.{}", i, name.substr(first.size()));
      };
      for (PlannedTensor tensor : expert) {
        rename(tensor.name);
        rename(tensor.x1);
        rename(tensor.x2);
        layer_.push_back(std::move(tensor));
      }
    }
    // One sum at a time; only the last one counts as work.
    for (const auto& [what, sum] : {std::pair("dx", "dxrouted"), std::pair("y", "yrouted")}) {
      std::string last = fmt::format("moe.0.ldis.{}", what);
      for (int64_t i = 1; i < experts; ++i) {
        const std::string name = fmt::format("moe.{}_r{}", sum, i);
        const std::string other = fmt::format("moe.{}.ldis.{}", i, what);
        const TensorRow row = {.name = name,
                               .op = Op::kElement2,
                               .attr = i == experts - 1 ? "1" : "0",
                               .x1 = last,
                               .shape1 = "B/d r D",
                               .x2 = other,
                               .shape2 = "B/d r D"};
        AddRows({&row, 1}, "", {}, letters, layer_);
        last = name;
      }
    }
  }

  // With weight_sharded, weights of a layer are one tensor divided among ranks, which is gathered
  // for the forward and again for the backward pass; likewise its gradients.
  void ShardWeights() {
    Size all;
    std::vector<std::string> weights;
    for (const PlannedTensor& tensor : layer_) {
      if (PatternOf(tensor).op != Op::kWeight) continue;
      weights.push_back(tensor.name);
      all.Add(Elements(PatternOf(tensor).y.shape).terms[0]);
    }
    Size shard = all;
    shard.per_dp = options_.weight_sharded;
    const Layout whole{.shape = {all}};
    sharded_ = Layout{.shape = {shard}};
    Plan backward;
    std::unordered_map<std::string, std::string> read_again;  // by weight
    for (PlannedTensor& tensor : layer_) {
      if (PatternOf(tensor).op != Op::kWeight) continue;
      tensor.pattern = AddPattern(Op::kCustom, whole, {}, Layout(PatternOf(tensor).y), {});
      tensor.x1 = "_assembled_weight";
      backward.push_back({.name = fmt::format("_{}_backward", tensor.name),
                          .pattern = tensor.pattern,
                          .x1 = "_assembled_weight_backward"});
      read_again.emplace(tensor.name, backward.back().name);
    }
    for (PlannedTensor& tensor : layer_) {
      if (!IsBackward(tensor.name)) continue;
      for (std::string* input : {&tensor.x1, &tensor.x2}) {
        const auto found = read_again.find(*input);
        if (found != read_again.end()) *input = found->second;
      }
    }
    const Layout gradient = PatternOf(Find(layer_, GradientOf(weights[0]))).y;
    const uint32_t gather = AddPattern(Op::kIdentical, whole, {}, whole, {});
    layer_.push_back({.name = "_assembled_weight", .pattern = gather, .x1 = "~_sharded_weight"});
    layer_.push_back({.name = "_sharded_grad",
                      .pattern = AddPattern(Op::kIdentical, sharded_, {}, sharded_, {}),
                      .x1 = "_assembled_grad"});
    layer_.push_back({.name = "_assembled_grad",
                      .pattern = AddPattern(Op::kCustom, gradient, {},
                                            {.shape = {all}, .partial = gradient.partial}, {}),
                      .x1 = GradientOf(weights[0])});
    for (size_t i = 1; i < weights.size(); ++i) {
      layer_.back().after.push_back(GradientOf(weights[i]));
    }
    std::ranges::move(backward, std::back_inserter(layer_));
    layer_.push_back(
        {.name = "_assembled_weight_backward", .pattern = gather, .x1 = "~_sharded_weight"});
  }

  // Adds embeddings and loss. Their weights are not sharded and belong to all micro-batches.
  void PlanEnds() {
    const bool whole = options_.model != Model::kGpt || options_.tpsp;
    Letters letters = letters_;
    const auto plan_embedding = [&](std::string_view in, std::string_view out, const Links& links,
                                    Plan& plan) {
      letters.Set('i', whole ? std::string(in) : std::string(in) + "/t");
      letters.Set('o', out);
      AddRows(EmbeddingRows(), "", links, letters, plan);
      for (PlannedTensor& tensor : plan) {
        if (tensor.x2 == "w") tensor.x2 = "~w";
      }
    };
    plan_embedding("V", "D", {{"@x", ""}, {"@dy", "@above"}}, embedding_in_);
    plan_embedding("D", "V", {{"@x", "@below"}, {"@dy", "@above"}}, embedding_out_);
    AddRows(LossRows(), "", {{"@x", "@below"}}, letters, loss_);
  }

  void PlanDebug() {
    Letters letters = letters_;
    letters.Set('i', "V");
    letters.Set('o', "V");
    AddRows(EmbeddingRows(), "", {{"@x", ""}, {"@dy", ""}}, letters, embedding_in_);
    const Layout weight = PatternOf(Find(embedding_in_, "w")).y;
    debug_update_ = AddPattern(Op::kAdd, weight, weight, weight, Elements(weight.shape));
  }

  std::string LayerName(int64_t layer) const { return fmt::format("transformer.{}.", layer); }

  // Returns the stage of a layer: equal runs of layers, with one more in the first ones.
  int64_t StageOfLayer(int64_t layer) const {
    const int64_t least = options_.layers / options_.pp;
    const int64_t longer = options_.layers % options_.pp;
    const int64_t in_longer = (least + 1) * longer;
    return layer < in_longer ? layer / (least + 1) : longer + (layer - in_longer) / least;
  }

  // References are names until all tensors exist.
  void Add(std::string id, uint32_t pattern, int64_t stage, std::string x1, std::string x2,
           std::vector<std::string> after = {}) {
    model_.tensors.push_back({.id = std::move(id), .pattern = pattern, .stage = stage});
    references_.push_back({std::move(x1), std::move(x2), std::move(after)});
  }

  void Place(const Plan& plan, const Site& site) {
    const auto id_of = [&](const std::string& name) -> std::string {
      if (name.empty()) return {};
      if (name == "@below") return site.below;
      if (name == "@above") return site.above;
      if (name[0] == '~') return fmt::format("{}{}@0", site.name, name.substr(1));
      return fmt::format("{}{}{}@0", site.micro, site.name, name);
    };
    for (const PlannedTensor& tensor : plan) {
      if (PatternOf(tensor).op == Op::kWeight && !site.micro.empty()) continue;
      std::vector<std::string> after;
      for (const std::string& name : tensor.after) after.push_back(id_of(name));
      Add(id_of(tensor.name), tensor.pattern, site.stage, id_of(tensor.x1), id_of(tensor.x2),
          std::move(after));
    }
    if (options_.model == Model::kDebug) Add("w@1", debug_update_, 0, "w@0", "dw@0");
  }

  void PlaceMicroBatch(int64_t number) {
    const std::string micro = fmt::format("mb{}.", number);
    const int64_t last = options_.layers - 1;
    for (int64_t layer = 0; layer <= last; ++layer) {
      const std::string below = layer == 0 ? "in_emb.y" : LayerName(layer - 1) + "ffn_res.y";
      const std::string above =
          layer == last ? "out_emb.dx" : LayerName(layer + 1) + "input_norm.dx";
      Place(layer_, {.micro = micro,
                     .name = LayerName(layer),
                     .stage = StageOfLayer(layer),
                     .below = micro + below + "@0",
                     .above = micro + above + "@0"});
    }
    Place(embedding_in_,
          {.micro = micro, .name = "in_emb.", .above = micro + LayerName(0) + "input_norm.dx@0"});
    Place(embedding_out_, {.micro = micro,
                           .name = "out_emb.",
                           .stage = StageOfHead(options_),
                           .below = micro + LayerName(last) + "ffn_res.y@0",
                           .above = micro + "loss.dy@0"});
    Place(loss_, {.micro = micro,
                  .name = "loss.",
                  .stage = StageOfHead(options_),
                  .below = micro + "out_emb.y@0"});
  }

  // A tensor that training changes, with the sum of its gradients over the micro-batches.
  struct Trained {
    std::string weight;
    std::string gradient;
    int64_t stage = 0;
    uint32_t sum = 0;  // patterns
    uint32_t before = 0;
    uint32_t after = 0;
  };

  // By value, because the layouts are often those of patterns, which move when patterns are added.
  Trained Train(Layout weight, Layout gradient) {
    return {.sum = AddPattern(Op::kCustom, gradient, {}, gradient, Elements(gradient.shape)),
            .before = AddPattern(Op::kWeight, weight, {}, weight, {}),
            .after = AddPattern(Op::kAdd, weight, weight, weight, Elements(weight.shape))};
  }

  void PlaceWeights(int64_t micro_batches) {
    std::vector<Trained> all;
    Trained trained = Train(sharded_, sharded_);
    for (int64_t layer = 0; layer < options_.layers; ++layer) {
      trained.weight = LayerName(layer) + "_sharded_weight";
      trained.gradient = LayerName(layer) + "_sharded_grad";
      trained.stage = StageOfLayer(layer);
      all.push_back(trained);
    }
    for (const auto& [name, plan, stage] :
         {std::tuple("in_emb.", &embedding_in_, int64_t{0}),
          std::tuple("out_emb.", &embedding_out_, StageOfHead(options_))}) {
      trained = Train(PatternOf(Find(*plan, "w")).y, PatternOf(Find(*plan, "dw")).y);
      trained.weight = std::string(name) + "w";
      trained.gradient = std::string(name) + "dw";
      trained.stage = stage;
      all.push_back(trained);
    }
    for (const Trained& one : all) {
      std::vector<std::string> others;
      for (int64_t i = 1; i < micro_batches; ++i) {
        others.push_back(fmt::format("mb{}.{}@0", i, one.gradient));
      }
      Add(one.gradient + "@0", one.sum, one.stage, "mb0." + one.gradient + "@0", "",
          std::move(others));
    }
    for (const Trained& one : all) Add(one.weight + "@0", one.before, one.stage, "", "");
    for (const Trained& one : all) {
      Add(one.weight + "@1", one.after, one.stage, one.weight + "@0", one.gradient + "@0");
    }
  }

  Status Resolve() {
    std::unordered_map<std::string_view, uint32_t> by_id;
    for (uint32_t i = 0; i < model_.tensors.size(); ++i) by_id.emplace(model_.tensors[i].id, i);
    const std::string* missing = nullptr;
    const auto find = [&](const std::string& id) {
      if (id.empty()) return kNoTensor;
      const auto found = by_id.find(id);
      if (found != by_id.end()) return found->second;
      missing = &id;
      return kNoTensor;
    };
    for (size_t i = 0; i < model_.tensors.size(); ++i) {
      Tensor& tensor = model_.tensors[i];
      tensor.x1 = find(references_[i].x1);
      tensor.x2 = find(references_[i].x2);
      for (const std::string& id : references_[i].after) tensor.after.push_back(find(id));
    }
    if (missing != nullptr) return MakeError(ErrorCode::kInternal, "no tensor " + *missing);
    return {};
  }

  struct References {
    std::string x1;
    std::string x2;
    std::vector<std::string> after;
  };

  const StageOptions& options_;
  Letters letters_;
  TensorModel model_;
  std::vector<References> references_;  // by tensor
  std::optional<Error> failed_;         // the first number that does not fit
  Plan layer_;
  Plan embedding_in_;
  Plan embedding_out_;
  Plan loss_;
  Layout sharded_;  // a layer's weights on one rank
  uint32_t debug_update_ = 0;
};

}  // namespace

Status CheckStageOptions(const StageOptions& options) {
  const std::pair<std::string_view, int64_t> counts[] = {
      {"dp", options.dp},           {"tp", options.tp},
      {"sp", options.cp},           {"ep", options.ep},
      {"pp", options.pp},           {"num_stacks", options.layers},
      {"batch", options.batch},     {"micro_batch", options.micro_batch},
      {"seq", options.sequence},    {"dmodel", options.dmodel},
      {"dff", options.dff},         {"head", options.heads},
      {"kvhead", options.kv_heads}, {"dvocal", options.vocabulary},
      {"experts", options.experts}, {"kexperts", options.top_experts}};
  constexpr int64_t kMost = 1'000'000'000;
  for (const auto& [name, value] : counts) {
    if (value < 1 || value > kMost) {
      return BadInput(fmt::format("--{}: found {}, expected 1 to {}", name, value, kMost));
    }
  }
  int64_t ranks = 1;
  for (const int64_t degree : {options.dp, options.tp, options.cp, options.ep, options.pp}) {
    if (ranks > kMostRanks / degree) {
      return BadInput(fmt::format("more than {} ranks", kMostRanks));
    }
    ranks *= degree;
  }
  if (options.batch % options.micro_batch != 0) {
    return BadInput(fmt::format("--batch {}: expected a multiple of --micro_batch {}",
                                options.batch, options.micro_batch));
  }
  if (options.model == Model::kDebug) {
    if (options.pp == 1) return {};
    return BadInput(fmt::format("--pp {}: expected 1 for the model 'debug'", options.pp));
  }
  if (options.layers < options.pp) {
    return BadInput(fmt::format("--num_stacks {}: expected as many as --pp {} or more",
                                options.layers, options.pp));
  }
  if (options.model != Model::kMoe) return {};
  if (!options.tpsp) return BadInput("--tpsp false: expected true for the model 'moe'");
  if (options.experts % options.ep != 0) {
    return BadInput(
        fmt::format("--experts {}: expected a multiple of --ep {}", options.experts, options.ep));
  }
  if (options.experts / options.ep > kMostExperts) {
    return BadInput(fmt::format("more than {} experts on a rank", kMostExperts));
  }
  return {};
}

int64_t StageOfHead(const StageOptions& options) {
  return options.mixed_precision ? options.pp - 1 : (options.layers - 1) % options.pp;
}

Result<TensorModel> MakeTensorModel(const StageOptions& options) {
  return ModelMaker(options).Run();
}

}  // namespace etude::stage
