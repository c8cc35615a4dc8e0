#include "src/suite/data/video/pushed_blocks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <span>
#include <vector>

#include "src/base/random_stream.h"
#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

// Lengths are in pixels, with the origin in the upper left corner.
constexpr auto kTable = static_cast<double>(PushedBlocks::kSide);
constexpr size_t kBlocks = 3;
constexpr double kGripperRadius = 2.2;
constexpr double kArmRadius = 1.1;
constexpr double kShoulderHeight = -3;  // of the arm's other end, above the table
constexpr double kMargin = 2.5;         // between the gripper's middle and the table's edge
constexpr double kPress = 0.3;          // by how much the gripper enters a block that cannot move
constexpr double kTouch = 1e-6;         // distance from which two points differ
constexpr int kRelaxations = 4;         // rounds of pushing in a frame
constexpr int kPlaceTries = 100;        // for places without overlaps
constexpr double kMoveUnit = 2;         // of an action

struct PixelPoint {
  double x = 0;
  double y = 0;
};
PixelPoint operator+(PixelPoint a, PixelPoint b) { return {a.x + b.x, a.y + b.y}; }
PixelPoint operator-(PixelPoint a, PixelPoint b) { return {a.x - b.x, a.y - b.y}; }
PixelPoint operator*(double factor, PixelPoint a) { return {factor * a.x, factor * a.y}; }
double LengthOf(PixelPoint a) { return std::hypot(a.x, a.y); }
double SignOf(double value) { return value < 0 ? -1 : 1; }
PixelPoint Towards(double angle) { return {std::cos(angle), std::sin(angle)}; }
PixelPoint Within(PixelPoint a, double low, double high) {
  return {std::clamp(a.x, low, high), std::clamp(a.y, low, high)};
}

using BlockColour = std::array<double, 3>;
constexpr std::array<BlockColour, 6> kBlockColours = {{{0.85, 0.2, 0.2},
                                                       {0.2, 0.65, 0.25},
                                                       {0.2, 0.35, 0.85},
                                                       {0.9, 0.75, 0.2},
                                                       {0.7, 0.3, 0.75},
                                                       {0.2, 0.7, 0.75}}};
constexpr BlockColour kArmColour = {0.15, 0.15, 0.15};
constexpr BlockColour kGripperColour = {0.92, 0.92, 0.88};

// A square with sides along the axes.
struct PushedBlock {
  PixelPoint middle;
  double half = 0;  // of a side
  BlockColour colour{};

  PixelPoint Nearest(PixelPoint to) const {
    return {std::clamp(to.x, middle.x - half, middle.x + half),
            std::clamp(to.y, middle.y - half, middle.y + half)};
  }
  // Returns by how much both blocks, grown by `gap`, overlap along each axis.
  PixelPoint OverlapWith(const PushedBlock& other, double gap) const {
    const double reach = half + other.half + gap;
    return {reach - std::abs(middle.x - other.middle.x),
            reach - std::abs(middle.y - other.middle.y)};
  }
};

// The table with all that is on it.
class PushScene {
 public:
  explicit PushScene(RandomStream& random) : random_(&random) {
    DrawBlocks();
    DrawWay();
    const double tone = Draw(0.3, 0.6);
    for (double& part : table_) part = tone * (1 + Draw(-0.15, 0.15));
    slope_ = {Draw(-0.15, 0.15), Draw(-0.15, 0.15)};
    shoulder_ = {Draw(8, 24), kShoulderHeight};
  }

  PixelPoint gripper() const { return gripper_; }

  // Draws the next action and does it. Returns it.
  PixelPoint Move() {
    angle_ += Draw(-0.3, 0.3);
    const PixelPoint move = speed_ * Towards(angle_);
    gripper_ = OnTable(gripper_ + move);
    for (int round = 0; round < kRelaxations; ++round) Push();
    return move;
  }

