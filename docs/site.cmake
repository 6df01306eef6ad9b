# The site: the pages of docs/, the gallery and the reference pages of the code, by Doxygen. The target
# `docs` writes it to site/html and checks it; docs/tests.cmake makes it once more without graphs.
find_package(Doxygen QUIET OPTIONAL_COMPONENTS dot)
find_package(Python3 3.9 QUIET COMPONENTS Interpreter)

# attn_site(<out> <folder> YES|NO): in <out>, the command that writes the site to <folder>/html, with or
# without graphs.
function(attn_site out folder graphs)
  set(ATTN_SITE ${folder})
  set(ATTN_HAVE_DOT ${graphs})
  set(ATTN_PYTHON ${Python3_EXECUTABLE})
  configure_file(docs/Doxyfile.in ${folder}.doxyfile @ONLY)
  set(${out} docs/make_site.sh ${Python3_EXECUTABLE} $<TARGET_FILE:attnproof>
      $<TARGET_FILE:Doxygen::doxygen> ${folder}.doxyfile ${folder} PARENT_SCOPE)
endfunction()

set(ATTN_HAS_SITE FALSE)
if(Doxygen_FOUND AND Python3_Interpreter_FOUND AND TARGET attnproof AND PROJECT_IS_TOP_LEVEL)
  set(ATTN_HAS_SITE TRUE)
  set(graphs NO)
  if(TARGET Doxygen::dot)
    set(graphs YES)
  endif()
  attn_site(make_site ${PROJECT_BINARY_DIR}/site ${graphs})
  add_custom_target(docs COMMAND ${make_site} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} VERBATIM)
  add_dependencies(docs attnproof)
endif()
