"""``Schema``: what is publicly known of a table, column by column; its TOML file; its description in words.

Nothing in it is measured.

How a column is stored is public too, and a type that cannot hold what is declared is refused (``check_types``). A
column stored as whole numbers can hold none of the categories "no" and "yes"; every row would be *other*, and the fit
would learn noise. That is known from the container's types alone, before anything is charged. Text may hold anything,
so it fits every declaration, as do columns of Python objects; what their cells hold is counted with noise instead
(``curator/tables/stream.py``).
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from discreet.bounds import Range
from discreet.json_schemas import Json
from discreet.schema.cell_meaning import (
    MAX_COLUMNS,
    MAX_LABELS,
    MISSING_TEXTS,
    SCHEMA_BYTES,
    Label,
    SchemaError,
    are_numbers,
    check_count,
    check_length,
    is_number_text,
    parsed,
    some,
    text_of,
    truth_labels,
)
from discreet.schema.columns import Boolean, Category, ColumnKind, Number, Offset, Ordinal, Target, Weight

if TYPE_CHECKING:
    from discreet.schema.codebooks import Codebook, Entry, Guess


SEPARATORS = (",", ";", "\t", "|", " ", ":")
FIRST = 12
"""Problems that an error names; the others are counted."""
_TOP = (
    "target",
    "weight",
    "offset",
    "person",
    "ignore",
    "rows",
    "missing_texts",
    "separator",
    "columns",
    "interactions",
)


@dataclass(frozen=True)
class Schema:
    """What is publicly known of a table: from a codebook, physics, law or policy, never from the table itself.

    Parameters
    ----------
    columns : dict
        Name -> ``Number``, ``Category``, ``Ordinal`` or ``Boolean``.
    target : Target, default=None
        The column to predict.
    person : str, default=None
        The column that names the person behind a row, where a person may have several rows: a fit then protects
        persons, not rows.
    ignore : tuple of str, default=()
        Columns that are not read.
    interactions : tuple of tuple of str, default=()
        Groups of declared columns whose products become features.
    rows : int, default=None
        The number of rows (of persons), where it is public but must not be counted: under ``add_remove``.
    missing_texts : tuple of str
        Texts that mean that nothing is there.
    separator : str, default=None
        Between the cells of a CSV file; None: inferred from the header.
    undeclared : tuple of str, default=()
        Columns of a draft of which nothing is declared yet.
    open_target : str, default=None
        The target's column in a draft, where neither classes nor range are declared yet.
    weight : Weight, default=None
        The column that says how much each row counts.
    offset : Offset, default=None
        The column that is added to the linear predictor, or an exposure whose logarithm is.

    Examples
    --------
    >>> from discreet import Schema
    >>> from discreet.schema import Number, Target
    >>> schema = Schema({"age": Number((18, 110))}, Target("back", classes=(0, 1)))
    >>> schema.needed
    ('age', 'back')
    """

    columns: Mapping[str, ColumnKind]
    target: Target | None = None
    person: str | None = None
    ignore: tuple[str, ...] = ()
    interactions: tuple[tuple[str, ...], ...] = ()
    rows: int | None = None
    missing_texts: tuple[str, ...] = MISSING_TEXTS
    separator: str | None = None
    undeclared: tuple[str, ...] = field(default=(), repr=False)
    open_target: str | None = field(default=None, repr=False)
    weight: Weight | None = None
    offset: Offset | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.columns, Mapping):
            raise SchemaError("columns must map names to Number, Category, Ordinal or Boolean")
        object.__setattr__(self, "columns", dict(self.columns))
        for name in ("ignore", "missing_texts", "undeclared"):
            object.__setattr__(self, name, _names(getattr(self, name), name))
        if isinstance(self.interactions, str) or not isinstance(self.interactions, Sequence):
            raise SchemaError('interactions is a list of lists of columns: interactions = [["age", "sex"]]')
        object.__setattr__(self, "interactions", tuple(_names(group, "interactions") for group in self.interactions))
        for name, kind in self.columns.items():
            if not (isinstance(name, str) and name) or not isinstance(kind, ColumnKind):
                raise SchemaError("columns must map names to Number, Category, Ordinal or Boolean")
        if self.target is not None and not isinstance(self.target, Target):
            raise SchemaError("target must be a Target, such as Target('income', classes=('low', 'high'))")
        if not isinstance(self.weight, Weight | None) or not isinstance(self.offset, Offset | None):
            raise SchemaError(
                "weight must be a Weight, and offset an Offset, such as Offset('days', (1, 365), log=True)"
            )
        if self.person is not None and not (isinstance(self.person, str) and self.person):
            raise SchemaError('person must name a column, such as person = "patient"')
        if self.open_target is not None and not isinstance(self.open_target, str):
            raise SchemaError("open_target must name a column")
        if self.rows is not None and not (type(self.rows) is int and self.rows > 0):
            raise SchemaError("rows must be a positive whole number")
        if self.separator is not None and not (isinstance(self.separator, str) and self.separator in SEPARATORS):
            raise SchemaError(f"separator must be one of {' '.join(map(repr, SEPARATORS))}")
        self._check_roles()
        self._check_labels()
        for group in self.interactions:
            if len(set(group)) < 2 or len(set(group)) < len(group):
                raise SchemaError("an interaction names at least two different columns")
            strange = [name for name in group if name not in self.columns]
            if strange:
                raise SchemaError(f"an interaction names {some(strange)}, which the schema does not declare")
        if len({frozenset(group) for group in self.interactions}) < len(self.interactions):
            raise SchemaError("an interaction is named twice: columns in another order have the same product")

    def _check_roles(self) -> None:
        """Every column has one role."""
        roles = [*self.columns, *self.ignore, *self.undeclared]
        roles += [name for name in (self.person, self.target and self.target.column, self.open_target) if name]
        roles += self.columns_beside
        check_count(len(roles), MAX_COLUMNS, "columns")
        for name in roles:
            check_length(name, "the name of a column")
        twice = [name for name, count in Counter(roles).items() if count > 1]
        if twice:
            raise SchemaError(
                f"{some(twice)}: a column is a feature, target, person, weight, offset or ignored, not two"
            )

    def _check_labels(self) -> None:
        """A label that means nothing is there would never be found; one that is no text could not be saved."""
        labels = {name: getattr(kind, "categories", getattr(kind, "levels", ())) for name, kind in self.columns.items()}
        if self.target is not None:
            labels[self.target.column] = self.target.classes or ()
        for name, values in labels.items():
            lost = [str(label) for label in values if text_of(label, frozenset(self.missing_texts)) is None]
            if lost:
                raise SchemaError(
                    f"column {name!r}: {some(lost)} is among missing_texts, which mean that nothing is there: list "
                    "your own, such as missing_texts = ['']"
                )
        texts = (
            *labels,
            *self.columns_beside,
            *self.ignore,
            *self.missing_texts,
            *(t for values in labels.values() for t in values),
        )
        if any(isinstance(text, str) and not _is_text(text) for text in texts):
            raise SchemaError("names and labels must be valid Unicode")

    @property
    def private_columns(self) -> tuple[str, ...]:
        """Columns whose ranges are estimated with privacy budget."""
        return tuple(name for name, kind in self.columns.items() if isinstance(kind, Number) and kind.is_private)

    @property
    def columns_beside(self) -> tuple[str, ...]:
        """The columns of weights and offsets, where there are any."""
        return tuple(role.column for role in (self.weight, self.offset) if role is not None)

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns that a fit reads."""
        roles = (self.person, self.target and self.target.column)
        return (*self.columns, *(name for name in roles if name), *self.columns_beside)

    @property
    def predicted_from(self) -> tuple[str, ...]:
        """The columns that a prediction reads: the features', and the offset's."""
        return (*self.columns, *(() if self.offset is None else (self.offset.column,)))

    def with_ranges(self, ranges: Mapping[str, Range]) -> "Schema":
        """Return a copy with estimated ranges in the place of private ones.

        Parameters
        ----------
        ranges : dict
            Column -> (low, high).

        Examples
        --------
        >>> schema.with_ranges({"age": (0, 99)}).columns["age"].range
        (0.0, 99.0)
        """
        columns = dict(self.columns)
        for name, (low, high) in ranges.items():
            kind = columns[name]
            assert isinstance(kind, Number)
            missing = kind.missing if isinstance(kind.missing, str) else min(max(kind.missing, low), high)
            columns[name] = replace(kind, range=(low, high), within=None, missing=missing)
        return replace(self, columns=columns)

    def with_curves(self, knots: int) -> "Schema":
        """Return a copy with a curve for each number of which neither ``term`` nor ``knots`` are declared.

        Parameters
        ----------
        knots : int
            Evenly spaced knots of each, the ends of its range counted.

        Examples
        --------
        >>> schema.with_curves(8).columns["age"].knots
        8
        """
        free = {
            name: replace(kind, knots=knots)
            for name, kind in self.columns.items()
            if isinstance(kind, Number) and kind.term is None and not kind.knots
        }
        return replace(self, columns={**self.columns, **free})

    def problems(self, names: Sequence[str] | None = None) -> list[str]:
        """Return what is missing before a fit, in words; with the names of a table, also what does not match them.

        Parameters
        ----------
        names : sequence of str, default=None
            The columns of the table.

        Returns
        -------
        list of str
            Empty where the schema is ready.

        Examples
        --------
        >>> schema.problems(["age"])
        ['back: not in the table']
        """
        left_out = "nothing is declared: fill in a range, categories, levels or boolean, or list it in ignore"
        problems = []
        if self.target is None and self.open_target is None:
            problems.append("no target: name the column to predict below [target], with its classes or its range")
        elif self.target is None:
            problems.append(
                f"{self.open_target}: it is to be predicted: fill in its classes or its range below [target]"
            )
        problems += [f"{name}: {left_out}" for name in self.undeclared]
        if not self.columns and not self.undeclared:
            problems.append("no columns: declare at least one to predict from")
        if names is None:
            return problems
        counts = Counter(names)
        named = {*self.needed, *self.ignore, *self.undeclared, self.open_target}
        problems += [f"{name}: not in the table" for name in self.needed if name not in counts]
        problems += [f"{name}: twice in the table: rename one" for name in self.needed if counts[name] > 1]
        strange = [name or repr(name) for name in counts if name not in named]
        problems += [f"{name}: in the table, but neither declared nor ignored" for name in strange]
        return problems

    def check(self, names: Sequence[str] | None = None) -> None:
        """Raise a SchemaError that names the first problems; ``problems`` lists all.

        ``names`` are as for ``problems``.

        Examples
        --------
        >>> schema.check(["age", "back"])
        """
        problems = self.problems(names)
        if problems:
            more = f"; and {len(problems) - FIRST:,} more" if len(problems) > FIRST else ""
            raise SchemaError("the schema is not ready: " + "; ".join(problems[:FIRST]) + more)

    @classmethod
    def from_dict(cls, stored: Json) -> "Schema":
        """Make a schema from the contents of a TOML file.

        Raises
        ------
        SchemaError
            If a key is unknown, or a declaration cannot be.

        Examples
        --------
        >>> Schema.from_dict({"columns": {"age": {"range": [18, 110]}}}).columns["age"].range
        (18.0, 110.0)
        """
        unknown = [name for name in stored if name not in _TOP]
        if unknown:
            raise SchemaError(f"{some(unknown)}: not among {', '.join(_TOP)}")
        tables = stored.get("columns", {})
        if not isinstance(tables, Mapping) or not all(isinstance(table, Mapping) for table in tables.values()):
            raise SchemaError("columns are tables of their own: write [columns.age] and below it range = [0, 120]")
        columns = {name: column_of(name, table) for name, table in tables.items() if table}
        plain = ("person", "ignore", "rows", "missing_texts", "separator")
        given = {name: stored[name] for name in plain if name in stored}
        target, open_target = target_of(stored.get("target"))
        elsewhere = {
            target.column if target else open_target,
            *texts([stored.get("person")]),
            *texts(stored.get("ignore")),
        }
        for role, kind in (("weight", Weight), ("offset", Offset)):
            if stored.get(role):
                given[role] = role_of(kind, stored[role], role)
                elsewhere.add(given[role].column)
        undeclared = tuple(name for name, table in tables.items() if not table and name not in elsewhere)
        given |= {"interactions": stored.get("interactions", ()), "undeclared": undeclared}
        return cls(columns, target, open_target=open_target, **given)

    @classmethod
    def from_formula(cls, formula: str, codebook: object, *, weights: str | None = None) -> "Schema":
        """Make a schema of the columns that a formula names, as they are declared in a codebook.

        ``s(age)`` is a curve, ``age`` a line, ``C(ward)`` categories, ``a * b`` both columns and their product, and
        ``offset(log(days))`` an exposure. Nothing is evaluated and no data is read; transforms that would read them are
        refused.

        Parameters
        ----------
        formula : str
            Such as ``"readmitted ~ s(age) * sex + C(ward)"``.
        codebook : Schema, dict, str or Path
            What is declared of the columns: a schema, a dictionary of columns, or the file of a schema or codebook.
        weights : str, default=None
            The column of weights, declared as a number in the codebook. None: the schema's own, if it has one.

        Returns
        -------
        Schema
            The schema; declared columns that the formula leaves out are ignored.

        Raises
        ------
        SchemaError
            If a column is not declared, or a part of the formula is no term of a schema.

        Examples
        --------
        >>> made = Schema.from_formula("back ~ s(age, knots=6)", schema)
        >>> made.columns["age"].knots, made.target.column
        (6, 'back')
        """
        from discreet.schema.formula import from_formula

        return from_formula(formula, codebook, weights)

    @classmethod
    def from_toml(cls, text: str) -> "Schema":
        """Make a schema from TOML.

        Examples
        --------
        >>> Schema.from_toml("[columns.age]\\nrange = [18, 110]").columns["age"].range
        (18.0, 110.0)
        """
        return cls.from_dict(parsed(text))

    @classmethod
    def load(cls, path: str | Path) -> "Schema":
        """Read a schema from a TOML file, with or without the mark that some editors put at the start of UTF-8.

        Raises
        ------
        SchemaError
            If the file is not a schema.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "schema.toml"
        ...     _ = path.write_text(schema.to_toml())
        ...     Schema.load(path) == schema
        True
        """
        with Path(path).open("rb") as file:
            content = file.read(SCHEMA_BYTES + 1)
        if len(content) > SCHEMA_BYTES:
            raise SchemaError(f"the file is too large for a schema: {SCHEMA_BYTES:,} bytes at most")
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise SchemaError("the schema is not a text in UTF-8: save it as UTF-8") from None
        return cls.from_toml(text.replace("\r\n", "\n"))

    def to_toml(self) -> str:
        """Return the schema as TOML, which ``from_toml`` reads back.

        Examples
        --------
        >>> Schema.from_toml(schema.to_toml()) == schema
        True
        """

        return to_toml(self)

    def to_dict(self) -> Json:
        """Return the schema as plain values, as in TOML: what ``from_dict`` reads.

        Examples
        --------
        >>> schema.to_dict()["columns"]
        {'age': {'range': [18.0, 110.0]}}
        """
        tables = {name: table_of(kind) for name, kind in self.columns.items()}
        open_target = {"column": self.open_target} if self.open_target else None
        target = given_fields(self.target) if self.target else open_target
        roles = {"weight": self.weight, "offset": self.offset}
        top: Json = {"target": target, **{role: given_fields(kind) for role, kind in roles.items() if kind is not None}}
        top |= {"person": self.person, "ignore": list(self.ignore), "rows": self.rows}
        top["separator"] = self.separator
        top["interactions"] = [list(group) for group in self.interactions]
        top["columns"] = {**tables, **{name: {} for name in self.undeclared}}
        plain = {name: value for name, value in top.items() if value not in (None, [], {})}
        if self.missing_texts != MISSING_TEXTS:
            plain["missing_texts"] = list(self.missing_texts)
        return plain


