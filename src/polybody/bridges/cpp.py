"""A header-only C++ face of the C library, with Eigen, and a CMake package around both.

Each C function becomes one in the namespace of the prefix: arguments are `Eigen::Ref`s (vectors and maps of fixed size,
no copy), one result is returned as a vector or a row-major matrix, several as a struct of them; steps change vectors or
maps in place. Nothing is allocated: all sizes are known. For controllers of ros2_control: map the state interfaces'
doubles and call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polybody.model.model import Model

#: Words of C++ that are names in C, and namespaces that the header uses: a prefix of these has a namespace with "_".
TAKEN = frozenset({
    "alignas", "alignof", "and", "and_eq", "asm", "bitand", "bitor", "bool", "catch", "char16_t", "char32_t",
    "char8_t", "class", "co_await", "co_return", "co_yield", "compl", "concept", "consteval", "constexpr",
    "constinit", "const_cast", "decltype", "delete", "dynamic_cast", "explicit", "export", "false", "friend",
    "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or", "or_eq", "private",
    "protected", "public", "reinterpret_cast", "requires", "static_assert", "static_cast", "template", "this",
    "thread_local", "throw", "true", "try", "typeid", "typename", "using", "virtual", "wchar_t", "xor", "xor_eq",
    "Eigen", "std",
})  # fmt: skip


def cpp_header(
    prefix: str, model: Model, functions: Sequence[Any], shapes: Mapping[str, list[tuple[int, ...]]],
    steps: Sequence[str],
) -> str:  # fmt: skip
    """The text of the header."""
    body = [_function(prefix, f, shapes.get(f.name(), [])) for f in functions]
    body += [_step(prefix, step, len(model.parameters)) for step in steps if step != "simulate"]
    space = f"{prefix}_" if prefix in TAKEN else prefix
    guard = f"{prefix.upper()}_HPP"
    return "\n".join(
        [
            f"// C++ face of {prefix}.h: fixed sizes, no allocation. Matrices are row by row. Written by polybody.",
            f"#ifndef {guard}", f"#define {guard}", "", "#include <Eigen/Core>", "",
            'extern "C" {', f'#include "{prefix}.h"', "}", "", f"namespace {space} {{", "",
            f"constexpr int nq = {model.nq};", f"constexpr int nv = {model.nv};",
            "template <int N> using Vector = Eigen::Matrix<double, N, 1>;",
            "template <int R, int C> using Matrix = Eigen::Matrix<double, R, C, (C == 1 ? Eigen::ColMajor : "
            "Eigen::RowMajor)>;",
            "template <int N> using In = Eigen::Ref<const Vector<N>>;",
            "template <int N> using InOut = Eigen::Ref<Vector<N>>;", "",
            *body, f"}}  // namespace {space}", "", f"#endif  // {guard}", "",
        ]
    )  # fmt: skip


def _function(prefix: str, f: Any, shapes: list[tuple[int, ...]]) -> str:
    inputs = [(f.name_in(k), f.numel_in(k)) for k in range(f.n_in())]
    results = [(f.name_out(k), f.numel_out(k)) for k in range(f.n_out())]
    types = [_type(shapes[k] if k < len(shapes) else (), size) for k, (_, size) in enumerate(results)]
    takes = ", ".join(f"const In<{size}>& {name}" for name, size in inputs)
    given = ", ".join(f"{name}.data()" for name, _ in inputs)
    if len(results) == 1:
        lines = [
            f"inline {types[0]} {f.name()}({takes}) {{",
            f"  {types[0]} result;",
            f"  {prefix}_{f.name()}({given}, result.data());",
            "  return result;",
            "}",
        ]
    else:
        record = f"{f.name()}_results"
        told = ", ".join(f"result.{name}.data()" for name, _ in results)
        lines = [
            f"struct {record} {{",
            *(f"  {kind} {name};" for kind, (name, _) in zip(types, results, strict=True)),
            "  EIGEN_MAKE_ALIGNED_OPERATOR_NEW",
            "};",
            f"inline {record} {f.name()}({takes}) {{",
            f"  {record} result;",
            f"  {prefix}_{f.name()}({given}, {told});",
            "  return result;",
            "}",
        ]
    return "\n".join([*lines, ""])


def _type(shape: tuple[int, ...], size: int) -> str:
    if len(shape) == 2 and shape[0] * shape[1] == size:
        return f"Matrix<{shape[0]}, {shape[1]}>"
    return f"Vector<{size}>"


def _step(prefix: str, step: str, parameters: int) -> str:
    takes, gives = (f"const In<{parameters}>& parameters, ", "parameters.data(), ") if parameters else ("", "")
    return "\n".join(
        [
            f"// Advances q and v, vectors or maps, by dt with tau held; 0 where all went well (see {prefix}.h).",
            f"inline int {step}(InOut<nq> q, InOut<nv> v, const In<nv>& tau, {takes}double dt) {{",
            f"  return {prefix}_{step}(q.data(), v.data(), tau.data(), {gives}dt, q.data(), v.data());",
            "}",
            "",
        ]
    )


def cmake_lists(prefix: str) -> str:
    """CMakeLists.txt: the C library, the C++ interface over it, an installable package."""
    return f"""cmake_minimum_required(VERSION 3.14)
project({prefix} VERSION 1.0 LANGUAGES C CXX)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

add_library({prefix} STATIC {prefix}.c)
add_library({prefix}::{prefix} ALIAS {prefix})
set_target_properties({prefix} PROPERTIES C_STANDARD 99 POSITION_INDEPENDENT_CODE ON)
target_include_directories({prefix} PUBLIC
  $<BUILD_INTERFACE:${{CMAKE_CURRENT_SOURCE_DIR}}> $<INSTALL_INTERFACE:${{CMAKE_INSTALL_INCLUDEDIR}}>)
if(UNIX)
  target_link_libraries({prefix} PUBLIC m)
endif()

find_package(Eigen3 REQUIRED NO_MODULE)
add_library({prefix}_cpp INTERFACE)
add_library({prefix}::cpp ALIAS {prefix}_cpp)
set_target_properties({prefix}_cpp PROPERTIES EXPORT_NAME cpp)
target_compile_features({prefix}_cpp INTERFACE cxx_std_14)
target_link_libraries({prefix}_cpp INTERFACE {prefix} Eigen3::Eigen)

install(TARGETS {prefix} {prefix}_cpp EXPORT {prefix}Targets)
install(FILES {prefix}.h {prefix}.hpp DESTINATION ${{CMAKE_INSTALL_INCLUDEDIR}})
install(EXPORT {prefix}Targets NAMESPACE {prefix}:: DESTINATION ${{CMAKE_INSTALL_LIBDIR}}/cmake/{prefix})
configure_package_config_file({prefix}Config.cmake.in ${{CMAKE_CURRENT_BINARY_DIR}}/{prefix}Config.cmake
  INSTALL_DESTINATION ${{CMAKE_INSTALL_LIBDIR}}/cmake/{prefix})
install(FILES ${{CMAKE_CURRENT_BINARY_DIR}}/{prefix}Config.cmake
  DESTINATION ${{CMAKE_INSTALL_LIBDIR}}/cmake/{prefix})
"""


def cmake_config(prefix: str) -> str:
    """The template of the package's configuration."""
    return f"""@PACKAGE_INIT@
include(CMakeFindDependencyMacro)
find_dependency(Eigen3 NO_MODULE)
include("${{CMAKE_CURRENT_LIST_DIR}}/{prefix}Targets.cmake")
"""


__all__ = ["cmake_config", "cmake_lists", "cpp_header"]
