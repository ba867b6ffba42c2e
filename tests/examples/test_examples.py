import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.whole
@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=pytest.mark.thorough if path.stem == "audit" else (), id=path.stem) for path in EXAMPLES],
)
def test_runs(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path), run_name="__main__")
    shown = capsys.readouterr().out
    assert "Privacy certificate: PRIVATE" in shown
    if path.stem == "persons":
        assert "epsilon = 1 for each person" in shown
    if path.stem == "quickstart":
        assert (tmp_path / "model.discreet").exists()


def test_the_quick_start_is_the_one_of_the_readme():
    block, *_ = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    example = (ROOT / "examples" / "quickstart.py").read_text()
    wanted = [line.strip().split("  #")[0] for line in block.splitlines() if line.strip()]
    present = {line.strip().split("  #")[0] for line in example.splitlines()}
    missing = [line for line in wanted if line not in present and not line.startswith("model.save")]
    assert missing == []
