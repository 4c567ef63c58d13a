"""The emulator: a fault of each kind is put into a kernel, and is reported with its thread and its place."""

import re

import numpy as np
import pytest
from kernel_texts import COPY, SHUFFLE, TILE, X, Y, fresh, kernel, refused, reports, run, some, values

from stepwell.lowering.emulate.printer import print_emulated
from stepwell.runtime import emulate
from stepwell.runtime.launch_limits import check_launch, check_shared, cut_grid, shared_limit

LOADED = f"""
    %v = loop.load %x[%t] : {X} -> f32
    %tile = loop.alloc : {TILE}
    loop.store %v, %tile[%t] : f32, {TILE}
    """
BACKWARDS = f"""
    %back = arith.subi %c63, %t : index
    %w = loop.load %tile[%back] : {TILE} -> f32
    loop.store %w, %y[%t] : f32, {Y}
    """


def test_a_kernel_without_a_fault_runs() -> None:
    x, y = values(), fresh()
    run(kernel(LOADED + "loop.barrier" + BACKWARDS), x, y)
    np.testing.assert_array_equal(y, x[::-1])
    assert y.written is not None and y.written.all()


def test_a_report_names_kernel_thread_block_and_place() -> None:
    text = reports(f"%up = arith.addi %t, %c1 : index\n%v = loop.load %x[%up] : {X} -> f32\n"
                   f"loop.store %v, %y[%t] : f32, {Y}")  # fmt: skip
    assert re.search(r"^faulty\.mlir:\d+:\d+: error: 'loop.store': kernel 'k' on the emulator: thread \(63, 0, 0\) of "
                     r"block \(0, 0, 0\) reads 'x\[64\]' out of bounds: elements 0 to 63 exist", text)  # fmt: skip
    assert re.search(r"note: line \d+ of the printed text: y\[t\] = x\[t \+ 1\];", text)


