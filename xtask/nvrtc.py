"""Compiles the CUDA kernels with NVRTC: nvrtc.py FOLDER OUTPUT, run by `cargo xtask kernels` in an environment that has the pinned wheel."""

import ctypes
import pathlib
import re
import sys

import nvidia.cuda_nvrtc

# Architecture, file, and what is defined: the last is a variant to be measured.
TARGETS = [
    ("compute_80", "anygram.ptx", []),
    ("sm_80", "anygram.sm_80.cubin", []),
    ("sm_90", "anygram.sm_90.cubin", []),
    ("sm_90", "anygram.sm_90.tma.cubin", [b"--define-macro=ANYGRAM_TMA"]),
]


def fnv(data: bytes) -> str:
    """FNV-1a over 64 bits: enough to see that a file is not the one that was meant."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


def output_of(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, kind: str) -> bytes:
    size = ctypes.c_size_t()
    if getattr(nvrtc, f"nvrtcGet{kind}Size")(program, ctypes.byref(size)):
        sys.exit(f"nvrtcGet{kind}Size")
    code = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{kind}")(program, code)
    return code.raw


def volatile_loads(ptx: str) -> dict[str, int]:
    """The volatile loads of each kernel."""
    parts = re.split(r"\.entry\s+(\w+)", ptx)
    return {name: len(re.findall(r"\bld\.volatile\b", body)) for name, body in zip(parts[1::2], parts[2::2])}


def statistics(log: str, ptx: str) -> list[str]:
    """A line a kernel: its name; registers, bytes of stack, of spills stored and loaded, and of static shared memory, as the assembler says; volatile loads."""
    assembled = {}
    for part in re.split(r"Compiling entry function ", log)[1:]:
        name = part.split("'")[1]
        stack = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", part)
        registers, shared = re.search(r"Used (\d+) registers", part), re.search(r"(\d+) bytes smem", part)
        assembled[name] = [registers[1], *stack.groups(), shared[1] if shared else "0"]
    loads = volatile_loads(ptx)
    return [" ".join([name, *assembled.get(name, ["-"] * 5), str(loads[name])]) for name in sorted(loads)]


def compile_for(nvrtc: ctypes.CDLL, sources: dict[str, bytes], target: str, defined: list[bytes]) -> tuple[bytes, list[str]]:
    names = [name for name in sorted(sources) if name != "anygram.cu"]
    headers = (ctypes.c_char_p * len(names))(*[sources[name] for name in names])
    header_names = (ctypes.c_char_p * len(names))(*[name.encode() for name in names])
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    source = sources["anygram.cu"]
    created = nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"anygram.cu", len(names), headers, header_names)
    if created:
        sys.exit(f"nvrtcCreateProgram: {created}")
    is_assembled = target.startswith("sm_")
    # What the assembler says about registers comes with the log; the code is the same without.
    verbose = [b"--ptxas-options=-v"] if is_assembled else []
    options = [f"--gpu-architecture={target}".encode(), b"--std=c++17", *verbose, *defined]
    status = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    if status:
        sys.exit(f"{target}:\n{log.value.decode()}")
    ptx = output_of(nvrtc, program, "PTX").rstrip(b"\0")
    return output_of(nvrtc, program, "CUBIN") if is_assembled else ptx, statistics(log.value.decode(), ptx.decode())


def main() -> None:
    folder, output = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    library = pathlib.Path(nvidia.cuda_nvrtc.__path__[0]) / "lib" / "libnvrtc.so.12"
    nvrtc = ctypes.CDLL(str(library))
    sources = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".cu", ".cuh")}
    output.mkdir(parents=True, exist_ok=True)
    lines = [f"{name} {fnv(data)}" for name, data in sorted(sources.items())]
    told = ["# file kernel registers stack spill-stores spill-loads shared volatile-loads"]
    for target, name, defined in TARGETS:
        code, of_kernels = compile_for(nvrtc, sources, target, defined)
        (output / name).write_bytes(code)
        lines.append(f"{name} {fnv(code)}")
        told += [f"{name} {line}" for line in of_kernels]
    (output / "files.txt").write_text("".join(f"{line}\n" for line in lines))
    (output / "statistics.txt").write_text("".join(f"{line}\n" for line in told))


main()
