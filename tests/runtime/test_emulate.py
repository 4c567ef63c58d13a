"""The emulator: a fault of each kind is put into a kernel, and is reported with its thread and its place."""

import re
from collections.abc import Callable

import numpy as np
import pytest
from kernel_texts import ATOMIC, BALLOT, X, Y, int_kernel, kernel

from stepwell.dialects import loop
from stepwell.ir.diagnostics import IRError
from stepwell.ir.parser import parse_module
from stepwell.ir.verifier import verify
from stepwell.lowering.emulate.printer import print_emulated
from stepwell.runtime import emulate
from stepwell.runtime.emulate import Address, EmulatedArrays
from stepwell.runtime.launch_limits import check_launch, check_shared, cut_grid, shared_limit

TILE = "!loop.buffer<f32, shared, 64>"


def run(made: loop.Kernel, x: np.ndarray, y: np.ndarray, n: int = 64, grid: int = 1, checked: bool = True) -> None:
    runner = emulate.build_kernels([made], checked=checked)["k"]
    runner([Address.of(x), Address.of(y)], [n], (grid, 1, 1))


def fresh(count: int = 64, dtype: type = np.float32) -> np.ndarray:
    return EmulatedArrays(True).empty((count,), np.dtype(dtype))


def values(count: int = 64) -> np.ndarray:
    return np.arange(count, dtype=np.float32) - 3


def reports(body: str, threads: int = 64, grid: int = 1, x: np.ndarray | None = None, y: np.ndarray | None = None,
            checked: bool = True) -> str:  # fmt: skip
    """What a run of the kernel reports; empty where nothing is wrong."""
    try:
        run(kernel(body, threads), values() if x is None else x, fresh() if y is None else y, grid=grid,
            checked=checked)  # fmt: skip
    except IRError as error:
        return str(error)
    return ""


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
COPY = f"%v = loop.load %x[%t] : {X} -> f32\n    loop.store %v, %y[%t] : f32, {Y}"


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


def some(condition: str, inner: str) -> str:
    """`inner` for the threads whose value is less (or not less) than 0: the verifier cannot see that they differ."""
    r = "!loop.buffer<f32, register, 1>"
    return f"""
    %v = loop.load %x[%t] : {X} -> f32
    %r = loop.alloc : {r}
    loop.store %v, %r[%c0] : f32, {r}
    %hidden = loop.load %r[%c0] : {r} -> f32
    %some = arith.cmpf {condition}, %hidden, %zero : f32
    loop.if %some : (i1) -> () {{
      {inner}
    }}
    """


@pytest.mark.parametrize("checked", [True, False])
def test_a_barrier_that_some_threads_do_not_reach(checked: bool) -> None:
    text = reports(some("olt", "loop.barrier") + "loop.barrier", checked=checked)
    assert re.search(r"waits at a barrier that not all threads of the block reach: thread \d+ waits at line \d+", text)


def test_a_barrier_that_others_left_by_the_end() -> None:
    text = reports(some("olt", "loop.barrier"))
    assert re.search(r"thread \(0, 0, 0\).*not all threads of the block reach: thread \d+ has ended", text)


SHUFFLE = """%other = loop.shuffle %zero, %c{lane} {{kind = "{kind}"}} : f32
    loop.store %other, %y[%t] : f32, {Y}"""


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


def refused(act: Callable[[], object]) -> str:
    with pytest.raises(IRError) as caught:
        act()
    return str(caught.value)


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


# ---------------------------------------------------------------- ballots and atomics


def test_a_ballot_collects_the_votes_of_a_warp() -> None:
    x = np.random.default_rng(0).integers(0, 6, 64).astype(np.int32)
    y = fresh(dtype=np.int32)
    run(int_kernel(BALLOT), x, y, grid=2)
    wanted = [sum(int(v < 3) << n for n, v in enumerate(warp)) for warp in x.reshape(2, 32)]
    np.testing.assert_array_equal(y.view(np.uint32), np.repeat(np.array(wanted, np.uint32), 32))


ATOMICS = {
    "addi": np.sum, "maxsi": np.max, "minsi": np.min, "andi": np.bitwise_and.reduce, "ori": np.bitwise_or.reduce,
    "xori": np.bitwise_xor.reduce, "maxui": lambda v: v.view(np.uint32).max(), "minui": lambda v: v.view(np.uint32).min(),
}  # fmt: skip