def _names(values: Iterable[str], what: str) -> tuple[str, ...]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise SchemaError(f"{what} must be a list of texts")
    names = tuple(values)
    if not all(isinstance(name, str) for name in names):
        raise SchemaError(f"{what} must be a list of texts")
    check_count(len(names), MAX_LABELS, what)
    return names


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


_MARKS: dict[str, type[ColumnKind]] = {"range": Number, "categories": Category, "levels": Ordinal, "boolean": Boolean}


def target_of(stored: object) -> tuple[Target | None, str | None]:
    """Return what is declared of the target; or its name alone, where no more is."""
    if stored is None or stored == {}:
        return None, None
    if not isinstance(stored, Mapping):
        raise SchemaError('the target is a table of its own: write [target] and below it column = "income"')
    name = stored.get("column")
    if len(stored) == 1 and isinstance(name, str) and name:
        return None, name
    return _made(Target, stored, "target"), None


def role_of(kind: type[object], stored: object, role: str) -> Any:
    """Return what is declared of the weight or the offset."""
    if not isinstance(stored, Mapping):
        raise SchemaError(f'the {role} is a table of its own: write [{role}] and below it column = "name"')
    return _made(kind, stored, role)


def texts(values: object) -> list[str]:
    """Return the texts in a list that is not checked yet."""
    return [value for value in values if isinstance(value, str)] if isinstance(values, (list, tuple)) else []


