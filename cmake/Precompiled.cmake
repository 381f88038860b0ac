# One precompiled header for the product; the suites, which are compiled without optimising, have another with
# the test framework in it. Usage: lockbench_precompile(<target>...)
option(LOCKBENCH_PCH "Precompile the headers that most files include" ON)
file(WRITE ${CMAKE_BINARY_DIR}/generated/precompiled.cc "")

# ccache needs -fpch-preprocess to see through the precompiled header. The name in angle brackets keeps this
# folder's path out of it, so that two checkouts share the cache.
function(lockbench_precompiled_header target)
  if(LOCKBENCH_PCH)
    add_library(${target} OBJECT ${CMAKE_BINARY_DIR}/generated/precompiled.cc)
    target_link_libraries(${target} PRIVATE lockbench_options)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()
lockbench_precompiled_header(lockbench_precompiled <cmake/common.h>)

function(lockbench_precompile)
  if(LOCKBENCH_PCH)
    foreach(target ${ARGN})
      target_precompile_headers(${target} REUSE_FROM lockbench_precompiled)
    endforeach()
  endif()
endfunction()
