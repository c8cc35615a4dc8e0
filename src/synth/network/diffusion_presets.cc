#include <array>
#include <vector>

#include "src/synth/network/network_builder.h"
#include "src/synth/network/network_presets.h"

namespace etude {
namespace {

// The U-Nets of Ho et al. 2020, and of Rombach et al. 2022, which has transformer layers with
// cross-attention to a text.
struct UNetShape {
  Shape image;
  std::vector<int64_t> channels;  // by level, each of half the side
  std::vector<bool> attends;      // by level
  int64_t blocks = 2;             // per level on the way down
  int64_t heads = 1;
  Shape text{};  // no channels: none
};

class UNetMaker {
 public:
  explicit UNetMaker(UNetShape shape) : shape_(std::move(shape)) {}

  NetworkModel Run() {
    const size_t image = b_.Input("image", shape_.image);
    Time();
    b_.Unit("in");
    Down(b_.Conv("conv", image, shape_.channels.front(), {}));
    const int64_t widest = shape_.channels.back();
    b_.Unit("middle 0");
    size_t x = Block(last_, widest, widest);
    x = Attend(x, widest);
    b_.Unit("middle 1");
    Up(Block(x, widest, widest));
    return std::move(b_.model());
  }

 private:
  bool HasText() const { return shape_.text.channels != 0; }

  // Adds the embedding of the time step, and the input of the text if there is one.
  void Time() {
    const int64_t base = shape_.channels.front();
    const size_t number = b_.Input("time", {1, 1, 1});
    if (HasText()) text_ = b_.Input("text", shape_.text);
    b_.Unit("time");
    size_t x =
        b_.Add("sinusoid", {number}, {.kind = LayerKind::kSinusoid, .shape = {.channels = base}});
    x = b_.Linear("linear1", x, 4 * base);
    x = b_.Plain("silu", {x}, LayerKind::kSilu);
    time_ = b_.Linear("linear2", x, 4 * base);
  }

  void Down(size_t x) {
    std::vector<std::pair<size_t, int64_t>>& past = past_;
    int64_t width = shape_.channels.front();
    past.emplace_back(x, width);
    for (size_t level = 0; level < shape_.channels.size(); ++level) {
      for (int64_t block = 0; block < shape_.blocks; ++block) {
        b_.Unit(fmt::format("down {}.{}", level, block));
        x = Block(x, width, shape_.channels[level]);
        width = shape_.channels[level];
        if (shape_.attends[level]) x = Attend(x, width);
        past.emplace_back(x, width);
      }
      if (level + 1 == shape_.channels.size()) break;
      b_.Unit(fmt::format("down {}", level));
      x = b_.Conv("conv", x, width, {.stride = 2});
      past.emplace_back(x, width);
    }
    last_ = x;
  }

  void Up(size_t x) {
    int64_t width = shape_.channels.back();
    for (size_t level = shape_.channels.size(); level-- > 0;) {
      for (int64_t block = 0; block <= shape_.blocks; ++block) {
        b_.Unit(fmt::format("up {}.{}", level, block));
        x = b_.Plain("concat", {x, past_.back().first}, LayerKind::kConcat);
        width += past_.back().second;
        past_.pop_back();
        x = Block(x, width, shape_.channels[level]);
        width = shape_.channels[level];
        if (shape_.attends[level]) x = Attend(x, width);
      }
      if (level == 0) break;
      b_.Unit(fmt::format("up {}", level));
      x = b_.Add("upsample", {x}, {.kind = LayerKind::kUpsample, .factor = 2});
      x = b_.Conv("conv", x, width, {});
    }
    b_.Unit("out");
    x = b_.Plain("silu", {b_.GroupNorm("norm", x)}, LayerKind::kSilu);
    x = b_.Conv("conv", x, shape_.image.channels, {});
    b_.Plain("loss", {x}, LayerKind::kSquaredError);
  }

