"""Memory of others: everything that does not fit is an exception."""

from __future__ import annotations

import array
import ctypes
from typing import Any

import anygram
import numpy
import pytest
from conftest import allowed


class Tensor:
    """As much of a tensor as is looked at."""

    def __init__(self, array: Any, dtype: str = "torch.int32", device: str = "cpu") -> None:
        self.array = array
        self.dtype = dtype
        self.device = device
        self.shape = array.shape

    def data_ptr(self) -> int:
        pointer: int = self.array.ctypes.data
        return pointer

    def stride(self) -> tuple[int, ...]:
        return tuple(stride // 4 for stride in self.array.strides)


def rows(n_rows: int = 3, words: int = 2, dtype: Any = numpy.uint32) -> Any:
    return numpy.full((n_rows, words), -1 if dtype == numpy.int32 else 99, dtype=dtype)


@pytest.mark.parametrize("dtype", [numpy.uint32, numpy.int32])
def test_rows_of_numpy(constraint: anygram.Constraint, dtype: Any) -> None:
    matcher = constraint.matcher()
    out = rows(dtype=dtype)
    before = out[0].tolist()
    for target in (out, anygram.MaskBuffer(out)):
        out[1:] = 99
        matcher.fill_mask(target, 1)
        matcher.fill_mask(target, row=2, budget=1)
        assert (allowed(out[1]), out[1, 1], allowed(out[2])) == ([0, 2, 4], 0, [2])
        assert out[0].tolist() == before


def test_a_row_by_itself_and_columns(constraint: anygram.Constraint) -> None:
    matcher = constraint.matcher()
    one = numpy.zeros(1, dtype=numpy.uint32)
    matcher.fill_mask(one)
    assert allowed(one) == [0, 2, 4]
    wide = rows(2, 4)
    matcher.fill_mask(wide[:, 1:3], 1)
    assert wide.tolist() == [[99] * 4, [99, 21, 0, 99]]
    matcher.fill_mask(wide[::2], 0)
    assert wide[0].tolist() == [21, 0, 0, 0]


def test_other_buffers(constraint: anygram.Constraint) -> None:
    matcher = constraint.matcher()
    words = array.array("I", [7, 7])
    matcher.fill_mask(words)
    assert words.tolist() == [21, 0]
    tensor = Tensor(rows(2, 3, numpy.int32))
    matcher.fill_mask(tensor, 1)
    assert tensor.array[1].tolist() == [21, 0, 0]
    memory = (ctypes.c_uint32 * 6)(*[9] * 6)
    buffer = anygram.MaskBuffer.from_pointer(ctypes.addressof(memory), 2, 2, stride=3, owner=memory)
    matcher.fill_mask(buffer, 1)
    assert (list(memory), buffer.shape) == ([9, 9, 9, 21, 0, 9], (2, 2))


def misaligned() -> Any:
    return numpy.frombuffer(bytearray(41), dtype=numpy.uint8)[1:41].view(numpy.uint32).reshape(5, 2)


def read_only() -> Any:
    out = rows()
    out.flags.writeable = False
    return out


@pytest.mark.parametrize(
    ("out", "why"),
    [
        (numpy.zeros((2, 0), dtype=numpy.uint32), "0 words"),
        (rows(dtype=numpy.float32), "32-bit words"),
        (rows(dtype=numpy.uint64), "<u8"),
        (rows(dtype=numpy.int64), "32-bit words"),
        (rows(dtype=numpy.dtype(">u4")), ">u4"),
        (numpy.zeros((2, 2, 2), dtype=numpy.uint32), "3 dimensions"),
        (numpy.zeros((), dtype=numpy.uint32), "0 dimensions"),
        (rows()[:, ::-1], "-1 apart"),
        (rows()[::-1], "overlap"),
        (rows(2, 4)[:, ::2], "2 apart"),
        (numpy.lib.stride_tricks.as_strided(rows(), (3, 2), (4, 4)), "overlap"),
        (numpy.lib.stride_tricks.as_strided(rows(), (3, 2), (0, 4)), "overlap"),
        (misaligned(), "aligned"),
        (read_only(), "read-only"),
        (b"12345678", "u1"),
        (Tensor(rows(), dtype="torch.int64"), "32-bit"),
        (Tensor(rows(), device="cuda:0"), "cuda:0"),
    ],
)
def test_arrays_that_do_not_fit(constraint: anygram.Constraint, out: Any, why: str) -> None:
    matcher = constraint.matcher()
    with pytest.raises(anygram.BufferError, match=why):
        matcher.fill_mask(out)
    with pytest.raises(anygram.BufferError, match=why):
        anygram.fill_masks([matcher], out)


@pytest.mark.parametrize("row", [3, -1, 1 << 60])
def test_rows_that_there_are_not(constraint: anygram.Constraint, row: int) -> None:
    with pytest.raises(anygram.AnygramError, match="there is no row|the row is"):
        constraint.matcher().fill_mask(rows(), row)


@pytest.mark.parametrize("out", [None, 3, "words", [1, 2], object()])
def test_what_is_no_array(constraint: anygram.Constraint, out: Any) -> None:
    with pytest.raises(TypeError):
        constraint.matcher().fill_mask(out)


def test_released_buffers(constraint: anygram.Constraint) -> None:
    matcher = constraint.matcher()
    with anygram.MaskBuffer(rows()) as buffer:
        matcher.fill_mask(buffer)
    for use in (
        lambda: matcher.fill_mask(buffer),
        lambda: matcher.fill_drafts(buffer, 0, [0]),
        lambda: anygram.fill_masks([matcher], buffer),
        lambda: buffer.shape,
    ):
        with pytest.raises(anygram.BufferError, match="released"):
            use()
    buffer.release()


def test_memory_stays_where_it_is(constraint: anygram.Constraint) -> None:
    out = numpy.zeros(2, dtype=numpy.uint32)
    buffer = anygram.MaskBuffer(out)
    with pytest.raises(ValueError, match="resize"):
        out.resize(1 << 20, refcheck=False)
    growing = bytearray(8)
    held = anygram.MaskBuffer(numpy.frombuffer(growing, dtype=numpy.uint32))
    with pytest.raises(BufferError):
        growing.extend(b"more")
    address = buffer
    del out
    constraint.matcher().fill_mask(address)
    assert held.shape == (1, 2)


@pytest.mark.parametrize("arguments", [(0, 1, 1), (2, 1, 1), (4, 1 << 62, 1), ((1 << 63) - 4, 4, 4)])
def test_pointers_that_cannot_be(arguments: tuple[int, int, int]) -> None:
    with pytest.raises(anygram.BufferError):
        anygram.MaskBuffer.from_pointer(*arguments)
    with pytest.raises(anygram.BufferError):
        anygram.MaskBuffer.from_pointer(4, 1, 4, stride=3)


def test_batches(constraint: anygram.Constraint) -> None:
    matchers = [constraint.matcher() for _ in range(5)]
    for at, matcher in enumerate(matchers):
        matcher.advance_all([0] * at)
    out = rows(8, 2)
    assert anygram.fill_masks(matchers, out, rows=[7, 1, 2, 3, 0]) == [None] * 5
    assert [row[0] for row in out.tolist()] == [21, 21, 21, 21, 99, 99, 99, 21]
    assert anygram.fill_masks(matchers, out, threads=2) == [None] * 5
    assert anygram.fill_masks([], out) == []
    for arguments in (
        ([*matchers, matchers[0]], out, None),
        (matchers[:2], out, [1, 1]),
        (matchers[:2], out, [1]),
        (matchers[:2], out, [1, 8]),
        (matchers[:2], out, [1, -1]),
        (matchers, out[:4], None),
    ):
        with pytest.raises(anygram.AnygramError):
            anygram.fill_masks(*arguments)
    with pytest.raises(anygram.AnygramError, match="threads"):
        anygram.fill_masks(matchers, out, threads=0)
    with pytest.raises(TypeError):
        anygram.fill_masks([1], out)  # type: ignore[list-item]


def test_large_batches_over_several_tables(vocabulary: anygram.Vocabulary) -> None:
    language = anygram.Compiler().compile('start: "(" start ")" | "x"', "lark")
    constraint = anygram.Constraint(language, vocabulary, tables=3)
    matchers = [constraint.matcher() for _ in range(200)]
    out = rows(200, 1)
    assert anygram.fill_masks(matchers, anygram.MaskBuffer(out)) == [None] * 200
    assert (out == 21).all()


def test_masks_on_devices_have_words_too() -> None:
    """Its type is looked at before any operation of the tensor."""
    masks, logits = rows(1, 2), rows(1, 64)
    for kind, mask in (
        ("torch.float32", masks.astype(numpy.int64)),
        ("torch.float32", masks.astype(numpy.float32)),
        ("torch.float32", masks.astype(">u4")),
        ("torch.float32", Tensor(masks, "torch.int64", "cuda:0")),
        ("torch.float64", masks),
        ("torch.int32", masks),
    ):
        with pytest.raises(anygram.BufferError, match="holds"):
            anygram.apply_mask(Tensor(logits, kind, "cuda:0"), mask)
    for nothing in ("words", None, [1, 2]):
        with pytest.raises(TypeError):
            anygram.apply_mask(Tensor(logits, "torch.float32", "cuda:0"), nothing)