def column_of(name: str, table: Mapping[str, object]) -> ColumnKind:
    """Return the kind of column that a table of the file declares."""
    marks = [mark for mark in _MARKS if mark in table]
    if len(marks) != 1:
        keys = {key for kind in _MARKS.values() for key in _keys(kind)} | {*_MARKS}
        strange = [key for key in table if key not in keys]
        raise SchemaError(
            f"column {name!r}: declare one of {', '.join(_MARKS)}{f' ({some(strange)} is no key)' if strange else ''}"
        )
    settings = dict(table)
    if marks == ["boolean"] and settings.pop("boolean") is not True:
        raise SchemaError(f"column {name!r}: write boolean = true, or declare something else")
    return _made(_MARKS[marks[0]], settings, f"column {name!r}")  # type: ignore[no-any-return]


def _keys(cls: type[Any]) -> list[str]:
    return [item.name for item in fields(cls)]


def _made(cls: type[Any], settings: Mapping[str, object], what: str) -> Any:
    allowed = _keys(cls)
    strange = [name for name in settings if name not in allowed]
    if strange:
        raise SchemaError(f"{what}: {some(strange)} is not among {', '.join(allowed)}")
    try:
        return cls(**settings)
    except SchemaError as error:
        raise SchemaError(f"{what}: {error}") from None
    except TypeError:
        raise SchemaError(f"{what}: something is left out") from None


