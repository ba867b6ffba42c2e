"""Files that were made to break a reader: every command refuses them in one line, in bounded time and memory."""

import gzip
import io
import json
import shutil
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from discreet.schema.cell_meaning import MAX_COLUMNS, MAX_LABELS, NAME_LENGTH, SCHEMA_BYTES
from tests.cli.tables import SCHEMA, write_table
from tests.covering import covering

SECONDS = 30
"""For one command, on a machine that is busy; most take well under one."""
Content = str | bytes | Callable[[], str | bytes]
"""What takes long to make is made by the test that needs it."""
TARGET = '[target]\ncolumn = "label"\nclasses = ["low", "high"]\n'


def columns(count: int, body: str = "boolean = true") -> str:
    return TARGET + "".join(f"[columns.c{i}]\n{body}\n" for i in range(count))


def crossed(count: int, width: int) -> str:
    names = ", ".join(f'"c{i}"' for i in range(count))
    kind = f"categories = [{', '.join(map(str, range(width)))}]"
    return f"interactions = [[{names}]]\n" + columns(count, kind)


SCHEMAS: dict[str, Content] = {
    "digits": "rows = " + "9" * 5000,
    "digits after a point": "rows = 0." + "9" * 100_000,
    "a large exponent": "rows = 1e999999999",
    "hexadecimal digits": "rows = 0x" + "f" * 100_000,
    "digits in a list": TARGET + f"[columns.a]\nrange = [0, {'9' * 5000}]",
    "nested lists": "ignore = " + "[" * 2000 + "]" * 2000,
    "nested tables": "a = " + "{a = " * 2000 + "1" + "}" * 2000,
    "nested and not closed": "ignore = " + "[" * 100_000,
    "a dotted key": ".".join(["a"] * 20_000) + " = 1",
    "a dotted key with quotes": '."a" . '.join(["b"] * 20_000) + " = 1",
    "a dotted table": f"[{'.'.join(['a'] * 20_000)}]",
    "dotted keys within": "[columns]\n" + "a.b.c.d.e.f.g.h.i.j.k = 1\n",
    "tables of tables": lambda: "[[columns.a]]\n" * 200_000,
    "many columns": lambda: columns(100_000),
    "more columns than there may be": lambda: columns(MAX_COLUMNS + 1),
    "many keys": lambda: "".join(f"k{i} = 1\n" for i in range(300_000)),
    "a million categories": lambda: TARGET + f"[columns.c]\ncategories = [{','.join(map(str, range(1_000_000)))}]",
    "more categories than there may be": lambda: TARGET + f"[columns.c]\ncategories = {list(range(MAX_LABELS + 1))}",
    "many levels": lambda: TARGET + f"[columns.c]\nlevels = {[f'l{i}' for i in range(MAX_LABELS + 1)]}",
    "many classes": lambda: f'[target]\ncolumn = "a"\nclasses = {[f"l{i}" for i in range(MAX_LABELS + 1)]}',
    "many knots": lambda: TARGET + f"[columns.c]\nrange = [-1, 9999999]\nknots = {list(range(MAX_LABELS + 1))}",
    "many ignored": lambda: f"ignore = {[f'c{i}' for i in range(MAX_LABELS + 1)]}",
    "many products": lambda: crossed(6, 10),
    "products without end": lambda: crossed(200, 30),
    "a long name": TARGET + f"[columns.{'c' * 1_000_000}]\nboolean = true",
    "a name that is just too long": TARGET + f"[columns.{'c' * (NAME_LENGTH + 1)}]\nboolean = true",
    "a long label": TARGET + f'[columns.c]\ncategories = ["{"x" * 1_000_000}"]',
    "a large file": "#" * (SCHEMA_BYTES + 1),
    "quotes": '"' * 1_000_000,
    "apostrophes": "'" * 1_000_000,
    "a text that does not end": 'ignore = """' + "x" * 1_000_000,
    "backslashes": 'ignore = "' + "\\" * 1_000_001,
    "not UTF-8": b"ignore = ['\xff\xfe']",
    "UTF-16": "ignore = []".encode("utf-16"),
    "zeros": bytes(1000),
    "surrogates": 'ignore = ["\\ud800"]',
    "dates": "rows = 1979-05-27T07:32:00Z\nignore = [1979-05-27]",
    "not numbers": TARGET + "[columns.a]\nrange = [nan, inf]",
    "a column that is no table": "columns = 1",
    "columns that are a list": "columns = [1, 2]",
    "everything is a list": "target = []\nperson = []\nignore = [[]]\nrows = []\nmissing_texts = [[]]\nseparator = []",
    "everything is a truth": "target = true\nperson = true\nignore = true\nrows = true\nmissing_texts = true",
    "fields of another kind": TARGET + "[columns.a]\nrange = {a = 1}\nwithin = true\nmissing = [[1]]\nknots = {}",
    "a category of tables": TARGET + "[columns.a]\ncategories = [{a = 1}]",
    "nothing": "",
}
CERTIFICATES: dict[str, str | bytes] = {
    "nothing": "",
    "not UTF-8": b'{"\xff": 1}',
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "zeros": bytes(10_000),
    "brackets": "[" * 200_000,
    "braces": '{"a":' * 100_000,
    "digits": "9" * 100_000,
    "not a number": "NaN",
    "a text": '"\\ud800"',
    "a list": "[]",
    "null": "null",
    "twice the same": '{"a": 1, "a": 2}',
}
EVENTS: dict[str, object] = {
    "of no kind": [{}],
    "of another kind": [{"kind": "none"}],
    "with a kind in a list": [{"kind": []}],
    "with too little": [{"kind": "gaussian"}],
    "without end": [{"kind": "gaussian", "noise_multiplier": 1.0, "count": 10**30}],
    "without noise": [{"kind": "gaussian", "noise_multiplier": 0.0, "count": 1}],
    "with hardly any noise": [{"kind": "gaussian", "noise_multiplier": 1e-300, "count": 1}],
    "within events": [{"kind": "poisson_sampled", "numerator": 1, "event": {"kind": "gaussian"}}],
}
WRONG = (10**400, "CHANGE 1e999", -1, "words", [[]], [1], {"a": []})
FIELDS: dict[str, dict[str, object]] = {f"events {name}": {"events": value} for name, value in EVENTS.items()} | {
    f"{name}: {value!s:.12}": {name: value}
    for name in (
        "epsilon",
        "neighbors",
        "events",
        "accountants",
        "trace",
        "notes",
        "assumed_public",
        "solver",
        "ledger",
    )
    for value in WRONG
}
FIELDS["assumed_public: {'a': []}"] = {"assumed_public": {"n": [], "a": []}}  # a stream may declare an empty list