  void Paint(std::span<uint8_t> picture) const {
    constexpr auto kPlane = static_cast<size_t>(PushedBlocks::kSide * PushedBlocks::kSide);
    for (size_t i = 0; i < kPlane; ++i) {
      const PixelPoint place = {static_cast<double>(i % PushedBlocks::kSide) + 0.5,
                                static_cast<double>(i / PushedBlocks::kSide) + 0.5};
      const BlockColour colour = ColourAt(place);
      for (size_t part = 0; part < colour.size(); ++part) {
        picture[part * kPlane + i] =
            static_cast<uint8_t>(std::lround(255 * std::clamp(colour[part], 0.0, 1.0)));
      }
    }
  }

 private:
  double Draw(double low, double high) { return random_->Within(low, high); }
  static PixelPoint OnTable(PixelPoint gripper) {
    return Within(gripper, kMargin, kTable - kMargin);
  }

  void DrawBlocks() {
    std::array<size_t, kBlockColours.size()> colours{};
    for (size_t i = 0; i < colours.size(); ++i) colours[i] = i;
    Shuffle(std::span<size_t>(colours), *random_);
    for (size_t i = 0; i < kBlocks; ++i) {
      PushedBlock block{.half = Draw(2.2, 3.4), .colour = kBlockColours[colours[i]]};
      const auto is_free = [&] {
        return std::ranges::none_of(std::span(blocks_).first(i), [&](const PushedBlock& other) {
          const PixelPoint overlap = block.OverlapWith(other, 0.5);
          return overlap.x > 0 && overlap.y > 0;
        });
      };
      for (int attempt = 0; attempt < kPlaceTries; ++attempt) {
        const double edge = block.half + 1;
        block.middle.x = Draw(edge, kTable - edge);
        block.middle.y = Draw(std::max(edge, 7.0), kTable - edge);
        if (is_free()) break;
      }
      blocks_[i] = block;
    }
  }

  // The gripper starts beside a block and moves about towards it.
  void DrawWay() {
    const PushedBlock& target = blocks_[random_->Below(kBlocks)];
    for (int attempt = 0; attempt < kPlaceTries; ++attempt) {
      angle_ = Draw(0, 2 * std::numbers::pi);
      gripper_ = target.middle - Draw(5.5, 9) * Towards(angle_);
      const PixelPoint nearest = OnTable(gripper_);
      const bool is_on_table = nearest.x == gripper_.x && nearest.y == gripper_.y;
      if (is_on_table && std::ranges::none_of(blocks_, [&](const PushedBlock& block) {
            return LengthOf(gripper_ - block.Nearest(gripper_)) <= kGripperRadius;
          })) {
        break;
      }
    }
    gripper_ = OnTable(gripper_);
    angle_ += Draw(-0.25, 0.25);
    speed_ = Draw(1.2, 2);
  }

  // Moves blocks away from the gripper and from each other. The gripper stops at blocks that
  // cannot move.
  void Push() {
    for (PushedBlock& block : blocks_) {
      PushFromGripper(block);
      for (PushedBlock& other : blocks_) {
        if (&other != &block) PushFromBlock(block, other);
      }
      block.middle = Within(block.middle, block.half, kTable - block.half);
    }
    for (const PushedBlock& block : blocks_) {
      const PixelPoint nearest = block.Nearest(gripper_);
      const PixelPoint away = gripper_ - nearest;
      const double distance = LengthOf(away);
      if (distance > kTouch && distance < kGripperRadius - kPress) {
        gripper_ = nearest + (kGripperRadius - kPress) / distance * away;
      }
    }
    gripper_ = OnTable(gripper_);
  }