def table_of(kind: ColumnKind) -> Json:
    """Return a column as a table of the file."""
    if isinstance(kind, Boolean):
        return {"boolean": True, **given_fields(kind)}
    return given_fields(kind)


def given_fields(item: Any) -> Json:
    """Return the fields that differ from their defaults, as plain values."""
    values = {entry.name: (getattr(item, entry.name), entry.default) for entry in fields(item)}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, (value, default) in values.items()
        if value is not None and value != default
    }


_LINES = {
    "range": "# range = [0, 120]              # numbers: the least and the largest that anybody could have",
    "categories": '# categories = ["a", "b"]       # category names; all other values share one category "(other)"',
    "levels": '# levels = ["low", "high"]      # names in their order',
    "boolean": "# boolean = true                # yes and no, true and false, 1 and 0",
}
_COMMENT = 160
"""The most characters of a codebook's note that are written behind a column."""


def skeleton(
    names: Sequence[str],
    target: str | None = None,
    *,
    codebook: "Codebook | None" = None,
    guesses: "Mapping[str, Guess] | None" = None,
) -> str:
    """Return a schema to fill in, from the names of columns; a codebook fills in what it says, guesses are comments."""
    entries = {} if codebook is None else codebook.entries
    aside = "; its block below may stay as it is" if target is None else ""
    column = '# column = "outcome"' if target is None else f"column = {quoted(target)}"
    if target is not None and target in entries:
        column += _target_lines(entries[target])
    missing = None if codebook is None else codebook.missing_texts
    top = "" if missing is None else f"missing_texts = {value_text(missing)}\n"
    blocks = [
        _block(name, entries.get(name), (guesses or {}).get(name)) for name in dict.fromkeys(names) if name != target
    ]
    whole = files("discreet.schema").joinpath("skeleton.toml").read_text(encoding="utf-8")
    return whole.format(aside=aside, column=column, columns="".join(blocks), top=top)


