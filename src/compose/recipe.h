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

// A trace that a recipe takes parts of.
struct RecipeTrace {
  std::string name;  // of the recipe's own
  std::string path;  // as written: a trace or a capture folder
  std::optional<int64_t> rank;
};

// An operator and the one that takes its place, with the same arguments and results.
struct Replacement {
  std::string op;    // as Selection::operators
  std::string with;  // full name: "aten::add.Tensor"
};

// A selection, and where in the recipe it stands.
struct RecipeSelection {
  Selection selection;
  std::string place;  // "recipe.toml:4:8"
};

// A size of a trace that was recorded with two.
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
  size_t trace = 0;   // index among the recipe's
  std::string place;  // where in the recipe it stands
  std::optional<RecipeResize> resize;
  std::optional<RecipeRetype> retype;
  std::string changes;  // what these two made of the trace, once they are made
  RecipeSelection select;
  std::vector<RecipeSelection> drop;  // what any of these means is left out
  std::vector<Replacement> replace;
  std::optional<double> scale_comm;  // what elements that communication moves are multiplied by
  int64_t repeat = 1;
  std::optional<double> weight;  // of all parts or of none, which then follow each other
};

// What a composed benchmark consists of: docs/formats/recipe.md.
struct Recipe {
  std::vector<RecipeTrace> traces;  // by name
  std::vector<RecipePart> parts;    // at least one
};

// Most repetitions of a part.
inline constexpr int64_t kMostRepetitions = 1'000'000;

// `path` is what messages call it. kBadInput with file, line and column for what is no TOML,
// unknown keys (with the nearest one that is known), and values of another form.
Result<Recipe> ParseRecipe(std::string_view text, const std::string& path);

// How often parts of these weights run: in all as few times, up to 100, as bring each part's share
// to within 0.01 of its weight's. Largest remainders decide, earlier parts before later ones.
// kUsage if a part is too light to run once.
Result<std::vector<int64_t>> RepetitionsOf(const std::vector<double>& weights);

}  // namespace etude
