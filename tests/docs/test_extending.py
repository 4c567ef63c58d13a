"""The code of docs/extending.md runs as it is printed there."""

import re
from pathlib import Path

from stepwell.runtime.driver import main

GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "extending.md").read_text()
OPERATOR, PASS = re.findall(r"```python\n(.*?)```", GUIDE, re.S)
TEXT = """func.func @f<n>(%x: tensor<[n], f32>) -> tensor<[n], f32> {
  %c = nd.constant {value = 2.0} : () -> tensor<[], f32>
  %y = nd.mul %x, %c : (tensor<[n], f32>, tensor<[], f32>) -> tensor<[n], f32>
  func.return %y : tensor<[n], f32>
}
"""


def test_the_pass(tmp_path, capsys):
    (tmp_path / "double.py").write_text(PASS)
    (tmp_path / "f.mlir").write_text(TEXT)
    pipeline = "double-by-adding{factor=2.0},canonicalize"
    status = main(["opt", str(tmp_path / "f.mlir"), "--load", str(tmp_path / "double.py"), "--pipeline", pipeline])
    out = capsys.readouterr().out
    assert status == 0 and "nd.add %x, %x" in out and "nd.mul" not in out and "nd.constant" not in out


def test_the_operator(tmp_path, capsys):
    (tmp_path / "swish.py").write_text(OPERATOR)
    (tmp_path / "f.mlir").write_text(
        "func.func @f<n>(%x: tensor<[n], f32>) -> tensor<[n], f32> {\n"
        "  %y = my.swish %x {beta = 2.0} : (tensor<[n], f32>) -> tensor<[n], f32>\n"
        "  func.return %y : tensor<[n], f32>\n}\n"
    )
    command = ["run", str(tmp_path / "f.mlir"), "--load", str(tmp_path / "swish.py"), "--check", "--target", "cpu"]
    assert main(command) == 0
    assert "agrees" in capsys.readouterr().out
