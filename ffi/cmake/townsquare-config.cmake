# find_package(townsquare 0.1 CONFIG [COMPONENTS shared static]): the targets townsquare::shared and townsquare::static.

get_filename_component(_townsquare_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(_townsquare_places
    PATHS "${_townsquare_prefix}"
    PATH_SUFFIXES lib "lib/${CMAKE_LIBRARY_ARCHITECTURE}" lib64
    NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
find_library(townsquare_SHARED_LIBRARY NAMES libtownsquare.so libtownsquare.dylib ${_townsquare_places})
find_library(townsquare_STATIC_LIBRARY NAMES libtownsquare.a ${_townsquare_places})
mark_as_advanced(townsquare_SHARED_LIBRARY townsquare_STATIC_LIBRARY)

if(townsquare_SHARED_LIBRARY AND NOT TARGET townsquare::shared)
    add_library(townsquare::shared SHARED IMPORTED)
    set_target_properties(townsquare::shared PROPERTIES
        IMPORTED_LOCATION "${townsquare_SHARED_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${_townsquare_prefix}/include")
    if(NOT APPLE)
        set_target_properties(townsquare::shared PROPERTIES IMPORTED_SONAME libtownsquare.so.0.1)
    endif()
endif()
if(townsquare_STATIC_LIBRARY AND NOT TARGET townsquare::static)
    add_library(townsquare::static STATIC IMPORTED)
    set_target_properties(townsquare::static PROPERTIES
        IMPORTED_LOCATION "${townsquare_STATIC_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${_townsquare_prefix}/include")
    if(APPLE)
        # Not tested.
        set_property(TARGET townsquare::static PROPERTY INTERFACE_LINK_LIBRARIES
            "-framework Security" "-framework CoreFoundation" iconv m)
    else()
        set_property(TARGET townsquare::static PROPERTY INTERFACE_LINK_LIBRARIES gcc_s util rt pthread m dl c)
    endif()
endif()

# What check_required_components does in packages that CMake itself installs.
foreach(_townsquare_component IN LISTS townsquare_FIND_COMPONENTS)
    if(TARGET townsquare::${_townsquare_component})
        set(townsquare_${_townsquare_component}_FOUND TRUE)
    elseif(townsquare_FIND_REQUIRED_${_townsquare_component})
        set(townsquare_FOUND FALSE)
        set(townsquare_NOT_FOUND_MESSAGE "${_townsquare_prefix} has no library for townsquare::${_townsquare_component}")
    endif()
endforeach()
if(NOT TARGET townsquare::shared AND NOT TARGET townsquare::static)
    set(townsquare_FOUND FALSE)
    set(townsquare_NOT_FOUND_MESSAGE "${_townsquare_prefix} has no libtownsquare")
endif()
