// ATTN_FORCE_INLINE: the hot paths of the CPU engines are inlined whatever their size. Not in
// builds with a sanitizer, where that would multiply the time to compile.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(ATTN_NO_FORCED_INLINE)
#define ATTN_FORCE_INLINE inline
#else
#define ATTN_FORCE_INLINE inline __attribute__((always_inline))
#endif
#define ATTN_COLD [[gnu::cold, gnu::noinline]]
