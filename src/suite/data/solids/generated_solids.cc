#include "src/suite/data/solids/generated_solids.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "src/base/random_stream.h"
#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

using Triple = OrbitCamera::Vector;

constexpr double kGround = -0.7;
constexpr double kAmbient = 0.3;    // how light what faces away from the light is
constexpr int64_t kViewsApart = 7;  // first views of one solid and of the next
const Triple kLight = {0.5, 0.75, 0.43};

struct Part {
  enum class Kind : uint8_t { kBox, kCylinder, kEllipsoid };  // cylinders stand upright
  Kind kind = Kind::kBox;
  Triple centre{};
  Triple half{};  // extents
};

double Inner(const Triple& a, const Triple& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

// Composes one solid of parts.
class Builder {
 public:
  explicit Builder(RandomStream& random) : random_(random) {}

  std::vector<Part> Build() {
    switch (random_.Below(5)) {
      case 0: Chair(); break;
      case 1: Table(); break;
      case 2: Car(); break;
      case 3: Airplane(); break;
      default: Lamp(); break;
    }
    return std::move(parts_);
  }

 private:
  double Within(double low, double high) { return random_.Within(low, high); }
  void Add(Part::Kind kind, const Triple& centre, const Triple& half) {
    parts_.push_back({kind, centre, half});
  }
  void Box(const Triple& centre, const Triple& half) { Add(Part::Kind::kBox, centre, half); }
  void Cylinder(const Triple& centre, const Triple& half) {
    Add(Part::Kind::kCylinder, centre, half);
  }
  void Ellipsoid(const Triple& centre, const Triple& half) {
    Add(Part::Kind::kEllipsoid, centre, half);
  }

  // Four legs from the ground to `top`, below a plate of half extents `depth` and `width`.
  void Legs(double top, double depth, double width) {
    const double thick = Within(0.1, 0.16);
    const double half = (top - kGround) / 2;
    for (const double front : {-1, 1}) {
      for (const double side : {-1, 1}) {
        Box({front * (depth - thick), kGround + half, side * (width - thick)},
            {thick, half, thick});
      }
    }
  }

  void Chair() {
    const double depth = Within(0.35, 0.55);
    const double width = Within(0.35, 0.55);
    const double top = Within(-0.2, 0.05);
    const double thick = Within(0.1, 0.18);
    Box({0, top - thick, 0}, {depth, thick, width});
    Legs(top - 2 * thick, depth, width);
    const double height = Within(0.2, 0.38);
    const double back = Within(0.1, 0.18);
    Box({back - depth, top + height, 0}, {back, height, width});
  }

  void Table() {
    const double depth = Within(0.45, 0.62);
    const double width = Within(0.45, 0.62);
    const double top = Within(0, 0.4);
    const double thick = Within(0.08, 0.16);
    Box({0, top - thick, 0}, {depth, thick, width});
    const double below = top - 2 * thick;
    if (random_.Below(2) == 0) return Legs(below, depth, width);
    const double half = (below - kGround) / 2;
    const double column = Within(0.12, 0.25);
    const double foot = Within(0.3, 0.5);
    Cylinder({0, kGround + half, 0}, {column, half, column});
    Cylinder({0, kGround + 0.1, 0}, {foot, 0.1, foot});
  }

  void Car() {
    const double length = Within(0.6, 0.8);
    const double width = Within(0.25, 0.4);
    const double height = Within(0.12, 0.22);
    const double bottom = Within(-0.6, -0.3);
    Box({0, bottom + height, 0}, {length, height, width});
    const double cabin = length * Within(0.3, 0.55);
    const double above = Within(0.12, 0.22);
    const double behind = (length - cabin) * Within(0, 1);
    Box({-behind, bottom + 2 * height + above, 0}, {cabin, above, width * Within(0.8, 1)});
  }

  void Airplane() {
    const double length = Within(0.65, 0.85);
    const double thick = Within(0.13, 0.22);
    const double height = Within(-0.2, 0.2);
    Ellipsoid({0, height, 0}, {length, thick, thick});
    const double wing = Within(0.12, 0.22);
    const double span = Within(0.5, 0.75);
    Box({Within(-0.1, 0.2), height, 0}, {wing, 0.09, span});
    const double tail = Within(0.1, 0.16);
    Box({tail - length, height + thick / 2, 0}, {tail, 0.08, Within(0.2, 0.35)});
    const double fin = Within(0.15, 0.3);
    Box({tail - length, height + fin, 0}, {tail, fin, 0.08});
  }

  void Lamp() {
    const double foot = Within(0.25, 0.45);
    Cylinder({0, kGround + 0.1, 0}, {foot, 0.1, foot});
    const double half = Within(0.25, 0.45);
    const double pole = Within(0.09, 0.16);
    Cylinder({0, kGround + half, 0}, {pole, half, pole});
    const double height = Within(0.15, 0.35);
    const double width = Within(0.3, 0.5);
    const Triple centre = {0, kGround + 2 * half + 0.6 * height, 0};
    const bool is_round = random_.Below(2) == 0;
    Add(is_round ? Part::Kind::kEllipsoid : Part::Kind::kCylinder, centre, {width, height, width});
  }

  RandomStream& random_;
  std::vector<Part> parts_;
};

bool IsInside(const Part& part, const Triple& point) {
  Triple place{};
  for (size_t i = 0; i < 3; ++i) place[i] = (point[i] - part.centre[i]) / part.half[i];
  const double across = place[0] * place[0] + place[2] * place[2];
  switch (part.kind) {
    case Part::Kind::kBox:
      return std::ranges::all_of(place, [](double one) { return std::abs(one) <= 1; });
    case Part::Kind::kCylinder: return across <= 1 && std::abs(place[1]) <= 1;
    case Part::Kind::kEllipsoid: break;
  }
  return across + place[1] * place[1] <= 1;
}

// Returns the middle of part `i` of `side` equal parts of −1 to 1.
double MiddleOf(int64_t i, int64_t side) {
  return (2 * static_cast<double>(i) + 1) / static_cast<double>(side) - 1;
}

void Fill(std::span<const Part> parts, std::span<float> volume) {
  constexpr int64_t kSide = GeneratedSolids::kVolumeSide;
  auto value = volume.begin();
  for (int64_t y = 0; y < kSide; ++y) {
    for (int64_t x = 0; x < kSide; ++x) {
      for (int64_t z = 0; z < kSide; ++z) {
        const Triple point = {MiddleOf(x, kSide), MiddleOf(y, kSide), MiddleOf(z, kSide)};
        const bool is_full =
            std::ranges::any_of(parts, [&](const Part& part) { return IsInside(part, point); });
        *value++ = is_full ? 1.0F : 0.0F;
      }
    }
  }
}

// Where a ray meets a part first, and the cosine between the light and the surface there.
struct Hit {
  double distance = 0;
  double cosine = 0;
};

// Where a ray is between two values of `axis`: from the first distance to the second.
std::pair<double, double> Between(const Triple& from, const Triple& along, size_t axis) {
  const double low = (-1 - from[axis]) / along[axis];
  const double high = (1 - from[axis]) / along[axis];
  return std::minmax({low, high});
}

std::optional<Hit> MeetBox(const Triple& from, const Triple& along) {
  double in = 0;
  double out = std::numeric_limits<double>::infinity();
  size_t face = 0;
  for (size_t axis = 0; axis < 3; ++axis) {
    const auto [low, high] = Between(from, along, axis);
    if (low > in) face = axis;
    in = std::max(in, low);
    out = std::min(out, high);
  }
  if (in <= 0 || in >= out) return std::nullopt;
  return Hit{in, along[face] > 0 ? -kLight[face] : kLight[face]};
}

// The first meeting with what is 1 from the centre, counting y or not; nullopt if there is none.
std::optional<double> MeetRound(const Triple& from, const Triple& along, double y) {
  const double a = along[0] * along[0] + y * along[1] * along[1] + along[2] * along[2];
  const double b = from[0] * along[0] + y * from[1] * along[1] + from[2] * along[2];
  const double c = from[0] * from[0] + y * from[1] * from[1] + from[2] * from[2] - 1;
  const double square = b * b - a * c;
  if (a <= 0 || square <= 0) return std::nullopt;
  return (-b - std::sqrt(square)) / a;
}

std::optional<Hit> MeetCylinder(const Triple& from, const Triple& along) {
  const std::optional<double> wall = MeetRound(from, along, 0);
  if (!wall) return std::nullopt;
  const auto [low, high] = Between(from, along, 1);
  const double in = std::max(*wall, low);
  const double x = from[0] + in * along[0];
  const double z = from[2] + in * along[2];
  constexpr double kOnTheRim = 1 + 1e-9;
  if (in <= 0 || in >= high || x * x + z * z > kOnTheRim) return std::nullopt;
  if (low > *wall) return Hit{in, along[1] > 0 ? -kLight[1] : kLight[1]};
  return Hit{in, x * kLight[0] + z * kLight[2]};
}

std::optional<Hit> MeetEllipsoid(const Triple& from, const Triple& along, const Triple& half) {
  const std::optional<double> in = MeetRound(from, along, 1);
  if (!in || *in <= 0) return std::nullopt;
  Triple normal{};
  for (size_t i = 0; i < 3; ++i) normal[i] = (from[i] + *in * along[i]) / half[i];
  return Hit{*in, Inner(normal, kLight) / std::sqrt(Inner(normal, normal))};
}

std::optional<Hit> Meet(const Part& part, const Triple& eye, const Triple& ray) {
  Triple from{};
  Triple along{};
  for (size_t i = 0; i < 3; ++i) {
    from[i] = (eye[i] - part.centre[i]) / part.half[i];
    along[i] = ray[i] / part.half[i];
  }
  switch (part.kind) {
    case Part::Kind::kBox: return MeetBox(from, along);
    case Part::Kind::kCylinder: return MeetCylinder(from, along);
    case Part::Kind::kEllipsoid: break;
  }
  return MeetEllipsoid(from, along, part.half);
}

void Render(std::span<const Part> parts, int64_t view, std::span<float> picture) {
  constexpr int64_t kSide = GeneratedSolids::kPictureSide;
  const OrbitCamera camera = SolidsCamera();
  const OrbitCamera::Pose pose = camera.PoseOf(view);
  auto value = picture.begin();
  for (int64_t row = 0; row < kSide; ++row) {
    for (int64_t column = 0; column < kSide; ++column) {
      Triple ray{};
      for (size_t i = 0; i < 3; ++i) {
        ray[i] = pose.forward[i] +
                 (MiddleOf(column, kSide) * pose.right[i] - MiddleOf(row, kSide) * pose.up[i]) /
                     camera.zoom;
      }
      std::optional<Hit> nearest;
      for (const Part& part : parts) {
        const std::optional<Hit> hit = Meet(part, pose.eye, ray);
        if (hit && (!nearest || hit->distance < nearest->distance)) nearest = hit;
      }
      *value++ =
          nearest ? static_cast<float>(kAmbient + (1 - kAmbient) * std::max(nearest->cosine, 0.0))
                  : 0.0F;
    }
  }
}

}  // namespace

