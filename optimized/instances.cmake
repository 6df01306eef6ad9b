# Which kernels are compiled, for every target and by nvcc: one translation unit an entry.
attn_kernel_units(attn_kernels SOURCE optimized/flash_forward_unit.cc INSTANCES half bfloat16)
attn_kernel_units(attn_kernels SOURCE optimized/flash_backward_unit.cc INSTANCES half bfloat16)