@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize("kind", ATOMICS)
def test_atomics_of_two_blocks(kind: str, checked: bool) -> None:
    """128 threads, of two blocks on two cores, update one element that held the first value."""
    x = np.random.default_rng(1).integers(-(2**31), 2**31, 64).astype(np.int32)
    y = fresh(1, np.int32)
    y[0], y.written[0] = x[0], 1  # type: ignore[index]
    run(int_kernel(ATOMIC.replace("KIND", kind)), x, y, grid=2, checked=checked)
    wanted = np.array(ATOMICS[kind](np.concatenate([x[:1], x, x]))).astype(np.int64) & 0xFFFFFFFF
    assert int(y.view(np.uint32)[0]) == int(wanted)


def test_an_atomic_update_and_a_plain_one_are_a_race() -> None:
    body = ATOMIC.replace("KIND", "addi") + f"\n    loop.store %v, %y[%c0] : i32, {Y}"
    y = fresh(1, np.int32)
    y.written[0] = 1  # type: ignore[index]
    assert "a race" in refused(lambda: run(int_kernel(body), np.arange(64, dtype=np.int32), y))


# ---------------------------------------------------------------- what a hostile reader found


SHARED_ONE = "!loop.buffer<i32, shared, 1>"
COUNT = f"""
    %one = arith.constant 1 : i32
    %s = loop.alloc : {SHARED_ONE}
    %isfirst = arith.cmpi eq, %t, %c0 : index
    loop.if %isfirst : (i1) -> () {{
      loop.store %one, %s[%c0] : i32, {SHARED_ONE}
    }}
    loop.barrier
    %old = loop.atomic %one, %s[%c0] {{kind = "addi"}} : i32, {SHARED_ONE}
    BETWEEN
    %is = arith.cmpi eq, %t, %c63 : index
    loop.if %is : (i1) -> () {{
      ACCESS
    }}"""
READ_IT = f"%r = loop.load %s[%c0] : {SHARED_ONE} -> i32\n loop.store %r, %y[%c0] : i32, {Y}"
WRITE_IT = f"loop.store %one, %s[%c0] : i32, {SHARED_ONE}"


@pytest.mark.parametrize("access", [READ_IT, WRITE_IT])
@pytest.mark.parametrize("who", ["%c63", "%c0"])
def test_a_plain_access_races_with_the_atomics_of_all_threads(access: str, who: str) -> None:
    """Also where the thread that makes it was the last to update."""
    body = COUNT.replace("ACCESS", access).replace("%t, %c63", f"%t, {who}")
    x, y = np.arange(64, dtype=np.int32), fresh(1, np.int32)
    assert "a race" in refused(lambda: run(int_kernel(body.replace("BETWEEN", "")), x, y))
    run(int_kernel(body.replace("BETWEEN", "loop.barrier")), x, fresh(1, np.int32))


ONE = "!loop.buffer<f32, register, 1>"


def test_a_register_of_one_value_that_nothing_wrote() -> None:
    body = f"%r = loop.alloc : {ONE}\nSTORE\n%v = loop.load %r[%c0] : {ONE} -> f32\nloop.store %v, %y[%t] : f32, {Y}"
    assert "reads 'r[0]', which nothing wrote" in reports(body.replace("STORE", ""))
    first = f"""%isfirst = arith.cmpi eq, %t, %c0 : index
    loop.if %isfirst : (i1) -> () {{
      loop.store %zero, %r[%c0] : f32, {ONE}
    }}"""
    assert re.search(r"reads 'r\[0\]', which nothing wrote \(and 62 more", reports(body.replace("STORE", first)))
    assert reports(body.replace("STORE", f"loop.store %zero, %r[%c0] : f32, {ONE}")) == ""


def test_a_constant_index_outside_of_a_buffer_is_refused() -> None:
    body = f"%r = loop.alloc : {ONE}\nloop.store %zero, %r[%c4] : f32, {ONE}"
    assert "reaches elements 4 to 4, but '!loop.buffer<f32, register, 1>' has 1" in refused(lambda: kernel(body))


@pytest.mark.parametrize("inner", ["%votes = loop.ballot %some", "loop.warp_barrier", SHUFFLE.format(lane=1, kind="xor", Y=Y)])
def test_lanes_that_skip_what_the_others_wait_at(inner: str) -> None:
    text = reports(some("olt", inner) + f"loop.store %zero, %y[%t] : f32, {Y}", threads=32)
    assert re.search(r"waits for the lanes of its warp, but thread \d+ has ended: stuck", text)


