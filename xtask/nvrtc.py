"""Compiles the CUDA kernels with NVRTC: nvrtc.py FOLDER OUTPUT, run by `cargo xtask kernels` in an environment that has the pinned wheel."""

import ctypes
import pathlib
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


def compile_for(nvrtc: ctypes.CDLL, sources: dict[str, bytes], target: str, defined: list[bytes]) -> bytes:
    names = [name for name in sorted(sources) if name != "anygram.cu"]
    headers = (ctypes.c_char_p * len(names))(*[sources[name] for name in names])
    header_names = (ctypes.c_char_p * len(names))(*[name.encode() for name in names])
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    source = sources["anygram.cu"]
    created = nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"anygram.cu", len(names), headers, header_names)
    if created:
        sys.exit(f"nvrtcCreateProgram: {created}")
    options = [f"--gpu-architecture={target}".encode(), b"--std=c++17", *defined]
    status = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    if status:
        sys.exit(f"{target}:\n{log.value.decode()}")
    kind = "CUBIN" if target.startswith("sm_") else "PTX"
    getattr(nvrtc, f"nvrtcGet{kind}Size")(program, ctypes.byref(size))
    code = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{kind}")(program, code)
    return code.raw.rstrip(b"\0") if kind == "PTX" else code.raw


def main() -> None:
    folder, output = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    library = pathlib.Path(nvidia.cuda_nvrtc.__path__[0]) / "lib" / "libnvrtc.so.12"
    nvrtc = ctypes.CDLL(str(library))
    sources = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".cu", ".cuh")}
    output.mkdir(parents=True, exist_ok=True)
    lines = [f"{name} {fnv(data)}" for name, data in sorted(sources.items())]
    for target, name, defined in TARGETS:
        code = compile_for(nvrtc, sources, target, defined)
        (output / name).write_bytes(code)
        lines.append(f"{name} {fnv(code)}")
    (output / "files.txt").write_text("".join(f"{line}\n" for line in lines))


main()
