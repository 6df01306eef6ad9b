#pragma once

#include <array>
#include <string_view>

namespace attn {

/// A known fault that a special build of the kernels can commit on purpose, one at a time, to show
/// that the oracle or the checker notices. The names are those of the catalogue of public bugs.
enum class PlantedFault {
  none,
  M01,
  M02,
  M03,
  M05,
  M06,
  M07,
  M07b,
  M08,
  M10,
  M12,
  M13,
  M15,
  M20,
  M21,
  M26,
  M30,
  M34,
  M34b,
  M55,
  M63,
};

struct PlantedFaultInfo {
  PlantedFault fault;
  std::string_view name;
  std::string_view what;
};

/// Every fault that the kernels can host.
inline constexpr std::array planted_faults = {
    PlantedFaultInfo{PlantedFault::M01, "M01", "running max starts at -5e4, not -inf"},
    PlantedFaultInfo{PlantedFault::M02, "M02", "masked scores become -1e4, not -inf"},
    PlantedFaultInfo{PlantedFault::M03, "M03", "no guard for -inf minus -inf in the first tiles"},
    PlantedFaultInfo{PlantedFault::M05, "M05", "a row without keys is divided by its sum 0"},
    PlantedFaultInfo{PlantedFault::M06, "M06", "LSE of a row without keys is 0"},
    PlantedFaultInfo{PlantedFault::M07, "M07", "rescale factor is 1"},
    PlantedFaultInfo{PlantedFault::M07b, "M07b", "the sum is rescaled, the accumulator is not"},
    PlantedFaultInfo{PlantedFault::M08, "M08", "accumulator divided by the sum after every tile"},
    PlantedFaultInfo{PlantedFault::M10, "M10", "columns past Skv keep the score 0"},
    PlantedFaultInfo{PlantedFault::M12, "M12", "unscaled score rounded to the storage type"},
    PlantedFaultInfo{PlantedFault::M13, "M13", "O accumulated in 16 bits"},
    PlantedFaultInfo{PlantedFault::M15, "M15", "default scale taken from the padded head size"},
    PlantedFaultInfo{PlantedFault::M20, "M20",
                     "KV row bound not clamped: reads one row past the end"},
    PlantedFaultInfo{PlantedFault::M21, "M21", "number of KV tiles taken from Sq"},
    PlantedFaultInfo{PlantedFault::M26, "M26", "KV head is h % Hkv, not h / group"},
    PlantedFaultInfo{PlantedFault::M30, "M30", "batch stride taken as one row"},
    PlantedFaultInfo{PlantedFault::M34, "M34", "Dv treated as D"},
    PlantedFaultInfo{PlantedFault::M34b, "M34b", "the last D % 16 channels are skipped"},
    PlantedFaultInfo{PlantedFault::M55, "M55", "LSE in base 2"},
    PlantedFaultInfo{PlantedFault::M63, "M63", "block barrier between tile store and load removed"},
};

/// The fault that kernels of the planted build commit; set between launches only.
PlantedFault& active_fault();

}  // namespace attn