SHARED_RACES = {
    "reads": (LOADED + BACKWARDS, r"reads 'tile\[\d+\]', which thread \d+ of this block writes.*a race"),
    "writes": (
        f"%tile = loop.alloc : {TILE}\nloop.store %zero, %tile[%c8] : f32, {TILE}",
        r"writes 'tile\[8\]', which thread 0 of this block writes too.*a race",
    ),
    "writes after a read": (
        LOADED + f"""loop.barrier
    %back = arith.subi %c63, %t : index
    %w = loop.load %tile[%back] : {TILE} -> f32
    loop.store %w, %tile[%t] : f32, {TILE}""",
        r"a race",
    ),
    "of warps, with a warp barrier": (
        LOADED + "loop.warp_barrier" + BACKWARDS,
        r"reads 'tile\[\d+\]', which thread \d+ of this block writes",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SHARED_RACES)
def test_race_in_shared_memory(name: str) -> None:
    body, expected = SHARED_RACES[name]
    assert re.search(expected, reports(body))


def test_a_warp_barrier_orders_the_lanes_of_a_warp() -> None:
    other = f"""
    %flip = arith.xori %t, %c1 : index
    %w = loop.load %tile[%flip] : {TILE} -> f32
    loop.store %w, %y[%t] : f32, {Y}"""
    assert reports(LOADED + "loop.warp_barrier" + other) == ""
    assert "a race" in reports(LOADED + other)


def test_reads_by_several_lanes_then_a_write_after_a_warp_barrier_are_ordered() -> None:
    body = LOADED + f"""loop.warp_barrier
    %flip = arith.xori %t, %c1 : index
    %w = loop.load %tile[%flip] : {TILE} -> f32
    %own = loop.load %tile[%t] : {TILE} -> f32
    %"""
    tail = f"""sum = arith.addf %w, %own : f32
    BETWEEN
    loop.store %sum, %tile[%t] : f32, {TILE}
    loop.store %sum, %y[%t] : f32, {Y}"""
    assert reports(body + tail.replace("BETWEEN", "loop.warp_barrier")) == ""
    assert "a race" in reports(body + tail.replace("BETWEEN", ""))


def test_race_between_blocks_in_global_memory() -> None:
    assert re.search(r"writes 'y\[\d+\]', which thread \d+ of block [01] writes too", reports(COPY, grid=2))


def test_a_block_may_exchange_through_global_memory_behind_a_barrier() -> None:
    again = f"""
    %back = arith.subi %c63, %t : index
    %w = loop.load %y[%back] : {Y} -> f32
    BETWEEN
    loop.store %w, %y[%t] : f32, {Y}"""
    assert reports(COPY + "\nloop.barrier" + again.replace("BETWEEN", "loop.barrier")) == ""
    assert "a race" in reports(COPY + again.replace("BETWEEN", "loop.barrier"))
    assert "a race" in reports(COPY + "\nloop.barrier" + again.replace("BETWEEN", ""))


def test_out_of_bounds() -> None:
    store = f"%up = arith.addi %t, %c1 : index\nloop.store %zero, %y[%up] : f32, {Y}"
    assert "writes 'y[64]' out of bounds: elements 0 to 63 exist" in reports(store)
    below = f"%down = arith.subi %t, %c1 : index\n%v = loop.load %x[%down] : {X} -> f32\nloop.store %v, %y[%t] : f32, {Y}"
    assert "reads 'x[-1]' out of bounds" in reports(below)
    vector = f"%v = loop.load %x[%t] {{width = 4}} : {X} -> vector<4xf32>\n%e = loop.extract %v {{lane = 0}} : vector<4xf32> -> f32\nloop.store %e, %y[%t] : f32, {Y}"
    assert "reads 'x[64]' out of bounds" in reports(vector)
    shared = LOADED.replace("%tile[%t]", "%tile[%up]").replace("loop.store", "%up = arith.addi %t, %c1 : index\nloop.store")
    assert "writes 'tile[64]' out of bounds" in reports(shared)
    assert "the buffer is empty" in reports(COPY, y=fresh(0))


def test_between_the_elements_of_a_strided_array() -> None:
    apart = np.zeros((64, 2), np.float32)[:, 0]
    assert "reads 'x[1]' out of bounds: elements 0 to 126 exist; this one lies between" in reports(COPY, x=apart)


def test_negative_strides_reach_below_the_first_element() -> None:
    body = f"%at = arith.subi %c0, %t : index\n%v = loop.load %x[%at] : {X} -> f32\nloop.store %v, %y[%t] : f32, {Y}"
    x, y = values()[::-1], fresh()
    run(kernel(body), x, y)
    np.testing.assert_array_equal(y, x)


def test_an_array_in_registers() -> None:
    r = "!loop.buffer<f32, register, 4>"
    body = f"%r = loop.alloc : {r}\nSTORE\n%v = loop.load %r[%c1] : {r} -> f32\nloop.store %v, %y[%t] : f32, {Y}"
    assert reports(body.replace("STORE", f"loop.store %zero, %r[%c1] : f32, {r}")) == ""
    assert "[1]', which nothing wrote" in reports(body.replace("STORE", f"loop.store %zero, %r[%c0] : f32, {r}"))
    past = f"%far = arith.addi %t, %c4 : index\nloop.store %zero, %r[%far] : f32, {r}"
    assert "[4]' out of bounds" in reports(body.replace("STORE", past))


ROWS = f"""
    %row = arith.muli ROW, %c8 : index
    loop.for FIRST, %c8, %c1 : (index, index, index) -> () {{
    ^bb0(%j: index):
      %at = arith.addi %row, %j : index
      loop.store %zero, %y[%at] : f32, {Y}
    }}"""


def test_a_row_that_runs_into_the_next() -> None:
    """Each thread writes its row, and one element before it."""
    rows = ROWS.replace("ROW", "%t").replace("FIRST", "%minus")
    body = "%minus = arith.subi %c0, %c1 : index\n%first = arith.cmpi eq, %t, %c0 : index\n" \
           "%low = arith.select %first, %c0, %minus : index" + rows.replace("%minus, %c8", "%low, %c8")  # fmt: skip
    text = reports(body, threads=8)
    assert re.search(r"writes 'y\[7\]', which thread 0 of this block writes too", text)
    assert reports(ROWS.replace("ROW", "%t").replace("FIRST", "%c0"), threads=8) == ""


def test_a_row_that_runs_into_the_next_of_the_same_thread() -> None:
    inner = ROWS.replace("ROW", "%r").replace("FIRST", "%c0").replace("%c8, %c1", "%end, %c1")
    body = f"%end = arith.addi %c8, EXTRA : index\n%rows = arith.addi %c4, %c1 : index\n" \
           f"loop.for %c0, %rows, %c1 : (index, index, index) -> () {{\n^bb0(%r: index):{inner}\n}}"  # fmt: skip
    assert "writes 'y[8]' again, although nothing read what it held" in reports(body.replace("EXTRA", "%c1"), threads=1)
    assert reports(body.replace("EXTRA", "%c0"), threads=1) == ""


def test_misaligned_vector() -> None:
    body = f"""%at = arith.muli %t, %c4 : index
    %off = arith.addi %at, OFFSET : index
    %v = loop.load %x[%off] {{width = 4, aligned = true}} : {X} -> vector<4xf32>
    %e = loop.extract %v {{lane = 0}} : vector<4xf32> -> f32
    loop.store %e, %y[%t] : f32, {Y}"""
    x = fresh(68)  # on 64 bytes
    x.written = None
    text = reports(body.replace("OFFSET", "%c1"), threads=8, x=x)
    assert "reads 4 elements from 'x[1]' at an address that is 4 bytes past a multiple of 16" in text
    assert reports(body.replace("OFFSET", "%c0"), threads=8, x=x) == ""
    assert reports(body.replace("OFFSET", "%c1").replace(", aligned = true", ""), threads=8, x=x) == ""


def test_write_to_an_input() -> None:
    assert "writes 'y[0]', which is an input" in reports(COPY, y=values())
    kept = values()
    reports(COPY, x=values() + 1, y=kept)
    np.testing.assert_array_equal(kept, values())


def test_what_nothing_wrote() -> None:
    shared = f"%tile = loop.alloc : {TILE}\n%v = loop.load %tile[%t] : {TILE} -> f32\nloop.store %v, %y[%t] : f32, {Y}"
    assert re.search(r"reads 'tile\[0\]', which nothing wrote \(and 63 more", reports(shared))
    assert "reads 'x[0]', which nothing wrote" in reports(COPY, x=fresh())


def test_shared_memory_of_the_block_before_is_not_seen() -> None:
    """Block 0 fills the tile; block 1, which may run on the same core, only reads it."""
    body = f"""%tile = loop.alloc : {TILE}
    %first = arith.cmpi eq, %block, %c0 : index
    loop.if %first : (i1) -> () {{
      loop.store %zero, %tile[%t] : f32, {TILE}
    }}
    %v = loop.load %tile[%t] : {TILE} -> f32
    %far = arith.muli %block, %n : index
    %at = arith.addi %far, %t : index
    loop.store %v, %y[%at] : f32, {Y}"""
    text = reports(body, grid=2, y=fresh(128))
    assert re.search(r"of block \(1, 0, 0\) reads 'tile\[0\]', which nothing wrote", text)


@pytest.mark.parametrize("checked", [True, False])
def test_a_barrier_that_some_threads_do_not_reach(checked: bool) -> None:
    text = reports(some("olt", "loop.barrier") + "loop.barrier", checked=checked)
    assert re.search(r"waits at a barrier that not all threads of the block reach: thread \d+ waits at line \d+", text)


def test_a_barrier_that_others_left_by_the_end() -> None:
    text = reports(some("olt", "loop.barrier"))
    assert re.search(r"thread \(0, 0, 0\).*not all threads of the block reach: thread \d+ has ended", text)


def test_a_shuffle_that_some_lanes_do_not_reach() -> None:
    text = reports(some("olt", SHUFFLE.format(lane=1, kind="xor", Y=Y)) + "loop.barrier")
    assert re.search(r"stuck|not all threads", text)


def test_a_shuffle_from_a_lane_that_is_not_there() -> None:
    body = SHUFFLE.format(lane=8, kind="down", Y=Y)
    assert "takes part in a shuffle with thread 20, which is not there" in reports(body, threads=20)
    assert reports(body, threads=32) == ""


def test_a_loop_without_an_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulate, "SECONDS", 0.3)
    body = f"""%step = arith.subi %c1, %c1 : index
    loop.for %c0, %c8, %step : (index, index, index) -> () {{
    ^bb0(%j: index):
      %v = loop.load %x[%j] : {X} -> f32
      loop.store %v, %y[%t] : f32, {Y}
    }}"""
    assert "does not end" in reports(body)