def _block(name: str, entry: "Entry | None", guess: "Guess | None") -> str:
    """Return the block of a column: what the codebook declares, or lines to choose from, the likeliest first."""
    lines = ["", f"[columns.{quoted(name)}]"]
    if entry is not None and entry.note:
        lines.append(f"# {comment(entry.note)}")
    if entry is not None and entry.declared:
        return "\n".join([*lines, *(f"{key} = {value_text(value)}" for key, value in entry.declared.items())]) + "\n"
    if guess is not None and guess.note:
        lines.append(f"# {guess.note}")
    if guess is not None and guess.certain:
        return "\n".join([*lines, *(f"{kind} = true" for kind in guess.kinds)]) + "\n"
    return "\n".join([*lines, *(_LINES[kind] for kind in (_LINES if guess is None else guess.kinds))]) + "\n"


def _target_lines(entry: "Entry") -> str:
    """Return the target's classes or range, where the codebook declares them."""
    for key, word in (("categories", "classes"), ("levels", "classes"), ("range", "range")):
        if key in entry.declared and (key == "range" or len(entry.declared[key]) > 1):
            return f"\n{word} = {value_text(entry.declared[key])}"
    if entry.declared.get("boolean") and {"true", "false"} <= set(entry.declared):
        words = [entry.declared["false"][0], entry.declared["true"][0]]
        return f"\nclasses = {value_text(words)}"
    return ""


