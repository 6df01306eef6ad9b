#pragma once

#include <string>

#include "mods/lang/call.h"
#include "mods/lang/environments.h"

/// Looks at a mask element by element and box by box, for tests and for the eye. The expected side
/// of a comparison is a formula on plain ints, written apart from the mask.
namespace attn {

/// What `mask` says of one pair in environment `Env` (of scalar indices).
template <class Env, class Mask>
auto attends(const Mask& mask, const Sizes& sizes, int b, int h, int i, int j) {
  Env env;
  env.sizes = sizes;
  return call_mask(mask, Index<Env>{b, &env}, Index<Env>{h, &env}, Index<Env>{i, &env},
                   Index<Env>{j, &env});
}

/// The mask of one head, a line a query row: '#' attends, '.' does not.
template <class Mask>
std::string picture(const Mask& mask, const Sizes& sizes, int b = 0, int h = 0) {
  std::string text;
  for (int i = 0; i < sizes.sq; ++i, text += '\n')
    for (int j = 0; j < sizes.skv; ++j)
      text += attends<ExactEnv>(mask, sizes, b, h, i, j) ? '#' : '.';
  return text;
}

/// The first pair where the mask and `formula(b, h, i, j)` differ, or "" if none does. Asked in
/// every scalar environment; a pair's answer must not depend on which.
template <class Mask, class Formula>
std::string first_difference(const Mask& mask, const Sizes& sizes, const Formula& formula) {
  for (int b = 0; b < sizes.b; ++b)
    for (int h = 0; h < sizes.hq; ++h)
      for (int i = 0; i < sizes.sq; ++i)
        for (int j = 0; j < sizes.skv; ++j) {
          const bool expected = formula(b, h, i, j);
          if (attends<ExactEnv>(mask, sizes, b, h, i, j) != expected ||
              attends<DualEnv>(mask, sizes, b, h, i, j) != expected ||
              attends<RoundedEnv>(mask, sizes, b, h, i, j) != expected)
            return "b" + std::to_string(b) + " h" + std::to_string(h) + " q" + std::to_string(i) +
                   " kv" + std::to_string(j) + ": expected " + (expected ? "true" : "false");
        }
  return "";
}

/// Indices first to last, both included, a pair an axis: b, h, q, kv.
struct Box {
  int first[4];  ///< of b, h, q, kv
  int last[4];   ///< of b, h, q, kv
};

/// What the mask says of a whole box.
template <class Mask>
Maybe verdict(const Mask& mask, const Sizes& sizes, const Box& box) {
  RangeEnv env{sizes};
  const auto axis = [&](int a) {
    return Index<RangeEnv>{RangeEnv::Int(box.first[a], box.last[a]), &env};
  };
  return call_mask(mask, axis(0), axis(1), axis(2), axis(3));
}

/// What is asked of a mask's answers on boxes.
enum class Verdicts {
  sound,  ///< "yes" only where every pair attends, "no" only where none does
  exact   ///< and "yes" wherever every pair attends, "no" wherever none does
};

/// Says what is wrong with the mask's verdict on one box, or "" if nothing is.
template <class Mask>
std::string wrong_verdict(const Mask& mask, const Sizes& sizes, const Box& box, Verdicts promise) {
  bool some_attend = false, some_do_not = false;
  for (int b = box.first[0]; b <= box.last[0]; ++b)
    for (int h = box.first[1]; h <= box.last[1]; ++h)
      for (int i = box.first[2]; i <= box.last[2]; ++i)
        for (int j = box.first[3]; j <= box.last[3]; ++j)
          (attends<ExactEnv>(mask, sizes, b, h, i, j) ? some_attend : some_do_not) = true;
  const Maybe said = verdict(mask, sizes, box);
  const bool sound = said.can_be_true >= some_attend && said.can_be_false >= some_do_not;
  const bool exact = said.can_be_true == some_attend && said.can_be_false == some_do_not;
  if (promise == Verdicts::exact ? exact : sound) return "";
  std::string text = sound ? "undecided on" : "wrong on";
  const char* names[] = {" b", " h", " q", " kv"};
  for (int axis = 0; axis < 4; ++axis)
    text += names[axis] + std::to_string(box.first[axis]) + ".." + std::to_string(box.last[axis]);
  return text;
}

/// Asks about every box of rows and keys, in each single head and in all heads at once (where no
/// more than soundness is expected). Returns the first fault, or "". Small problems only: there are
/// (Sq Skv)^2 / 4 boxes.
template <class Mask>
std::string first_wrong_box(const Mask& mask, const Sizes& sizes, Verdicts promise) {
  for (int q0 = 0; q0 < sizes.sq; ++q0)
    for (int q1 = q0; q1 < sizes.sq; ++q1)
      for (int k0 = 0; k0 < sizes.skv; ++k0)
        for (int k1 = k0; k1 < sizes.skv; ++k1) {
          const Box all{{0, 0, q0, k0}, {sizes.b - 1, sizes.hq - 1, q1, k1}};
          std::string fault = wrong_verdict(mask, sizes, all, Verdicts::sound);
          for (int b = 0; b < sizes.b; ++b)
            for (int h = 0; h < sizes.hq && fault.empty(); ++h)
              fault = wrong_verdict(mask, sizes, {{b, h, q0, k0}, {b, h, q1, k1}}, promise);
          if (!fault.empty()) return fault;
        }
  return "";
}

}  // namespace attn
