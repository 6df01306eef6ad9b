#pragma once

#include "docs/lessons/09_a_warps_view.h"
#include "docs/lessons/problem.h"
#include "optimized/simt/fault.h"
#include "optimized/simt/memory.h"

/// Running lesson 9's kernel on the engine that this unit is compiled for: what the tests of
/// lessons 9 and 10 share.
namespace lesson {

/// Sixteen queries and the keys of one problem, all of head size 16.
struct WarpProblem {
  std::vector<Row> queries;  ///< [16][16]
  Problem x;                 ///< [Skv][16]
};

/// The numbers as fp16, in emulated global memory, read-only.
inline attn::simt::DeviceBuffer<half> stored(const std::vector<Row>& rows) {
  attn::simt::DeviceBuffer<half> memory(rows.size() * 16, attn::simt::Access::input);
  for (std::size_t i = 0; i < memory.size(); ++i)
    memory[i] = attn::from_float<half>(static_cast<float>(rows[i / 16][i % 16]));
  return memory;
}

/// @throws attn::simt::CheckerFault what the checker finds
inline std::vector<Answer> run_warp(const WarpProblem& problem, std::uint64_t schedule = 0) {
  const auto q = stored(problem.queries), k = stored(problem.x.k), v = stored(problem.x.v);
  attn::simt::DeviceBuffer<float> o(16 * 16), lse(16);
  attn::simt::LaunchOptions options;
  options.lazy_copies = schedule % 2 == 0;
  options.schedule_seed = schedule;
  attn::simt::launch({}, 32, 3 * kTileBytes, options, warp_attention, q.data(), k.data(), v.data(),
                     o.data(), lse.data(), static_cast<int>(problem.x.k.size()),
                     static_cast<float>(problem.x.scale));
  std::vector<Answer> answers;
  for (std::size_t i = 0; i < 16; ++i)
    answers.push_back({Row(o.begin() + 16 * i, o.begin() + 16 * (i + 1)), lse[i]});
  return answers;
}

}  // namespace lesson
