// `attnproof emit` and `attnproof check`, together: files as they are promised, solved right and
// wrong.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "fuzz/commands.h"
#include "fuzz/file_fixtures.h"
#include "fuzz/setup.h"

namespace attn::fuzz {
namespace {

namespace fs = std::filesystem;

/// A folder that goes with the test.
class Emit : public testing::Test {
 protected:
  Emit()
      : folder(fs::path(testing::TempDir()) /
               (std::string("attnproof_") +
                testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(folder);
  }
  ~Emit() override { fs::remove_all(folder); }

  EmitArguments arguments(std::uint64_t cases) const {
    EmitArguments a;
    a.cases = cases;
    a.directory = folder.string();
    return a;
  }
  /// The entries of the manifest.
  nlohmann::json emit(const EmitArguments& a) const {
    testing::internal::CaptureStdout();
    EXPECT_EQ(emit_command(a), 0);
    testing::internal::GetCapturedStdout();
    std::ifstream manifest(folder / "manifest.json");
    return nlohmann::json::parse(manifest)["cases"];
  }
  Safetensors inputs(const nlohmann::json& entry) const {
    return Safetensors::read((folder / entry["inputs"].get<std::string>()).string());
  }
  void solve(const nlohmann::json& entry) const {
    const Safetensors file = inputs(entry);
    std::vector<NewArray> outputs;
    for (NewArray& array : solved(read_problem(file, described_by(file))))
      for (const char* part : {"required", "optional"})
        for (const auto& name : entry[part])
          if (name == array.name) outputs.push_back(array);
    write(entry, outputs);
  }
  void write(const nlohmann::json& entry, const std::vector<NewArray>& outputs) const {
    write_safetensors((folder / entry["outputs"].get<std::string>()).string(), outputs, {});
  }
  int check(CheckArguments a = {}) {
    if (a.path.empty()) a.path = folder.string();
    testing::internal::CaptureStdout();
    const int status = check_command(a);
    said = testing::internal::GetCapturedStdout();
    return status;
  }
  bool says(const std::string& text) const { return said.find(text) != std::string::npos; }

  fs::path folder;
  std::string said;
};

TEST_F(Emit, SolvedCasesPass) {
  const nlohmann::json cases = emit(arguments(40));
  ASSERT_EQ(cases.size(), 40u);
  int backward = 0, biased = 0;
  for (const nlohmann::json& entry : cases) {
    solve(entry);
    backward += entry["pass"] == "backward";
    biased += inputs(entry).find("mod_bias") != nullptr;
  }
  EXPECT_GT(backward, 5);
  EXPECT_LT(backward, 35);
  EXPECT_GT(biased, 2);
  EXPECT_EQ(check(), 0) << said;
  EXPECT_TRUE(says("40 checked, rounds flash")) << said;
  CheckArguments strict;
  strict.rounds = "fp32";
  EXPECT_EQ(check(strict), 0) << said;
}

TEST_F(Emit, TheFileHoldsWhatTheCaseLineSays) {
  EmitArguments a = arguments(12);
  a.all_mods = true;
  for (const nlohmann::json& entry : emit(a)) {
    const Case c = parse_case(entry["case"].get<std::string>());
    const fuzz::Setup setup(c);
    const Safetensors file = inputs(entry);
    const FileProblem p = read_problem(file, described_by(file));
    EXPECT_EQ(p.in.q.values(), setup.inputs().q.values());
    EXPECT_EQ(p.in.k.values(), setup.inputs().k.values());
    EXPECT_EQ(p.in.v.values(), setup.inputs().v.values());
    EXPECT_EQ(p.in.sink, setup.inputs().sink);
    EXPECT_EQ(p.in.scale, setup.inputs().scale);
    EXPECT_EQ(p.c.dtype, c.dtype);
    EXPECT_EQ(p.is_backward(), setup.implementation().pass == Pass::backward);
    EXPECT_EQ(p.in.d_o.values(), setup.inputs().d_o.values());
    EXPECT_EQ(file.find("d_lse") != nullptr, c.d_lse);
    if (p.is_backward()) continue;
    // the mask and the mod, materialised or not, give what those of the case give
    const Expectation ours = setup.expected(),
                      theirs = forward_expectation(p, Rounds::flash, BoundKind::working);
    for (std::size_t n = 0; n < ours.outputs[1].reference.values().size(); ++n) {
      const double lse = ours.outputs[1].reference.values()[n];
      if (std::isfinite(lse))
        EXPECT_LE(std::abs(theirs.outputs[1].reference.values()[n] - lse),
                  ours.outputs[1].bound.values()[n] + 0x1p-40 * std::abs(lse));
      else
        EXPECT_EQ(theirs.outputs[1].reference.values()[n], lse);
    }
  }
}

TEST_F(Emit, TheSameSeedGivesTheSameFiles) {
  const auto first_file = [&](std::uint64_t seed) {
    EmitArguments a = arguments(3);
    a.seed = seed;
    const nlohmann::json entry = emit(a).back();
    std::ifstream file(folder / entry["inputs"].get<std::string>(), std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(file), {});
    fs::remove_all(folder);
    return bytes;
  };
  const std::string once = first_file(3);
  EXPECT_EQ(first_file(3), once);
  EXPECT_NE(first_file(4), once);
}

TEST_F(Emit, WhatIsAskedForIsEmitted) {
  EmitArguments a = arguments(10);
  a.implementations = {"flash_backward"};
  a.dtype = "fp16";
  for (const nlohmann::json& entry : emit(a)) {
    EXPECT_EQ(entry["pass"], "backward");
    EXPECT_EQ(entry["required"], (nlohmann::json{"dq", "dk", "dv"}));
    EXPECT_EQ(inputs(entry).find("q")->dtype, "F16");
    const std::string mod = entry["mod"];
    EXPECT_TRUE(mod == "score" || mod == "score + mod_bias[b, h, q, kv]") << mod;
    EXPECT_EQ(entry["mask"], "mask[b, h, q, kv]");
  }
}

TEST_F(Emit, AllModsBringTheirTables) {
  EmitArguments a = arguments(40);
  a.all_mods = true;
  a.implementations = {"flash_forward"};
  int others = 0, tables = 0;
  for (const nlohmann::json& entry : emit(a)) {
    const std::string mod = entry["mod"];
    solve(entry);
    if (mod == "score" || mod == "score + mod_bias[b, h, q, kv]") continue;
    ++others;
    tables += inputs(entry).arrays().size() > 4;  // beside q, k, v and the mask
  }
  EXPECT_GT(others, 5);
  EXPECT_GT(tables, 0);
  EXPECT_EQ(check(), 0) << said;
}

TEST_F(Emit, BadUsage) {
  EmitArguments a = arguments(1);
  a.implementations = {"decode"};
  EXPECT_THROW(emit_command(a), std::invalid_argument);
  a.implementations = {"slow"};
  EXPECT_THROW(emit_command(a), std::invalid_argument);
  a = arguments(1);
  a.directory = "/proc/no/such";
  EXPECT_THROW(emit_command(a), std::invalid_argument);
  emit(arguments(1));
  EXPECT_THROW(emit_command(arguments(1)), std::invalid_argument);  // not empty
}

TEST_F(Emit, WhatIsNotWrittenFails) {
  EmitArguments a = arguments(3);
  a.implementations = {"flash_forward"};
  const nlohmann::json cases = emit(a);
  for (const nlohmann::json& entry : cases) solve(entry);
  const fs::path first = folder / cases[0]["outputs"].get<std::string>();
  const Safetensors whole = Safetensors::read(first.string());

  fs::remove(first);
  EXPECT_EQ(check(), 1);
  EXPECT_TRUE(says("missing      case_00000   no file")) << said;

  const StoredArray* o = whole.find("o");
  write(cases[0], {{"o", o->dtype, o->shape, {o->bytes.begin(), o->bytes.end()}}});
  EXPECT_EQ(check(), 1);
  EXPECT_TRUE(says("missing      case_00000   no lse was written")) << said;
  CheckArguments no_lse;
  no_lse.no_lse = true;
  EXPECT_EQ(check(no_lse), 0) << said;

  std::ofstream(first, std::ios::binary) << "no safetensors file";
  EXPECT_EQ(check(), 1);
  EXPECT_TRUE(says("unreadable   case_00000")) << said;
}

TEST_F(Emit, AWrongOutputIsToldAndFoundAgain) {
  const nlohmann::json cases = emit(arguments(12));
  for (const nlohmann::json& entry : cases) solve(entry);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Safetensors file = inputs(cases[i]);
    FileProblem wrong = read_problem(file, described_by(file));
    if (wrong.c.skv < 2 || wrong.is_backward()) continue;
    wrong.in.scale *= 2;
    wrong.mask = condition_constant(true);
    write(cases[i], solved(wrong));
    CheckArguments a;
    a.json = (folder / "result.json").string();
    EXPECT_EQ(check(a), 1);
    EXPECT_TRUE(says("discrepancy  case_")) << said;
    EXPECT_TRUE(says("where        ")) << said;
    EXPECT_TRUE(says("looks like   ")) << said;
    EXPECT_TRUE(says(cases[i]["case"].get<std::string>())) << said;
    std::ifstream result(a.json);
    EXPECT_EQ(nlohmann::json::parse(result)["failed"], 1);
    a.path = (folder / cases[i]["inputs"].get<std::string>()).string();
    EXPECT_EQ(check(a), 1);
    EXPECT_TRUE(says("1 checked")) << said;
    a.path = (folder / cases[(i + 1) % cases.size()]["inputs"].get<std::string>()).string();
    EXPECT_EQ(check(a), 0) << said;
    return;
  }
  ADD_FAILURE() << "no case is long enough";
}

TEST_F(Emit, DumpedTensors) {
  fs::create_directories(folder);
  CheckArguments a;
  a.path = (folder / "layer.safetensors").string();
  FileDescription causal;
  causal.mask = "causal";
  std::vector<NewArray> arrays = small_inputs();
  for (const NewArray& output : solved(read_problem(file_of(arrays), causal)))
    if (output.name == "o") arrays.push_back(output);  // LSE is not needed
  write_safetensors(a.path, arrays, {{"format", "pt"}});
  EXPECT_EQ(check(a), 1) << said;  // no mask was told
  EXPECT_TRUE(says("looks like   the mask is causal, aligned top left")) << said;
  a.description = causal;
  EXPECT_EQ(check(a), 0) << said;
  a.description.scale = 1;
  EXPECT_EQ(check(a), 1) << said;
  a.description.mask = "casual";
  EXPECT_THROW(check_command(a), std::invalid_argument);
}

TEST_F(Emit, BadUsageOfCheck) {
  CheckArguments a;
  a.path = folder.string();
  EXPECT_THROW(check_command(a), std::invalid_argument);  // not there
  fs::create_directories(folder);
  EXPECT_THROW(check_command(a), std::invalid_argument);  // no case in it
  fs::remove_all(folder);
  EmitArguments backward = arguments(1);
  backward.implementations = {"flash_backward"};
  emit(backward);
  a.description.mask = "causal";
  EXPECT_THROW(check_command(a), std::invalid_argument);
  a.description = {};
  a.rounds = "loose";
  EXPECT_THROW(check_command(a), std::invalid_argument);
  a.rounds = "eager";
  EXPECT_THROW(check_command(a), std::invalid_argument);
  a.rounds = "flash";
  a.json = "/no/such/folder/x";
  EXPECT_THROW(check_command(a), std::invalid_argument);
}

}  // namespace
}  // namespace attn::fuzz
