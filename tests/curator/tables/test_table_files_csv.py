"""CSV files as people have them: every oddity has one meaning, and no cell is ever shown."""

import bz2
import gzip
import lzma
import os

import pyarrow as pa
import pytest

from discreet.curator.tables.files import open_table
from discreet.errors import Unsupported
from discreet.models.table_model import TableModel
from discreet.schema.columns import Category, Number, Target
from discreet.schema.schema import Schema
from tests.covering import covering
from tests.curator.tables.shown import SECRET, assert_discreet, watched


@pytest.fixture
def write(tmp_path):
    def written(data, name="t.csv"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    return written


def rows_of(source, columns=None, size=1 << 15):
    """All rows, as tuples of bytes or None; as many as were counted."""
    columns = columns or source.names
    found = []
    for batch in source.batches(columns, size):
        assert batch.rows <= size
        parts = [batch.columns[name].to_pylist() for name in columns]
        assert all(len(part) == batch.rows for part in parts)
        found += zip(*parts, strict=True)
    assert len(found) == source.count()
    return found


def read(path, **given):
    return rows_of(open_table(path, **given))


TWO = [(b"1", b"2"), (b"3", b"4")]


@pytest.mark.parametrize(
    "text",
    [
        *("a,b\n1,2\n3,4\n", "a,b\n1,2\n3,4", "a,b\r\n1,2\r\n3,4\r\n", "a,b\r1,2\r3,4\r", "a,b\r1,2\r3,4"),
        *("\ufeffa,b\n1,2\n3,4\n", "\n\na,b\n1,2\n3,4\n", "\r\na,b\r\n1,2\r\n3,4", "a,b\n\n1,2\n\n\n3,4\n\n\n"),
        *("a;b\n1;2\n3;4\n", "a\tb\n1\t2\n3\t4\n", "a|b\n1|2\n3|4\n", '"a","b"\n"1","2"\n"3","4"\n'),
        *(" a , b \n1,2\n3,4\n", "a,b\n1,2\r\n3,4\n"),
    ],
)
def test_ways_to_write_one_table(write, text):
    source = open_table(write(text))
    assert source.names == ["a", "b"]
    assert rows_of(source) == TWO
    assert rows_of(source, ["b", "a"], 1) == [(b, a) for a, b in TWO]


@pytest.mark.parametrize("header", ['"a" ,"b"', '"a,b', '"a\nb",c'])
def test_quotes_that_do_not_match_in_the_header(write, header):
    with pytest.raises(Unsupported, match="quotes in the header"):
        open_table(write(f"{header}\n1,2\n3,4\n"))


@covering(("at", [0, 1, 2]), ("bad", ["9", "9,9,9", "   ", ",,,,", SECRET]))
def test_ragged_lines_are_rows_of_nothing(write, bad, at):
    lines = ["1,2", "3,4"]
    lines.insert(at, bad)
    assert sorted(read(write("a,b\n" + "\n".join(lines) + "\n")), key=str) == sorted([*TWO, (None, None)], key=str)


@pytest.mark.parametrize("code", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_other_encodings_are_refused(write, code):
    with watched() as found:
        read(write(f"a,b\n{SECRET},2\n".encode(code)))
    assert isinstance(found.error, Unsupported)
    assert "not a text in UTF-8" in str(found.error)
    assert "iconv" in str(found.error)
    assert_discreet(found)


def test_mixed_encodings_cell_by_cell(write):
    rows = [b"\xc3\xa9,1", b"\xe9,2", b"\xff\xfe,3", b"\0,4"]
    path = write(b"a,b\n" + b"\n".join(rows) + b"\n")
    assert [row[0] for row in read(path)] == [b"\xc3\xa9", b"\xe9", b"\xff\xfe", b"\0"]
    schema = Schema({"a": Category(("\u00e9",)), "b": Number((0, 4))}, Target("t", range=(0, 1)))
    from discreet.curator.tables.stream import TableStream

    stream = TableStream(open_table(path), schema, with_target=False)
    features = next(iter(stream.blocks())).features
    assert features[:, 0].tolist() == [1.0, 1.0, 0.0, 0.0]
    latin = open_table(write("h\u00f6he,b\n1,2\n".encode("latin-1")))
    assert latin.names == ["h\u00f6he", "b"]


@covering(("cell", [";;;;;", "\t\t\t", "|||", "\0", "\u00ff\u00fe"]), ("end", ["\n", "\r", "\r\n"]))
def test_cells_do_not_tell_how_a_file_is_read(write, cell, end):
    """Which character separates, and whether it is text at all, is the header's to say."""
    source = open_table(write(end.join(["a,b", f"{cell},2", "3,4"]) + end))
    assert source.names == ["a", "b"]
    assert rows_of(source) == [(cell.encode(), b"2"), (b"3", b"4")]


def test_duplicate_names(write):
    path = write("a,a ,b,y\n1,2,3,0\n")
    schema = {"target": Target("y", classes=(0, 1))}
    with pytest.raises(Unsupported, match="'a' more than once"):
        TableModel(Schema({"a": Number((0, 1))}, **schema)).fit(path)
    assert rows_of(open_table(path), ["b"]) == [(b"3",)]


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        *(("t.csv.gz", gzip.compress), ("t.csv.bz2", bz2.compress), ("t.csv.xz", lzma.compress)),
        *(("t.txt.gz", gzip.compress), ("T.CSV.GZ", gzip.compress), ("T.TSV.XZ", lzma.compress)),
        ("t.csv.zst", lambda data: pa.compress(data, codec="zstd", asbytes=True)),
    ],
)
def test_packed_files(write, name, pack):
    assert read(write(pack(b"a,b\n1,2\n3,4\n"), name)) == TWO
    noise = "\n".join(f"{os.urandom(20).hex()},{SECRET}" for _ in range(5000))
    whole = pack(f"a,b\n{noise}\n".encode())
    torn = whole[:1000] + b"?" * 50 + whole[1050:]  # these zst files have no sums that would tell
    for damaged in (whole[: len(whole) // 2], b"a,b\n" + SECRET.encode(), *([] if name.endswith("zst") else [torn])):
        with watched() as found:
            read(write(damaged, name))
        assert isinstance(found.error, Unsupported)
        assert name in str(found.error)
        assert_discreet(found)


def test_an_unclosed_quote_in_the_header(write):
    """It must not make a column's name of cells."""
    for count in (3, 30000):
        with watched() as found:
            names = open_table(write('"a,b\n' + f"{SECRET},2\n" * count)).names
            assert not any(SECRET in name for name in names)
        assert found.error is None or isinstance(found.error, Unsupported)
        assert_discreet(found)


@pytest.mark.parametrize("at", [0, 1])
def test_a_very_long_line_is_a_row(write, at):
    """How long a cell is must not decide whether a table can be read, nor make its rows vanish."""
    lines = ["1,2", "3,4"]
    lines.insert(at, "x" * (17 << 20) + ",2")
    source = open_table(write("a,b\n" + "\n".join(lines) + "\n"))
    assert source.count() == 3
    assert sum(batch.rows for batch in source.batches(["b"])) == 3


def test_a_quote_that_is_never_closed(write):
    """It takes everything up to the next quote: rows are what the file's quotes say. No cell is shown."""
    with watched() as found:
        source = open_table(write(f'a,b\n1,2\n3,"{SECRET}\n5,6\n'))
        assert source.count() == 2
    assert found.error is None or isinstance(found.error, Unsupported)
    assert_discreet(found)


# --------------------------------------------------------------------------------------------------- several files


def test_files_that_do_not_belong_together(write):
    one, two, three = write("a,b\n1,2\n", "1.csv"), write("a,c\n1,2\n", "2.csv"), write("a,b\n", "3.parquet")
    with pytest.raises(Unsupported, match="different columns"):
        open_table([one, two])
    with pytest.raises(Unsupported, match="all CSV or all Parquet"):
        open_table([one, three])
    with pytest.raises(Unsupported, match="all CSV or all Parquet"):
        open_table(write("a,b\n1,2\n", "t.json"))
    with pytest.raises(Unsupported, match="no such file"):
        open_table(one.parent / "nothing.csv")
    (one.parent / "empty").mkdir()
    with pytest.raises(Unsupported, match="no file"):
        open_table(one.parent / "empty")


@pytest.mark.parametrize("text", ["a,y\n1,0\n2,1\n3,1\n", "a,y\n1,0\n", "a,y", ""])
def test_a_file_that_changes_while_it_is_read(write, text):
    path = write("a,y\n1,0\n2,1\n")
    source = open_table(path)
    assert source.count() == 2
    path.write_text(text)
    with pytest.raises(Unsupported, match=r"changed its size|cannot be read"):
        TableModel(Schema({"a": Number((0, 9))}, Target("y", classes=(0, 1)))).fit(source)


@pytest.mark.parametrize(
    "text",
    [
        f"a,b,y\n{SECRET},{SECRET},0\n1,2,{SECRET}\n",
        f"a,b,y\n{SECRET}\n1,2,0,{SECRET}\n1,2,0\n",
        f'a,b,y\n"{SECRET}\n{SECRET}",2,1\n1,"{SECRET}""",0\n',
        f"a,c,y\n{SECRET},{SECRET},0\n",
        f"a,b,b,y\n{SECRET},1,2,0\n",
        f'a,b,y\n1,"{SECRET}\n3,4,0\n',
        f"a,b,y\n{SECRET}\xff\0,1,{SECRET}\xff\n",
        f"{SECRET}\n",
    ],
)
def test_no_cell_is_shown_by_a_fit(write, text):
    schema = Schema({"a": Number((0, 1)), "b": Category(("x",))}, Target("y", classes=("0", "1")))
    path = write(text)
    with watched() as found:
        model = TableModel(schema)
        model.fit(path)
        model.predict(path)
        found.append(repr(model.estimator_) + repr(vars(model)) + model.certificate_.to_json())
    if found.error is None:
        assert SECRET not in found.pop(0)
    else:
        assert isinstance(found.error, Unsupported)
    assert_discreet(found)