def test_memory_that_two_arguments_share() -> None:
    both = fresh()
    assert "writes '%y', whose memory another argument shares" in reports(COPY, x=both[:32], y=both)


# ---------------------------------------------------------------- launches


def test_blocks_that_a_device_refuses() -> None:
    made = kernel(COPY, threads=2048)
    assert "2048 threads; a device takes 1024" in refused(lambda: emulate.build_kernels([made]))


def test_more_shared_memory_than_there_is() -> None:
    big = "!loop.buffer<f32, shared, 50000>"
    made = kernel(f"%tile = loop.alloc : {big}\nloop.store %zero, %tile[%t] : f32, {big}")
    assert made.dynamic_shared == 200_000
    assert "needs 200000 bytes of shared memory a block; sm_80 has 166912" in refused(
        lambda: emulate.build_kernels([made], "sm_80"))  # fmt: skip
    run(made, values(), fresh())  # sm_90a has 227 KiB


def test_static_shared_memory_beyond_48_kib() -> None:
    assert "declares 50000 bytes of static shared memory" in refused(
        lambda: check_shared(kernel(COPY), 50_000, 0, "sm_90a"))  # fmt: skip
    check_shared(kernel(COPY), shared_limit("sm_90a"), shared_limit("sm_90a"), "sm_90a")


def test_launch_bounds_of_the_printed_text() -> None:
    made = kernel(COPY)
    bound = print_emulated([made]).threads("k")
    assert bound == 64
    assert "blocks of 64 threads, but its text has launch bounds of 32" in refused(
        lambda: check_launch(made, "sm_90a", 32))  # fmt: skip


def test_a_grid_beyond_the_limits() -> None:
    """Loops over blocks take what was cut in strides; a kernel that asks for its block by itself cannot."""
    text = refused(lambda: cut_grid(kernel(COPY), (2**31, 1, 1)))
    assert "needs a grid of 2147483648 x 1 x 1 blocks" in text and "loop over 'block' instead" in text
    assert cut_grid(kernel(COPY), (1, 70000, 65536)) == (1, 65535, 65535)
