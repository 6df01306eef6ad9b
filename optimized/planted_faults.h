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
  M28,
  M30,
  M32,
  M34,
  M34b,
  M35,
  M35b,
  M37,
  M39,
  M40,
  M42,
  M44,
  M45,
  M47,
  M48,
  M48b,
  M49,
  M51,
  M52,
  M54,
  M55,
  M57,
  M59,
  M61,
  M63,
};

/// A fault, its name on the command line, and what is wrong.
struct PlantedFaultInfo {
  PlantedFault fault;     ///< what `planted` is asked about
  std::string_view name;  ///< "M01"
  std::string_view what;  ///< the wrong line, in words
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
    PlantedFaultInfo{PlantedFault::M28, "M28", "decode: a tile of heads crosses a KV head"},
    PlantedFaultInfo{PlantedFault::M30, "M30", "batch stride taken as one row"},
    PlantedFaultInfo{PlantedFault::M32, "M32", "row offset multiplied in 32 bits"},
    PlantedFaultInfo{PlantedFault::M34, "M34", "Dv treated as D"},
    PlantedFaultInfo{PlantedFault::M34b, "M34b", "the last D % 16 channels are skipped"},
    PlantedFaultInfo{PlantedFault::M35, "M35", "backward: delta dropped"},
    PlantedFaultInfo{PlantedFault::M35b, "M35b", "backward: delta summed over D, not Dv"},
    PlantedFaultInfo{PlantedFault::M37, "M37", "backward: P of a row without keys unguarded"},
    PlantedFaultInfo{PlantedFault::M39, "M39", "backward: derivative of the mod left out"},
    PlantedFaultInfo{PlantedFault::M40, "M40", "backward: mask ignored"},
    PlantedFaultInfo{PlantedFault::M42, "M42", "backward: dK and dV stored past the last key"},
    PlantedFaultInfo{PlantedFault::M44, "M44", "captured gradient added without atomics"},
    PlantedFaultInfo{PlantedFault::M45, "M45", "captured gradient not summed over the batch"},
    PlantedFaultInfo{PlantedFault::M47, "M47", "backward: q and kv swapped for dK and dV"},
    PlantedFaultInfo{PlantedFault::M48, "M48", "backward: dropout drawn at swapped indices"},
    PlantedFaultInfo{PlantedFault::M48b, "M48b", "dropout without the factor 1 / (1 - p)"},
    PlantedFaultInfo{PlantedFault::M49, "M49", "partial blocks treated as full"},
    PlantedFaultInfo{PlantedFault::M51, "M51", "blocks of batch and head 0 used for all"},
    PlantedFaultInfo{PlantedFault::M52, "M52", "a row that visits no block is not written"},
    PlantedFaultInfo{PlantedFault::M54, "M54", "a split without keys has LSE 0"},
    PlantedFaultInfo{PlantedFault::M55, "M55", "LSE in base 2"},
    PlantedFaultInfo{PlantedFault::M57, "M57", "splits merged with a stride of Hkv for Hq"},
    PlantedFaultInfo{PlantedFault::M59, "M59", "page table bypassed: pages taken for neighbours"},
    PlantedFaultInfo{PlantedFault::M61, "M61",
                     "block-sparse backward: block size taken for the tile"},
    PlantedFaultInfo{PlantedFault::M63, "M63", "block barrier between tile store and load removed"},
};

/// The fault that kernels of the planted build commit; set between launches only.
PlantedFault& active_fault();

}  // namespace attn
