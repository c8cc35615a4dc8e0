#include "src/compose/recipe.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace etude {
namespace {

std::string Head(const std::string& parts) { return "[traces]\nnet = \"net.json\"\n" + parts; }

std::string ErrorOf(const std::string& text) {
  const Result<Recipe> recipe = ParseRecipe(text, "r.toml");
  if (recipe) return "none";
  EXPECT_EQ(recipe.error().code, ErrorCode::kBadInput);
  return recipe.error().message;
}

TEST(RecipeTest, SaysWhatToTakeOfWhichTrace) {
  const Result<Recipe> recipe = ParseRecipe(R"(
format = "etude-recipe"
version = 1
[traces]
net = "net.json"
bert = { path = "bert", rank = 1 }
[[part]]
name = "forward"
trace = "net"
repeat = 3
select = { phase = "forward", step = [3, "5..7"], thread = 17 }
drop = { comm = true }
replace = [{ op = "aten::relu", with = "aten::tanh" }]
resize = { with = "bert", sizes = [8, 16], to = 64 }
dtype = { from = "float32", to = "bfloat16" }
[[part]]
trace = "bert"
drop = [{ op = ["aten::mm", "aten::add"] }, { module = "head" }]
)",
                                            "r.toml");
  ASSERT_TRUE(recipe) << recipe.error().message;
  ASSERT_EQ(recipe->traces.size(), 2u);
  EXPECT_EQ(recipe->traces[0].name, "bert");
  EXPECT_EQ(recipe->traces[0].path, "bert");
  EXPECT_EQ(recipe->traces[0].rank, 1);
  ASSERT_EQ(recipe->parts.size(), 2u);
  const RecipePart& forward = recipe->parts[0];
  EXPECT_EQ(forward.name, "forward");
  EXPECT_EQ(forward.trace, 1u);
  EXPECT_EQ(forward.repeat, 3);
  EXPECT_EQ(forward.select.selection.phases, std::vector<std::string>{"forward"});
  EXPECT_EQ(forward.select.selection.steps, (std::vector<std::string>{"3", "5..7"}));
  EXPECT_EQ(forward.select.selection.threads, std::vector<std::string>{"17"});
  ASSERT_EQ(forward.drop.size(), 1u);
  EXPECT_TRUE(forward.drop[0].selection.communication);
  ASSERT_EQ(forward.replace.size(), 1u);
  EXPECT_EQ(forward.replace[0].with, "aten::tanh");
  EXPECT_EQ(forward.resize,
            (RecipeResize{.with = 0, .sizes = {.first = 8, .second = 16, .wanted = 64}}));
  EXPECT_EQ(forward.retype, (RecipeRetype{.from = DType::kFloat32, .to = DType::kBFloat16}));
  EXPECT_EQ(recipe->parts[1].name, "part 2");
  EXPECT_EQ(recipe->parts[1].drop.size(), 2u);
}