def parquet(**columns_: object) -> bytes:
    stream = io.BytesIO()
    pyarrow.parquet.write_table(pa.table(columns_), stream)
    return stream.getvalue()


TABLES: dict[str, Content] = {
    "nothing.csv": "",
    "a-million-columns.csv": lambda: ",".join(f"c{i}" for i in range(1_000_000)) + "\n",
    "too-many-columns.csv": lambda: ",".join(f"c{i}" for i in range(MAX_COLUMNS + 1)) + "\n",
    "commas.csv": "," * 2_000_000,
    "quotes.csv": '"' * 2_000_000,
    "one-quote.csv": '"' + "a," * 1_000_000,
    "zeros.csv": bytes(2_000_000),
    "a-long-name.csv": "a" * 2_000_000 + ",label\n",
    "utf-16.csv": "age,label\n1,low\n".encode("utf-16"),
    "not-text.csv": bytes(range(256)) * 100,
    "bomb.csv.gz": lambda: gzip.compress(bytes(100_000_000)),
    "not-gzip.csv.gz": b"age,label\n",
    "not-xz.csv.xz": b"\xfd7zXZ\x00" + bytes(100),
    "not-zstd.csv.zst": b"\x28\xb5\x2f\xfd" + b"\xff" * 100,
    "nothing.parquet": "",
    "not-parquet.parquet": b"PAR1" + bytes(100) + b"PAR1",
    "a-large-footer.parquet": b"PAR1" + b"\xff\xff\xff\x7f" + b"PAR1",
    "wide.parquet": lambda: parquet(**{f"c{i}": [1] for i in range(MAX_COLUMNS + 1)}),
    "lists.parquet": lambda: parquet(
        age=[[1]], income=[{"a": 1}], color=["red"], smoker=[True], label=["low"], name=["x"]
    ),
    "cut.parquet": lambda: parquet(age=[1])[:-9],
}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    from typer.testing import CliRunner

    from discreet.cli.app import app

    folder = tmp_path_factory.mktemp("model")
    write_table(folder / "table.csv", 100)
    (folder / "schema.toml").write_text(SCHEMA)
    words = ["fit", folder / "table.csv", "-s", folder / "schema.toml", "--public", "-o", folder / "model"]
    assert CliRunner().invoke(app, [*map(str, words), "--no-report", "--delta", "1e-5"]).exit_code == 0
    return folder


@pytest.fixture
def bounded(run):
    def invoke(*words):
        start = time.perf_counter()
        result = run(*words)
        assert result.exit_code in (0, 1, 2), result.output[-500:]
        assert "unexpected" not in result.stderr
        assert len(result.stderr) < 2000
        assert time.perf_counter() - start < SECONDS
        return result

    return invoke


def put(path: Path, content: Content) -> Path:
    content = content() if callable(content) else content
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.few(4)
@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas(bounded, model, tmp_path, name):
    file = put(tmp_path / "schema.toml", SCHEMAS[name])
    assert bounded("schema", "check", file).exit_code > 0
    assert bounded("schema", "edit", file, "--column", "nothing").exit_code == 2
    assert bounded("fit", model / "table.csv", "-s", file, "--dry-run").exit_code == 2
    assert bounded("price", "--schema", file, "--rows", 1000).exit_code == 2