  void PushFromGripper(PushedBlock& block) const {
    const PixelPoint away = gripper_ - block.Nearest(gripper_);
    const double distance = LengthOf(away);
    if (distance >= kGripperRadius) return;
    if (distance > kTouch) {
      block.middle = block.middle - (kGripperRadius - distance) / distance * away;
      return;
    }
    // The gripper's middle is in the block: the shortest way out.
    const PixelPoint inner = gripper_ - block.middle;
    const double reach = kGripperRadius + block.half;
    if (std::abs(inner.x) >= std::abs(inner.y)) {
      block.middle.x -= SignOf(inner.x) * (reach - std::abs(inner.x));
    } else {
      block.middle.y -= SignOf(inner.y) * (reach - std::abs(inner.y));
    }
  }

  static void PushFromBlock(const PushedBlock& block, PushedBlock& other) {
    const PixelPoint overlap = block.OverlapWith(other, 0);
    if (overlap.x <= 0 || overlap.y <= 0) return;
    if (overlap.x <= overlap.y) {
      other.middle.x += SignOf(other.middle.x - block.middle.x) * overlap.x;
    } else {
      other.middle.y += SignOf(other.middle.y - block.middle.y) * overlap.y;
    }
  }

  // Covers `below` with `above` inside of an edge at distance 0, which is one pixel wide.
  static void Cover(BlockColour& below, const BlockColour& above, double distance) {
    const double share = std::clamp(0.5 - distance, 0.0, 1.0);
    for (size_t i = 0; i < below.size(); ++i) below[i] += share * (above[i] - below[i]);
  }

  BlockColour ColourAt(PixelPoint place) const {
    const double light =
        1 + slope_.x * (2 * place.x / kTable - 1) + slope_.y * (2 * place.y / kTable - 1);
    BlockColour colour = table_;
    for (double& part : colour) part *= light;
    for (const PushedBlock& block : blocks_) {
      const PixelPoint from = place - block.middle;
      Cover(colour, block.colour, std::max(std::abs(from.x), std::abs(from.y)) - block.half);
    }
    const PixelPoint arm = gripper_ - shoulder_;
    const PixelPoint from = place - shoulder_;
    const double along =
        std::clamp((from.x * arm.x + from.y * arm.y) / (arm.x * arm.x + arm.y * arm.y), 0.0, 1.0);
    Cover(colour, kArmColour, LengthOf(from - along * arm) - kArmRadius);
    Cover(colour, kGripperColour, LengthOf(place - gripper_) - kGripperRadius);
    return colour;
  }

  RandomStream* random_;
  std::array<PushedBlock, kBlocks> blocks_;
  BlockColour table_{};
  PixelPoint slope_;  // of the light, from the middle to the edges
  PixelPoint shoulder_;
  PixelPoint gripper_;
  double angle_ = 0;  // of the next move
  double speed_ = 0;
};

}  // namespace

PushSequences GeneratePushes(int64_t count, uint64_t seed) {
  constexpr int64_t kFrames = PushedBlocks::kFrames;
  constexpr int64_t kSide = PushedBlocks::kSide;
  constexpr auto kPicture = static_cast<size_t>(3 * kSide * kSide);
  at::Tensor frames = Zeros({count, kFrames, 3, kSide, kSide}, at::kByte);
  std::span<uint8_t> left(frames.mutable_data_ptr<uint8_t>(), static_cast<size_t>(frames.numel()));
  std::vector<float> actions;
  std::vector<float> states;
  RandomStream random(seed);
  for (int64_t video = 0; video < count; ++video) {
    PushScene scene(random);
    for (int64_t frame = 0; frame < kFrames; ++frame) {
      scene.Paint(left.first(kPicture));
      left = left.subspan(kPicture);
      for (const double part : {scene.gripper().x, scene.gripper().y}) {
        states.push_back(static_cast<float>(2 * part / kTable - 1));
      }
      const PixelPoint move = scene.Move();
      for (const double part : {move.x, move.y}) {
        actions.push_back(static_cast<float>(part / kMoveUnit));
      }
    }
  }
  return {frames, FromValues(actions, {count, kFrames, PushedBlocks::kActions}),
          FromValues(states, {count, kFrames, PushedBlocks::kStates})};
}

}  // namespace etude::suite