@pytest.mark.parametrize("checked", [True, False])
def test_large_arrays_in_registers_have_a_stack(checked: bool) -> None:
    big = "!loop.buffer<f32, register, 60000>"
    body = f"%r = loop.alloc : {big}\nloop.store %zero, %r[%t] : f32, {big}\n%v = loop.load %r[%t] : {big} -> f32\n" \
           f"loop.store %v, %y[%t] : f32, {Y}"  # fmt: skip
    assert reports(body, checked=checked) == ""


@pytest.mark.parametrize("value, message", [("g++ 'foo", "No closing quotation"), ("nonsense-xx", "is not found"),
                                            ("/bin/true", "refused")])  # fmt: skip
def test_a_compiler_that_is_none(value: str, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("CXX", value)
    monkeypatch.setenv("STEPWELL_CACHE", f"{tmp_path}/cache")
    assert message in refused(lambda: emulate.build_kernels([kernel(COPY)]))


def test_a_negative_grid() -> None:
    assert "has a grid of -2 x 1 x 1 blocks" in refused(lambda: run(kernel(COPY), values(), fresh(), grid=-2))


@pytest.mark.parametrize("checked", [True, False])
def test_a_choice_between_elements_of_two_buffers_of_a_narrow_float(checked: bool) -> None:
    tile = TILE.replace("f32", "f16")
    body = f"""
    %v = loop.load %x[%t] : {X} -> f16
    %tile = loop.alloc : {tile}
    loop.store %v, %tile[%t] : f16, {tile}
    loop.barrier
    %low = arith.cmpi slt, %t, %c8 : index
    %a = loop.load %tile[%t] : {tile} -> f16
    %b = loop.load %x[%c0] : {X} -> f16
    %q = arith.select %low, %a, %b : f16
    loop.store %q, %y[%t] : f16, {Y}"""
    x, y = np.arange(64).astype(np.float16), fresh(dtype=np.float16)
    run(int_kernel(body, "f16"), x, y, checked=checked)
    np.testing.assert_array_equal(y, np.where(np.arange(64) < 8, x, x[0]))


def test_shuffles_take_five_bits_of_the_lane() -> None:
    body = """%minus = arith.subi %c0, %c1 : index
    %v = loop.load %x[%t] : X -> f32
    %other = loop.shuffle %v, %minus {kind = "xor"} : f32
    loop.store %other, %y[%t] : f32, Y""".replace("X", X).replace("Y", Y)
    x, y = values(), fresh()
    run(kernel(body), x, y)
    np.testing.assert_array_equal(y, x.reshape(2, 32)[:, ::-1].reshape(-1))


@pytest.mark.parametrize("checked", [True, False])
def test_blocks_and_grids_of_three_dimensions(checked: bool) -> None:
    """Each thread writes its number at its number: x fastest, blocks last."""
    text = """loop.kernel @k(%y: !loop.buffer<i64, global>) attributes {block = [4, 2, 3],
      grid = #stepwell.dims<[2, 3, 2]>, target = "cuda"} {
    %tx = loop.id {which = "thread_x"}
    %ty = loop.id {which = "thread_y"}
    %tz = loop.id {which = "thread_z"}
    %bx = loop.id {which = "block_x"}
    %by = loop.id {which = "block_y"}
    %bz = loop.id {which = "block_z"}
    %dx = loop.id {which = "block_dim_x"}
    %dy = loop.id {which = "block_dim_y"}
    %dz = loop.id {which = "block_dim_z"}
    %gx = loop.id {which = "grid_dim_x"}
    %gy = loop.id {which = "grid_dim_y"}
    %a = arith.muli %bz, %gy : index
    %b = arith.addi %a, %by : index
    %c = arith.muli %b, %gx : index
    %d = arith.addi %c, %bx : index
    %e = arith.muli %d, %dz : index
    %f = arith.addi %e, %tz : index
    %g = arith.muli %f, %dy : index
    %h = arith.addi %g, %ty : index
    %i = arith.muli %h, %dx : index
    %at = arith.addi %i, %tx : index
    %v = arith.index_cast %at : index to i64
    loop.store %v, %y[%at] : i64, !loop.buffer<i64, global>
  }"""
    module = parse_module(text)
    verify(module)
    made = next(op for op in module.walk() if isinstance(op, loop.Kernel))
    y = fresh(288, np.int64)
    emulate.build_kernels([made], checked=checked)["k"]([Address.of(y)], [], (2, 3, 2))
    np.testing.assert_array_equal(y, np.arange(288))