  size_t Block(size_t in, int64_t width, int64_t channels) {
    size_t x = b_.Plain("silu1", {b_.GroupNorm("norm1", in)}, LayerKind::kSilu);
    x = b_.Conv("conv1", x, channels, {});
    const size_t time =
        b_.Linear("time", b_.Plain("time silu", {time_}, LayerKind::kSilu), channels);
    x = b_.Plain("time add", {x, time}, LayerKind::kAdd);
    x = b_.Plain("silu2", {b_.GroupNorm("norm2", x)}, LayerKind::kSilu);
    x = b_.Conv("conv2", x, channels, {});
    if (width != channels) in = b_.Conv("shortcut", in, channels, {.kernel = 1});
    return b_.Plain("add", {x, in}, LayerKind::kAdd);
  }

  size_t Attend(size_t in, int64_t channels) {
    size_t x = b_.GroupNorm("attention norm", in);
    if (HasText()) {
      x = b_.Conv("in", x, channels, {.kernel = 1});
      x = TransformerBlock(x, channels);
    } else {
      const size_t q = b_.Conv("q", x, channels, {.kernel = 1});
      const size_t k = b_.Conv("k", x, channels, {.kernel = 1});
      const size_t v = b_.Conv("v", x, channels, {.kernel = 1});
      x = b_.Add("attention", {q, k, v}, {.kind = LayerKind::kAttention, .heads = shape_.heads});
    }
    x = b_.Conv("projection", x, channels, {.kernel = 1});
    return b_.Plain("attention add", {x, in}, LayerKind::kAdd);
  }
  // Attends to itself, then to the text.
  size_t TransformerBlock(size_t in, int64_t channels) {
    size_t x = Look("self", in, std::nullopt, channels);
    x = Look("cross", x, text_, channels);
    const size_t norm = b_.Plain("ffn norm", {x}, LayerKind::kLayerNorm);
    size_t y = b_.Linear("ffn up", norm, 8 * channels);
    y = b_.Plain("ffn geglu", {y}, LayerKind::kGeglu);
    y = b_.Linear("ffn down", y, channels);
    return b_.Plain("ffn add", {x, y}, LayerKind::kAdd);
  }
  size_t Look(std::string_view name, size_t in, std::optional<size_t> at, int64_t channels) {
    const auto named = [&](std::string_view part) { return fmt::format("{} {}", name, part); };
    const size_t norm = b_.Plain(named("norm"), {in}, LayerKind::kLayerNorm);
    const size_t q = b_.Linear(named("q"), norm, channels, false);
    const size_t k = b_.Linear(named("k"), at.value_or(norm), channels, false);
    const size_t v = b_.Linear(named("v"), at.value_or(norm), channels, false);
    size_t x = b_.Add(named("attention"), {q, k, v},
                      {.kind = LayerKind::kAttention, .heads = shape_.heads});
    x = b_.Linear(named("projection"), x, channels);
    return b_.Plain(named("add"), {x, in}, LayerKind::kAdd);
  }