@pytest.mark.few(12)
@pytest.mark.parametrize("name", [*CERTIFICATES, *FIELDS])
def test_certificates(bounded, model, tmp_path, name):
    if name in CERTIFICATES:
        content = CERTIFICATES[name]
    else:
        stored = json.loads((model / "model" / "certificate.json").read_text()) | FIELDS[name]
        content = json.dumps(stored).replace('"CHANGE 1e999"', "1e999")
    raw = content.encode() if isinstance(content, str) else content
    page = b'<script type="application/json" id="certificate">' + raw + b"</script>"
    for file in (put(tmp_path / "c.json", raw), put(tmp_path / "c.html", page)):
        bounded("inspect", file)
        bounded("inspect", file, "--json")
        bounded("certificate", "registry", file)
        assert bounded("export", file, "--sklearn", tmp_path / "new.joblib").exit_code == 2
        assert bounded("verify", file).exit_code > 0


ARCHIVES: dict[str, Content] = {
    "nothing": b"",
    "a start": b"PK\x03\x04",
    "a start and zeros": b"PK\x03\x04" + bytes(10_000),
    "a list of parts at the end": b"PK\x03\x04" + bytes(100) + b"PK\x05\x06" + b"\xff" * 18,
    "an empty archive": b"PK\x05\x06" + bytes(18),
}


def archive(parts: dict[str, bytes], kind: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", kind) as file:
        for name, content in parts.items():
            file.writestr(name, content)
    return stream.getvalue()


PARTS = ("header.json", "coef.npy", "intercept.npy", "coef_noise.npy", "intercept_noise.npy")
ARCHIVES |= {
    "a bomb": lambda: archive(dict.fromkeys(PARTS, bytes(1 << 26)), zipfile.ZIP_DEFLATED),
    "empty parts": lambda: archive(dict.fromkeys(PARTS, b"")),
    "brackets": lambda: archive(dict.fromkeys(PARTS, b"[" * 100_000)),
    "many parts": lambda: archive({f"{i}": b"" for i in range(20_000)}),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_saved_models(bounded, tmp_path, name):
    file = put(tmp_path / "model.discreet", ARCHIVES[name])
    assert bounded("inspect", file).exit_code == 2
    assert bounded("export", file, "--sklearn", tmp_path / "new.joblib").exit_code == 2
    assert bounded("certificate", "registry", file).exit_code == 2
    assert bounded("verify", file).exit_code > 0


@covering(
    ("content", [b"", b"\xff\xfe", b"[" * 100_000, b"9" * 100_000, b"{}", b'{"format": 1}']),
    ("member", ["model.discreet", "schema.toml", "certificate.json", "manifest.json", "report.html"]),
)
@pytest.mark.parametrize("summed", [False, True], ids=["as it is", "with its sum"])
def test_folders(bounded, model, tmp_path, member, content, summed):
    import hashlib

    folder = tmp_path / "model"
    shutil.copytree(model / "model", folder)
    put(folder / member, content)
    if summed and member != "manifest.json":
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["sha256"][member] = hashlib.sha256(content).hexdigest()
        (folder / "manifest.json").write_text(json.dumps(manifest))
    refused = not (summed and member == "report.html")
    for words in (
        ("inspect", folder),
        ("verify", folder),
        ("export", folder, "--sklearn", tmp_path / "new.joblib"),
        ("certificate", "registry", folder),
        ("predict", folder, model / "table.csv"),
        ("score", folder, model / "table.csv", "--public-data"),
    ):
        assert (bounded(*words).exit_code > 0) == refused


@pytest.mark.few(5)
@pytest.mark.parametrize("name", TABLES)
def test_tables(bounded, model, tmp_path, name):
    file = put(tmp_path / name, TABLES[name])
    bounded("schema", "new", file, "--out", "-")
    bounded("schema", "check", model / "schema.toml", file)
    assert bounded("fit", file, "-s", model / "schema.toml", "--dry-run").exit_code == 2
    assert bounded("predict", model / "model", file).exit_code == 2
    assert bounded("score", model / "model", file, "--public-data").exit_code == 2


def test_a_device_is_not_read_to_its_end(bounded):
    for command in (
        ("inspect", "/dev/zero"),
        ("verify", "/dev/zero"),
        ("schema", "check", "/dev/zero"),
        ("schema", "edit", "/dev/zero"),
        ("schema", "new", "--codebook", "/dev/zero", "--out", "-"),
        ("export", "/dev/zero", "--onnx", "new.onnx"),
        ("certificate", "registry", "/dev/zero"),
    ):
        assert bounded(*command).exit_code > 0
