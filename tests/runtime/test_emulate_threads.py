"""The emulator: ballots and atomics, and faults that a first version missed."""


import re

import numpy as np
import pytest
from kernel_texts import (
    ATOMIC,
    BALLOT,
    COPY,
    SHUFFLE,
    TILE,
    X,
    Y,
    fresh,
    int_kernel,
    kernel,
    refused,
    reports,
    run,
    some,
    values,
)

from stepwell.dialects import loop
from stepwell.ir.parser import parse_module
from stepwell.ir.verifier import verify
from stepwell.runtime import emulate
from stepwell.runtime.emulate import Address


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