OrbitCamera SolidsCamera() { return {.nearest = 2, .farthest = 4, .zoom = 2.75}; }

GeneratedSolids GenerateSolids(int64_t count, int64_t pictures_each, uint64_t seed) {
  constexpr int64_t kPixels = GeneratedSolids::kPictureSide * GeneratedSolids::kPictureSide;
  constexpr int64_t kVolume =
      GeneratedSolids::kVolumeSide * GeneratedSolids::kVolumeSide * GeneratedSolids::kVolumeSide;
  const int64_t views = SolidsCamera().views;
  std::vector<float> pictures(static_cast<size_t>(count * pictures_each * kPixels));
  std::vector<float> volumes(static_cast<size_t>(count * kVolume));
  std::span<float> pictures_left = pictures;
  std::span<float> volumes_left = volumes;
  RandomStream random(seed);
  for (int64_t solid = 0; solid < count; ++solid) {
    const std::vector<Part> parts = Builder(random).Build();
    Fill(parts, volumes_left.first(kVolume));
    volumes_left = volumes_left.subspan(kVolume);
    for (int64_t i = 0; i < pictures_each; ++i) {
      const int64_t view = (kViewsApart * solid + i * views / pictures_each) % views;
      Render(parts, view, pictures_left.first(kPixels));
      pictures_left = pictures_left.subspan(kPixels);
    }
  }
  return {FromValues(pictures, {count, pictures_each, GeneratedSolids::kPictureSide,
                                GeneratedSolids::kPictureSide}),
          FromValues(volumes, {count, GeneratedSolids::kVolumeSide, GeneratedSolids::kVolumeSide,
                               GeneratedSolids::kVolumeSide})};
}

}  // namespace etude::suite
