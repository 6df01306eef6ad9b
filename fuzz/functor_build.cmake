# What fuzz/functor_build.cc has to know to compile the tool with a type of the user's: the flags of
# this build, where it lies, and what the installed libraries are linked with.
set(include ${PROJECT_BINARY_DIR}/include)
file(MAKE_DIRECTORY ${include})
file(CREATE_LINK ${PROJECT_SOURCE_DIR} ${include}/attn SYMBOLIC)  # as in an installed prefix

string(REGEX MATCHALL "-fsanitize[^ ]*" sanitizers "${CMAKE_CXX_FLAGS}")
list(JOIN sanitizers " " sanitizers)
set(engine_flags "")
if(ATTN_X86_64_V3 AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(engine_flags -march=x86-64-v3)
endif()
get_target_property(eigen Eigen3::Eigen INTERFACE_INCLUDE_DIRECTORIES)
list(JOIN eigen " " eigen)
set_source_files_properties(fuzz/functor_build.cc PROPERTIES COMPILE_DEFINITIONS
  "ATTN_BUILD_INCLUDE=\"${include}\";ATTN_BUILD_LIBRARIES=\"${PROJECT_BINARY_DIR}\";\
ATTN_LIBRARY_FOLDER=\"${CMAKE_INSTALL_LIBDIR}\";ATTN_BUILD_FLAGS=\"${sanitizers}\";\
ATTN_ENGINE_FLAGS=\"${engine_flags}\";ATTN_BUILD_SYSTEM_INCLUDES=\"${eigen}\";\
ATTN_BUILD_LINKS=\"$<TARGET_FILE:rapidcheck> $<TARGET_FILE:fmt::fmt> $<TARGET_FILE:Boost::context>\"")