  const UNetShape shape_;
  NetworkBuilder b_;
  size_t time_ = 0;
  size_t text_ = 0;
  size_t last_ = 0;
  std::vector<std::pair<size_t, int64_t>> past_;  // results for the way up, and their channels
};

NetworkModel Ddpm() {
  NetworkModel model = UNetMaker({.image = {3, 32, 32},
                                  .channels = {128, 256, 256, 256},
                                  .attends = {false, true, false, false}})
                           .Run();
  model.denoises = true;
  return model;
}

NetworkModel StableDiffusion() {
  NetworkModel model = UNetMaker({.image = {4, 64, 64},
                                  .channels = {320, 640, 1280, 1280},
                                  .attends = {true, true, true, false},
                                  .heads = 8,
                                  .text = {768, 77, 1}})
                           .Run();
  model.denoises = true;
  return model;
}

// Layers shifted, scaled and gated by time and class.
NetworkModel Dit(int64_t depth, int64_t hidden, int64_t heads) {
  NetworkBuilder b;
  const Shape image{4, 32, 32};
  constexpr int64_t kPatch = 2;
  const size_t in = b.Input("image", image);
  const size_t time = b.Input("time", {1, 1, 1});
  const size_t label = b.Input("class", {1, 1, 1});
  b.Unit("condition");
  size_t c = b.Add("sinusoid", {time}, {.kind = LayerKind::kSinusoid, .shape = {.channels = 256}});
  c = b.Plain("silu", {b.Linear("linear1", c, hidden)}, LayerKind::kSilu);
  c = b.Linear("linear2", c, hidden);
  // One row more than classes, for no class.
  const size_t row =
      b.Add("embedding", {label},
            {.kind = LayerKind::kEmbedding, .shape = {.channels = hidden}, .rows = 1001});
  c = b.Plain("add", {c, row}, LayerKind::kAdd);
  b.Unit("patches");
  size_t x = b.Add("conv", {in},
                   {.kind = LayerKind::kConv,
                    .shape = {.channels = hidden},
                    .kernel = {kPatch, kPatch},
                    .stride = {kPatch, kPatch}});
  x = b.Add("positions", {x}, {.kind = LayerKind::kPositions, .affine = false});
  const auto modulated = [&](std::string_view name, size_t from, size_t condition, int64_t first) {
    const size_t norm = b.Add(fmt::format("{} norm", name), {from},
                              {.kind = LayerKind::kLayerNorm, .affine = false});
    const size_t shift = b.Slice(fmt::format("{} shift", name), condition, hidden, first * hidden);
    const size_t scale =
        b.Slice(fmt::format("{} scale", name), condition, hidden, (first + 1) * hidden);
    return b.Plain(fmt::format("{} modulate", name), {norm, shift, scale}, LayerKind::kModulate);
  };
  const auto gated = [&](std::string_view name, size_t past, size_t branch, size_t condition,
                         int64_t part) {
    const size_t gate = b.Slice(fmt::format("{} gate", name), condition, hidden, part * hidden);
    branch = b.Plain(fmt::format("{} gated", name), {branch, gate}, LayerKind::kMultiply);
    return b.Plain(fmt::format("{} add", name), {past, branch}, LayerKind::kAdd);
  };
  for (int64_t layer = 0; layer < depth; ++layer) {
    b.Unit(fmt::format("layer {}", layer));
    const size_t condition =
        b.Linear("condition", b.Plain("silu", {c}, LayerKind::kSilu), 6 * hidden);
    size_t y = b.Linear("qkv", modulated("attention", x, condition, 0), 3 * hidden);
    y = b.Add("attention", {y}, {.kind = LayerKind::kAttention, .heads = heads});
    x = gated("attention", x, b.Linear("projection", y, hidden), condition, 2);
    y = b.Linear("up", modulated("ffn", x, condition, 3), 4 * hidden);
    y = b.Plain("gelu", {y}, LayerKind::kGelu);
    x = gated("ffn", x, b.Linear("down", y, hidden), condition, 5);
  }
  b.Unit("out");
  const size_t condition =
      b.Linear("condition", b.Plain("silu", {c}, LayerKind::kSilu), 2 * hidden);
  x = modulated("out", x, condition, 0);
  // Noise and its variance.
  x = b.Linear("linear", x, 2 * image.channels * kPatch * kPatch);
  x = b.Add("image", {x}, {.kind = LayerKind::kPixelShuffle, .factor = kPatch});
  b.Plain("loss", {b.Slice("noise", x, image.channels, 0)}, LayerKind::kSquaredError);
  b.model().denoises = true;
  return std::move(b.model());
}
NetworkModel DitXl() { return Dit(28, 1152, 16); }

constexpr auto kDiffusionPresets = std::to_array<NetworkPreset>({
    {"ddpm-cifar10", "Ho et al. 2020, arXiv 2006.11239, appendix B", Ddpm},
    {"stable-diffusion-1.5",
     "Rombach et al. 2022, arXiv 2112.10752; the U-Net's config.json, latents of 512 x 512",
     StableDiffusion},
    {"dit-xl-2", "Peebles and Xie 2023, arXiv 2212.09748, table 1; latents of 256 x 256", DitXl},
});

}  // namespace

std::span<const NetworkPreset> DiffusionPresets() { return kDiffusionPresets; }

}  // namespace etude