TEST(RecipeTest, WrongRecipesAreRefusedWithTheirPlaceAndWhatWasMeant) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"a = ", "r.toml:1:5: "},
      {"", "r.toml: missing [traces]"},
      {"[traces]\n\u00e9 = 1\n", "r.toml:2:"},
      {"a = \"\\\u00e9\"", "r.toml:1:"},
      {Head("[[part]]\nname = \"\"\"\\\n \u00e9\"\"\"  # \u3001\nrepeat = 0\n"), "repeat: found 0"},
      {"\xEF\xBB\xBF" + Head("[[part]]\nname = \"\u00e9\"\nrepeat = 0\n"), "repeat: found 0"},
      {"[traces]\n[[part]]\n", "r.toml:1:1: traces: found none"},
      {Head(""), "r.toml: missing [[part]]"},
      {"part = 3\n" + Head(""),
       "r.toml:1:8: part: found a whole number, expected a list of tables"},
      {Head("b = 3\n"), "r.toml:3:5: b: found a whole number, expected a path, or a table"},
      {"traces = 1\npart = 3\n", "r.toml:1:10: traces: found a whole number"},
      {Head("[[part]]\nweigth = 1\n"),
       "r.toml:4:1: unknown key 'weigth' of a part; did you mean "
       "'weight'?"},
      {Head("[[part]]\nselect = { opp = \"x\" }\n"),
       "unknown key 'opp' of select; did you mean "
       "'op'?"},
      {Head("[[part]]\nselect = {}\n"), "r.toml:4:10: select: found an empty table"},
      {Head("[[part]]\nselect = \"op\"\n"), "r.toml:4:10: select: found text, expected a table"},
      {Head("[[part]]\nselect = { op = 1.5 }\n"), "op: found a number, expected text"},
      {Head("[[part]]\nselect = { comm = false }\n"), "comm: found true or false, expected true"},
      {Head("[[part]]\ntrace = \"nte\"\n"),
       "r.toml:4:9: trace: missing 'nte' in [traces]; did you mean 'net'?"},
      {Head("[[part]]\nrepeat = 0\n"), "r.toml:4:10: repeat: found 0, expected 1 to 1000000"},
      {Head("[[part]]\nrepeat = 2\nweight = 1\n"),
       "r.toml:5:10: weight: found both 'repeat' and 'weight'"},
      {Head("[[part]]\nweight = 0\n"), "r.toml:4:10: weight: found 0, expected a number above 0"},
      {Head("[[part]]\nscale_comm = -1\n"), "scale_comm: found -1, expected a number above 0"},
      {Head("[[part]]\nweight = nan\n"), "weight: found nan"},
      {Head("[[part]]\nweight = 1\n[[part]]\n"), "'part 2' has no 'weight' but other parts have"},
      {Head("[[part]]\nweight = 1\n[[part]]\nweight = 1000\n"),
       "found a part with 0.001 of the total weight"},
      {Head("[[part]]\nname = \"a\"\n[[part]]\nname = \"a\"\n"), "found another part 'a'"},
      {Head("[[part]]\nreplace = { op = \"aten::mm\" }\n"), "replace: missing 'with'"},
      {Head("[[part]]\nreplace = { op = \"aten::mm\", with = \"mm(\" }\n"), "with: found 'mm(',"},
      {Head("[[part]]\nresize = { to = 3 }\n"), "r.toml:4:10: resize: expected a table, as in"},
      {Head("[[part]]\nresize = { with = \"net\", sizes = [1, 2], to = 3 }\n"),
       "r.toml:4:19: with: found the part's own trace"},
      {Head("b = \"b.json\"\n[[part]]\ntrace = \"net\"\n"
            "resize = { with = \"b\", sizes = [2, 2], to = 3 }\n"),
       "sizes: found the same size twice"},
      {Head("b = \"b.json\"\n[[part]]\ntrace = \"net\"\n"
            "resize = { with = \"b\", sizes = [2], to = 3 }\n"),
       "sizes: found a list, expected two whole numbers"},
      {Head("[[part]]\ndtype = { from = \"float32\", to = \"int8\" }\n"),
       "r.toml:4:34: to: found 'int8', expected float32"},
      {Head("[[part]]\ndtype = { from = \"float32\", to = \"float32\" }\n"),
       "dtype: found the same type twice"},
      {Head("format = \"x\"\n"), "missing [[part]]"},
      {"format = \"x\"\n" + Head("[[part]]\n"), "r.toml:1:10: format: found 'x'"},
      {"version = 2\n" + Head("[[part]]\n"), "r.toml:1:11: version: found 2"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_NE(ErrorOf(text).find(message), std::string::npos) << text << "\n" << ErrorOf(text);
  }
}

TEST(RecipeTest, WeightsBecomeFewRepetitions) {
  using Counts = std::vector<int64_t>;
  EXPECT_EQ(RepetitionsOf({5}).value(), Counts{1});
  EXPECT_EQ(RepetitionsOf({0.5, 0.5}).value(), (Counts{1, 1}));
  EXPECT_EQ(RepetitionsOf({0.7, 0.3}).value(), (Counts{7, 3}));
  EXPECT_EQ(RepetitionsOf({1, 2}).value(), (Counts{1, 2}));
  EXPECT_EQ(RepetitionsOf({0.333, 0.667}).value(), (Counts{1, 2}));
  EXPECT_EQ(RepetitionsOf({1, 1, 1}).value(), (Counts{1, 1, 1}));
  EXPECT_EQ(RepetitionsOf({99, 1}).value(), (Counts{50, 1}));
  EXPECT_FALSE(RepetitionsOf({1000, 1}));
}

TEST(RecipeTest, WeightsAreTheRepetitionsOfParts) {
  const Recipe recipe =
      ParseRecipe(Head("[[part]]\nweight = 3\n[[part]]\nweight = 1\n"), "r.toml").value();
  EXPECT_EQ(recipe.parts[0].repeat, 3);
  EXPECT_EQ(recipe.parts[1].repeat, 1);
}

}  // namespace
}  // namespace etude
