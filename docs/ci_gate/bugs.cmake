# Bugs that are made when a kernel is written or ported: the right text, what stands there instead,
# and what the fuzzer then says.
set(bugs no_barrier no_rescale wrong_alignment wrong_head stray_load)

set(no_barrier_right "simt::block_sync();  // the next tile may land")
set(no_barrier_wrong "")
set(no_barrier_found "data race ")

set(no_rescale_right "acc[e] *= rescale")
set(no_rescale_wrong "acc[e] *= 1.0f")
set(no_rescale_found "discrepancy  no_rescale")

set(wrong_alignment_right "key <= row + skv - sq")
set(wrong_alignment_wrong "key <= row")
set(wrong_alignment_found "discrepancy  wrong_alignment")

set(wrong_head_right "head % hq / (hq / hkv)")
set(wrong_head_wrong "head % hq % hkv")
set(wrong_head_found "discrepancy  wrong_head")

set(stray_load_right "in_tile && j + kv0 < skv")
set(stray_load_wrong "in_tile")
set(stray_load_found "out of bounds ")