def comment(text: str) -> str:
    """Return a text for a comment: one line of visible signs, cut where it is long."""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return line if len(line) <= _COMMENT else f"{line[:_COMMENT]}..."


def to_toml(schema: "Schema") -> str:
    """Return a schema as TOML."""
    stored = schema.to_dict()
    tables = {role: stored.pop(role, None) for role in ("target", "weight", "offset")}
    columns = stored.pop("columns", {})
    lines = [f"{name} = {value_text(value)}" for name, value in stored.items()]
    for name, table in {**tables, **{f"columns.{quoted(name)}": table for name, table in columns.items()}}.items():
        if table is not None:
            lines += ["", f"[{name}]", *(f"{key} = {value_text(value)}" for key, value in table.items())]
    return "\n".join(lines).lstrip("\n") + "\n"


def quoted(text: str) -> str:
    """A TOML basic string: JSON's escapes are among TOML's. Signs that are not seen, or command a terminal, are written
    out, so that the file can be read by eye."""
    return "".join(sign if sign.isprintable() else _written(ord(sign)) for sign in json.dumps(text, ensure_ascii=False))


def _written(sign: int) -> str:
    return f"\\u{sign:04x}" if sign < 0x10000 else f"\\U{sign:08x}"


def value_text(value: object) -> str:
    """Return a plain value as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(value_text, value))}]"
    return repr(value)


def _some(labels: Iterable[Label]) -> str:
    return some(labels, most=30, how=str)


class Said(NamedTuple):
    """A declaration in words."""

    text: str
    missing: str


def describe(kind: ColumnKind) -> Said:
    """Return what was declared of a column, and what stands for a missing value."""
    if isinstance(kind, Number):
        ends = "private, within {:,.12g} to {:,.12g}" if kind.is_private else "{:,.12g} to {:,.12g}"
        per = "" if kind.unit == 1 else f"; effects per {kind.unit:g}"
        per += "" if kind.monotone is None else f"; {kind.monotone}"
        text = f"number, {ends.format(*kind.limits)}{_effect(kind)}{per}"
    elif isinstance(kind, Category):
        against = "" if kind.base is None else f"; against {kind.base}"
        text = f"one of {_some(kind.categories)}{', or another' if kind.other else ''}{against}{_unlisted(kind)}"
    elif isinstance(kind, Ordinal):
        text = f"in order: {_some(kind.levels)}"
    else:
        text = f"true ({_some(kind.true)}) or false ({_some(kind.false)})"
    return Said(text, str(kind.missing))


def _unlisted(kind: Category) -> str:
    """Say what becomes of names that are not listed, where they have no feature of their own."""
    if kind.other:
        return ""
    return "; any other value has no feature" if kind.base is None else f"; any other value counts as {kind.base}"


def _effect(kind: Number) -> str:
    """Say how a number's effect may bend, where that is declared."""
    places = () if isinstance(kind.knots, int) else kind.knots
    at = f" at {_some(f'{knot:g}' for knot in places)}"
    if kind.is_curve:
        return f"; a curve with knots{at}" if places else f"; a curve with {len(kind.scaled_knots)} knots"
    return f"; may bend{at}" if places else "; linear" if kind.term else ""


