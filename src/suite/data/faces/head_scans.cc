#include "src/suite/data/faces/head_scans.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <span>
#include <vector>

#include "src/base/random_stream.h"
#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

constexpr uint64_t kHeadsSeed = 8;
constexpr size_t kHeadGrid = 96;  // points per row of a head's surface, and number of rows
constexpr float kLargestLongitude = 1.75F;
constexpr float kLargestLatitude = 1.35F;
constexpr float kHalfWidth = 1.15F;  // of the visible area; a head is about 2 high
// From the nearest point; everything farther counts as background.
constexpr float kDepthRange = 0.5F;
constexpr float kColourNoise = 0.03F;
constexpr float kNearnessNoise = 0.01F;

// Vector with x to the right, y up, z towards the camera.
using Vector = std::array<float, 3>;

Vector Sum(const Vector& a, const Vector& b, float factor) {
  return {a[0] + factor * b[0], a[1] + factor * b[1], a[2] + factor * b[2]};
}
float Dot(const Vector& a, const Vector& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
Vector Cross(const Vector& a, const Vector& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
Vector OfLengthOne(const Vector& a) {
  const float length = std::sqrt(std::max(Dot(a, a), 1e-12F));
  return {a[0] / length, a[1] / length, a[2] / length};
}

Vector Direction(float longitude, float latitude) {
  return {std::cos(latitude) * std::sin(longitude), std::sin(latitude),
          std::cos(latitude) * std::cos(longitude)};
}

// A Gaussian on the surface. The face looks along longitude and latitude 0.
struct Bump {
  float longitude = 0;
  float latitude = 0;
  float height = 0;  // below 0: a hollow
  float width = 0;
};

struct HeadShape {
  Vector axes{};
  std::vector<Bump> bumps;

  float RadiusAt(const Vector& direction) const {
    const Vector scaled = {direction[0] / axes[0], direction[1] / axes[1], direction[2] / axes[2]};
    float radius = 1 / std::sqrt(Dot(scaled, scaled));
    for (const Bump& bump : bumps) {
      const Vector apart = Sum(direction, Direction(bump.longitude, bump.latitude), -1);
      radius += bump.height * std::exp(-Dot(apart, apart) / (2 * bump.width * bump.width));
    }
    return radius;
  }
};

HeadShape DrawHead(RandomStream& random) {
  HeadShape head;
  const std::array<std::array<float, 2>, 3> axes = {
      {{0.62F, 0.84F}, {0.84F, 1.06F}, {0.7F, 0.94F}}};
  for (size_t i = 0; i < axes.size(); ++i) head.axes[i] = random.Within(axes[i][0], axes[i][1]);
  const auto add = [&](float longitude, std::array<float, 2> latitude, std::array<float, 2> height,
                       std::array<float, 2> width) {
    Bump bump{.longitude = longitude};
    bump.latitude = random.Within(latitude[0], latitude[1]);
    bump.height = random.Within(height[0], height[1]);
    bump.width = random.Within(width[0], width[1]);
    head.bumps.push_back(bump);
    if (longitude == 0) return;
    bump.longitude = -longitude;
    head.bumps.push_back(bump);
  };
  add(0, {-0.2F, 0.14F}, {0.08F, 0.34F}, {0.08F, 0.2F});                               // nose
  add(0, {0.36F, 0.52F}, {0, 0.18F}, {0.12F, 0.28F});                                  // brow
  add(0, {-0.95F, -0.75F}, {0, 0.22F}, {0.12F, 0.28F});                                // chin
  add(random.Within(0.42F, 0.72F), {-0.3F, 0.1F}, {-0.04F, 0.16F}, {0.15F, 0.27F});    // cheeks
  add(random.Within(0.27F, 0.42F), {0.14F, 0.28F}, {-0.13F, -0.02F}, {0.11F, 0.11F});  // eyes
  return head;
}

// Points of a head's front, with the orientation of the surface.
struct Surface {
  std::vector<Vector> points;
  std::vector<Vector> normals;
};

Surface SurfaceOf(const HeadShape& head) {
  std::vector<Vector> grid(kHeadGrid * kHeadGrid);
  const auto angle = [](size_t place, float largest) {
    return largest * (2 * static_cast<float>(place) / static_cast<float>(kHeadGrid - 1) - 1);
  };
  for (size_t row = 0; row < kHeadGrid; ++row) {
    for (size_t column = 0; column < kHeadGrid; ++column) {
      const Vector direction =
          Direction(angle(column, kLargestLongitude), angle(row, kLargestLatitude));
      grid[row * kHeadGrid + column] = Sum({}, direction, head.RadiusAt(direction));
    }
  }
  Surface surface;
  for (size_t row = 1; row + 1 < kHeadGrid; ++row) {
    for (size_t column = 1; column + 1 < kHeadGrid; ++column) {
      const size_t place = row * kHeadGrid + column;
      const Vector right = Sum(grid[place + 1], grid[place - 1], -1);
      const Vector up = Sum(grid[place + kHeadGrid], grid[place - kHeadGrid], -1);
      surface.points.push_back(grid[place]);
      surface.normals.push_back(OfLengthOne(Cross(right, up)));
    }
  }
  return surface;
}

// Rotation about y, then x, then z.
struct Pose {
  std::array<Vector, 3> rows{};

  Vector operator()(const Vector& a) const {
    return {Dot(rows[0], a), Dot(rows[1], a), Dot(rows[2], a)};
  }
};

Pose DrawPose(RandomStream& random) {
  const float yaw = random.Within(-0.35F, 0.35F);
  const float pitch = random.Within(-0.2F, 0.2F);
  const float roll = random.Within(-0.12F, 0.12F);
  const float cy = std::cos(yaw);
  const float sy = std::sin(yaw);
  const float cp = std::cos(pitch);
  const float sp = std::sin(pitch);
  const float cr = std::cos(roll);
  const float sr = std::sin(roll);
  return {{{{cr * cy - sr * sp * sy, -sr * cp, cr * sy + sr * sp * cy},
            {sr * cy + cr * sp * sy, cr * cp, sr * sy - cr * sp * cy},
            {-cp * sy, sp, cp * cy}}}};
}

// Writes red, green, blue and nearness, one plane each.
void Render(const Surface& head, RandomStream& random, std::span<float> picture) {
  constexpr auto kPlane = static_cast<size_t>(HeadScans::kSide * HeadScans::kSide);
  constexpr float kNothing = -2;
  const Pose pose = DrawPose(random);
  const float scale = random.Within(0.97F, 1.03F);
  const float right = random.Within(-0.04F, 0.04F);
  const float up = random.Within(-0.04F, 0.04F);
  const Vector light = OfLengthOne({random.Within(-1.0F, 1.0F), random.Within(-0.7F, 0.9F), 1});
  const float everywhere = random.Within(0.15F, 0.45F);
  const float tone = random.Within(0.4F, 1);
  const Vector colour = {tone, tone * random.Within(0.6F, 0.9F), tone * random.Within(0.4F, 0.8F)};

  std::vector<float> depth(kPlane, kNothing);
  std::vector<float> shade(kPlane, 0);
  float nearest = kNothing;
  const auto pixel = [](float place) {
    const float share = (place + kHalfWidth) / (2 * kHalfWidth);
    return std::clamp(static_cast<int64_t>(share * static_cast<float>(HeadScans::kSide)),
                      int64_t{0}, HeadScans::kSide - 1);
  };
  for (size_t i = 0; i < head.points.size(); ++i) {
    const Vector point = pose(head.points[i]);
    const auto place = static_cast<size_t>(pixel(up - point[1] * scale) * HeadScans::kSide +
                                           pixel(point[0] * scale + right));
    if (point[2] <= depth[place]) continue;
    depth[place] = point[2];
    nearest = std::max(nearest, point[2]);
    const float facing = std::max(Dot(pose(head.normals[i]), light), 0.0F);
    shade[place] = everywhere + (1 - everywhere) * facing;
  }
  // Uniform, with a deviation of 1.
  const auto noise = [&] { return std::numbers::sqrt3_v<float> * random.Within(-1.0F, 1.0F); };
  for (size_t channel = 0; channel < colour.size(); ++channel) {
    for (size_t place = 0; place < kPlane; ++place) {
      picture[channel * kPlane + place] = colour[channel] * shade[place] + kColourNoise * noise();
    }
  }
  for (size_t place = 0; place < kPlane; ++place) {
    const bool is_head = depth[place] > kNothing;
    const float nearness = is_head ? std::max(1 + (depth[place] - nearest) / kDepthRange, 0.0F) : 0;
    picture[3 * kPlane + place] = nearness + kNearnessNoise * noise();
  }
}

}  // namespace

HeadScans RenderHeadScans(int64_t of_each, uint64_t seed) {
  constexpr int64_t kValues = 4 * HeadScans::kSide * HeadScans::kSide;
  const int64_t count = HeadScans::kPeople * of_each;
  std::vector<float> pictures(static_cast<size_t>(count * kValues));
  std::vector<int64_t> people;
  RandomStream shapes(kHeadsSeed);
  RandomStream random(seed);
  for (int64_t person = 0; person < HeadScans::kPeople; ++person) {
    const Surface head = SurfaceOf(DrawHead(shapes));
    for (int64_t i = 0; i < of_each; ++i) {
      const auto begin = static_cast<size_t>(std::ssize(people) * kValues);
      Render(head, random, std::span(pictures).subspan(begin, kValues));
      people.push_back(person);
    }
  }
  return {FromValues(pictures, {count, 4, HeadScans::kSide, HeadScans::kSide}),
          FromValues(people, {count})};
}

}  // namespace etude::suite
