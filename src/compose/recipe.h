#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/compose/resize.h"
#include "src/trace/words/enums.h"
#include "src/transform/edit/selection.h"

namespace etude {

// A trace of a recipe, to take parts from.
struct RecipeTrace {
  std::string name;  // name in the recipe
  std::string path;  // as written: a trace or a capture folder
  std::optional<int64_t> rank;
};

// An operator and its replacement, which has the same arguments and results.
struct Replacement {
  std::string op;    // as in Selection::operators
  std::string with;  // full name: "aten::add.Tensor"
};

// A selection with its place in the recipe.
struct RecipeSelection {
  Selection selection;
  std::string place;  // "recipe.toml:4:8"
};

// A size of a trace that was recorded with two values.
struct RecipeResize {
  size_t with = 0;  // the other recording: index among the recipe's traces
  Resizing sizes;

  friend bool operator==(const RecipeResize&, const RecipeResize&) = default;
};

// Another element type of tensors.
struct RecipeRetype {
  DType from = DType::kUnknown;
  DType to = DType::kUnknown;

  friend bool operator==(const RecipeRetype&, const RecipeRetype&) = default;
};

// A part of a trace, which runs `repeat` times.
struct RecipePart {
  std::string name;
  size_t trace = 0;   // index among the recipe's traces
  std::string place;  // place in the recipe
  std::optional<RecipeResize> resize;
  std::optional<RecipeRetype> retype;
  std::string changes;  // description of these two changes, once made
  RecipeSelection select;
  std::vector<RecipeSelection> drop;  // nodes that match any of these are removed
  std::vector<Replacement> replace;
  std::optional<double> scale_comm;  // factor for the elements of communications
  int64_t repeat = 1;
  std::optional<double> weight;  // of all parts or of none; with weights, parts alternate
};

// A recipe for a composed benchmark: docs/formats/recipe.md.
struct Recipe {
  std::vector<RecipeTrace> traces;  // by name
  std::vector<RecipePart> parts;    // at least one
};

// Max repetitions of a part.
inline constexpr int64_t kMostRepetitions = 1'000'000;

// Parses a recipe. `path` is its name in messages. kBadInput with file, line and column for invalid
// TOML, unknown keys (with the nearest known one), and values of another form.
Result<Recipe> ParseRecipe(std::string_view text, const std::string& path);

// Returns the numbers of repetitions for these weights: the smallest total, up to 100, with each
// part's share within 0.01 of its weight's. Rounds by largest remainders, with earlier parts first.
// kUsage if a part is too light to run once.
Result<std::vector<int64_t>> RepetitionsOf(const std::vector<double>& weights);

}  // namespace etude