Stored = Callable[[str], Iterable[pa.DataType]]
"""Maps a column to the types that it is stored as. Tables stay in the curator."""


def misfits(schema: Schema, stored: Stored, columns: Iterable[str] | None = None) -> list[str]:
    """Return which of these columns (all that a fit reads) are stored as a type that cannot hold its labels."""
    roles: dict[str, ColumnKind | Target] = dict(schema.columns)
    if schema.target is not None:
        roles[schema.target.column] = schema.target
    wanted = [name for name in (schema.needed if columns is None else columns) if name in roles]
    problems = (misfit(name, roles[name], kind) for name in wanted for kind in stored(name))
    return [problem for problem in dict.fromkeys(problems) if problem is not None]


def check_types(schema: Schema, stored: Stored, columns: Iterable[str] | None = None) -> None:
    """Raise a SchemaError that names all misfits."""
    if problems := misfits(schema, stored, columns):
        raise SchemaError("the schema does not fit the table: " + "; ".join(problems))


def misfit(name: str, declared: ColumnKind | Target, stored: pa.DataType) -> str | None:
    """Return what is wrong where a column is stored as a type that can hold none of its declared labels."""
    if pa.types.is_dictionary(stored):
        return misfit(name, declared, stored.value_type)
    for labels in _alternatives(declared):
        if not _can_hold(stored, labels):
            return (
                f"{name}: it is stored as {stored}, which holds none of {_listed(labels)}: declare the labels as they "
                "are stored, or convert the column"
            )
    return None


def _alternatives(declared: ColumnKind | Target) -> list[Sequence[Label]]:
    """Return the sets of labels of each of which a column must be able to hold one; none for a number."""
    if isinstance(declared, Number):
        return []
    if isinstance(declared, Boolean):
        return [declared.true, declared.false]
    if isinstance(declared, Target):
        return [] if declared.classes is None else [declared.classes]
    return [getattr(declared, "categories", getattr(declared, "levels", ()))]


def _can_hold(stored: pa.DataType, labels: Sequence[Label]) -> bool:
    if pa.types.is_boolean(stored):
        return any(
            label in (0, 1) if are_numbers(labels) else label in ("true", "false")
            for label in truth_labels(labels) or labels
        )
    if pa.types.is_integer(stored) or pa.types.is_floating(stored) or pa.types.is_decimal(stored):
        return are_numbers(labels) or any(is_number_text(str(label)) for label in labels)
    return True


def _listed(labels: Sequence[Label]) -> str:
    shown = ", ".join(repr(label) for label in labels[:6])
    return shown if len(labels) <= 6 else f"{shown}, ..."
