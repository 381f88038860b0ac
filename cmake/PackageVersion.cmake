# Read by cpack. The version of a commit with a tag such as v0.2.0 is the tag's; that of any other commit is the latest
# tag's, or the project's, with the commit's day and name: 0.1.0+20261130.a7cda0e8.
function(lockbench_git variable)
  execute_process(COMMAND git ${ARGN} WORKING_DIRECTORY ${CPACK_LOCKBENCH_SOURCE} OUTPUT_VARIABLE said
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(${variable} "${said}" PARENT_SCOPE)
endfunction()
lockbench_git(exact describe --tags --exact-match "--match=v[0-9]*")
lockbench_git(latest describe --tags --abbrev=0 "--match=v[0-9]*")
lockbench_git(commit log -1 --format=+%cd.%h --date=format:%Y%m%d%H%M --abbrev=8)
if(exact)
  string(SUBSTRING "${exact}" 1 -1 CPACK_DEBIAN_PACKAGE_VERSION)
else()
  if(latest)
    string(SUBSTRING "${latest}" 1 -1 CPACK_LOCKBENCH_VERSION)
  endif()
  set(CPACK_DEBIAN_PACKAGE_VERSION "${CPACK_LOCKBENCH_VERSION}${commit}")
endif()
