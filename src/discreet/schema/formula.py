"""A schema from a formula: which of the declared columns are used, and the form of their effects.

    y ~ age              the declared column; a number's effect is linear
    s(age), s(age, 6)    a curve on 8, or so many, evenly spaced knots of the declared range
    C(ward)              a column of categories; C(ward, Treatment("a")) compares with that one
    a + b,  a * b        columns; and their product in addition (of a curve, its line)
    offset(logit)        a column that is added with the coefficient 1; offset(log(days)): its logarithm is
    Q("blood pressure")  a name with blanks, as in `blood pressure`

formulaic's parser makes terms of the text, and nothing of it is evaluated: no column is read. A transform that takes
its knots, means or levels from the data would release them without noise, so it is refused by its name.
"""

import ast
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from discreet.bounds import Range
from discreet.errors import MissingExtra
from discreet.json_schemas import Json
from discreet.schema.cell_meaning import SchemaError, some
from discreet.schema.columns import (
    CURVE,
    LINEAR,
    Boolean,
    Category,
    ColumnKind,
    Number,
    Offset,
    Ordinal,
    Target,
    Weight,
)
from discreet.schema.schema import Schema, column_of

LONGEST, HIGHEST = 10_000, 4
"""Characters of a formula, and its highest power of a sum."""
CURVES = "write s({0}), a curve on the declared range"
DECLARE = "declare the range of {0}: numbers are scaled by it"
COMPUTE = "compute the column in the table, each row by itself, and declare its range"
ADVICE = {
    **dict.fromkeys(("bs", "cr", "cs", "cc", "te", "ti", "poly", "ns"), CURVES),
    **dict.fromkeys(("center", "scale", "standardize", "rescale"), DECLARE),
    **dict.fromkeys(("I", "log", "log2", "log10", "exp", "sqrt", "log1p", "expm1"), f"{COMPUTE}; or {CURVES}"),
    **dict.fromkeys(("lag", "hashed"), COMPUTE),
}
READS_DATA = {*("bs", "cr", "cs", "cc", "te", "ti", "poly", "ns"), *("center", "scale", "standardize", "rescale")}
"""Transforms that take knots, means or deviations from the data."""


def from_formula(formula: str, codebook: object, weights: str | None = None) -> Schema:
    """Return the schema of a formula's columns; see ``Schema.from_formula``."""
    declared = _declared(codebook)
    left, right = _terms(formula)
    if len(left) != 1 or len(left[0]) != 1:
        raise SchemaError("a formula has one target on its left: y ~ age + sex")
    target, changes = _column(left[0][0])
    if changes:
        raise SchemaError(f"the target is a column as it is: write {target} ~ ..., and transform it in the table")
    if [] not in right:
        raise SchemaError(
            "a formula has an intercept: leave out - 1 and + 0 (fit_intercept=False needs ranges about 0)"
        )
    right, offset = _without_offset(right, declared)
    weight = declared.weight if weights is None else Weight(weights, _range_of(weights, declared))
    columns: dict[str, ColumnKind] = {}
    products: list[tuple[str, ...]] = []
    for factors in filter(None, right):
        parts = [_column(factor) for factor in factors]
        if len(parts) > 1:
            products.append(tuple(name for name, _ in parts))
        for name, form in parts:
            kind = _shaped(name, form, declared.columns)
            if columns.setdefault(name, kind) != kind:
                raise SchemaError(f"{name} has two forms in the formula: write it alike everywhere")
    alone = {_column(factors[0])[0] for factors in right if len(factors) == 1}
    lonely = [name for name in columns if name not in alone]
    if lonely:
        raise SchemaError(f"{some(lonely)} is in a product only: write a * b, which has both columns and their product")
    other = [declared.target.column] if declared.target else [declared.open_target] if declared.open_target else []
    unused = dict.fromkeys(
        (*declared.columns, *declared.ignore, *declared.undeclared, *declared.columns_beside, *other)
    )
    used = {*columns, target, *(role.column for role in (weight, offset) if role is not None)}
    aside = tuple(name for name in unused if name not in used)
    schema = replace(
        declared,
        columns=columns,
        target=None,
        interactions=(),
        ignore=aside,
        undeclared=(),
        open_target=None,
        weight=weight,
        offset=offset,
    )
    return replace(schema, target=_target(target, declared), interactions=tuple(products))


def _without_offset(terms: list[list[str]], declared: Schema) -> tuple[list[list[str]], Offset | None]:
    """Return the terms without offset(...), and the offset that it declares; one at most, and alone in its term."""
    offsets = [factors for factors in terms if any(factor.replace(" ", "").startswith("offset(") for factor in factors)]
    if not offsets:
        return terms, None
    if len(offsets) > 1 or len(offsets[0]) > 1:
        raise SchemaError("a formula has one offset, and in no product: y ~ age + offset(log(days))")
    call = ast.parse(offsets[0][0], mode="eval").body
    assert isinstance(call, ast.Call)
    argument = call.args[0] if len(call.args) == 1 and not call.keywords else None
    logarithm = isinstance(argument, ast.Call) and ast.unparse(argument.func).split(".")[-1] == "log"
    if isinstance(argument, ast.Call) and logarithm:
        argument = argument.args[0] if len(argument.args) == 1 else None
    name = argument.id if isinstance(argument, ast.Name) else None if argument is None else _quoted(argument)
    if name is None:
        raise SchemaError("an offset is a column or its logarithm: offset(logit), or offset(log(days))")
    return [factors for factors in terms if factors is not offsets[0]], Offset(
        name, _range_of(name, declared), logarithm
    )


def _range_of(name: str, declared: Schema) -> Range:
    """Return the declared range of a column of weights or offsets."""
    for role in (declared.weight, declared.offset):
        if role is not None and role.column == name:
            return role.range
    kind = declared.columns.get(name)
    if not isinstance(kind, Number) or kind.is_private:
        raise SchemaError(f"{name!r} needs a declared range: it is a number, and its range is not estimated")
    return kind.limits


def _declared(codebook: object) -> Schema:
    """Return what is declared, as a schema: of a schema, a mapping of columns, or a codebook or its file."""
    if isinstance(codebook, Schema):
        return codebook
    if isinstance(codebook, Mapping):
        columns = codebook.items()
        return Schema({name: kind if isinstance(kind, ColumnKind) else column_of(name, kind) for name, kind in columns})
    from discreet.schema.codebooks import Codebook, read_codebook

    if isinstance(codebook, (str, Path)):
        path = Path(codebook)
        if path.suffix.lower() == ".toml":
            return Schema.load(path)
        codebook = read_codebook(path)
    if not isinstance(codebook, Codebook):
        raise SchemaError("a codebook is a Schema, a dictionary of columns, or a file: Schema.load('schema.toml')")
    kinds = {name: column_of(name, entry.declared) for name, entry in codebook.entries.items() if entry.declared}
    return Schema(kinds) if codebook.missing_texts is None else Schema(kinds, missing_texts=codebook.missing_texts)


def _terms(formula: str) -> tuple[list[list[str]], list[list[str]]]:
    """Return the factors of each term, on the left and on the right; of the intercept, none."""
    try:
        from formulaic.errors import FormulaicError
        from formulaic.parser import DefaultFormulaParser
    except ImportError:
        raise MissingExtra('formulas need formulaic: pip install "discreet[formula]"') from None
    if not isinstance(formula, str) or len(formula) > LONGEST:
        raise SchemaError(f"a formula is a text of at most {LONGEST:,} characters, such as 'y ~ s(age) + sex'")
    if any(int(power[-9:]) > HIGHEST for power in re.findall(r"(?:\*\*|\^)\s*(\d+)", formula)):
        raise SchemaError(f"a sum in a formula has a power of at most {HIGHEST}")
    try:
        terms: Any = DefaultFormulaParser().get_terms(formula)
        return _factors(terms.lhs), _factors(terms.rhs)
    except (FormulaicError, AttributeError, RecursionError, ValueError, TypeError, SyntaxError):
        raise SchemaError(
            "this is not a formula that can be read: write a target, ~, and columns: back ~ s(age) * sex + C(ward)"
        ) from None


def _factors(terms: Any) -> list[list[str]]:
    """Return the factors' texts, a column by its name in Q()."""
    lists = []
    for term in terms:
        factors = [factor for factor in term.factors if factor.eval_method.value != "literal"]
        lists.append([f"Q({f.expr!r})" if f.eval_method.value == "lookup" else f.expr for f in factors])
    return lists


def _column(factor: str) -> tuple[str, Json]:
    """Return the column of a factor and what is said of its form, by the factor's text alone."""
    try:
        call = ast.parse(factor, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise SchemaError("a part of the formula cannot be read: write columns, s(age), C(ward) and products") from None
    if not (isinstance(call, ast.Call) and call.args):
        raise SchemaError(f"arithmetic is not part of a formula: {COMPUTE}")
    function = ast.unparse(call.func)
    name = call.args[0]
    if function == "Q" and isinstance(name, ast.Constant) and isinstance(name.value, str):
        return name.value, {}
    inner = name.id if isinstance(name, ast.Name) else _quoted(name)
    if function in ("s", "C") and inner is None:
        raise SchemaError(
            f"write a column in {function}(), with a name of other characters in Q: {function}(Q('my name'))"
        )
    if function not in ("s", "C") or inner is None:
        raise SchemaError(_refusal(function, inner or "the column"))
    given = {str(word.arg): word.value for word in call.keywords}
    if len(call.args) == 2:
        given["knots" if function == "s" else "contrasts"] = call.args[1]
    if function == "s" and len(call.args) < 3 and set(given) <= {"knots"}:
        return inner, {"term": CURVE, **{key: _literal(value) for key, value in given.items()}}
    if function == "C" and len(call.args) < 3 and set(given) <= {"contrasts"}:
        return inner, {"category": True, **({"base": _base(given["contrasts"])} if given else {})}
    raise SchemaError("write s(age), s(age, knots=6), C(ward) or C(ward, Treatment('a'))")


def _quoted(node: ast.expr) -> str | None:
    """Return the name in Q("a name"), None for anything else."""
    quoted = isinstance(node, ast.Call) and ast.unparse(node.func) == "Q" and len(node.args) == 1
    argument = node.args[0] if quoted else None  # type: ignore[attr-defined]
    return argument.value if isinstance(argument, ast.Constant) and isinstance(argument.value, str) else None


def _refusal(function: str, name: str) -> str:
    plain = function.split(".")[-1]
    remedy = ADVICE.get(plain, COMPUTE).format(name)
    reads = " takes what it needs from the data, which would release it without noise"
    why = reads if plain in READS_DATA else " is not part of a schema"
    return f"{function}(){why}: {remedy}"


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise SchemaError("knots are a number or a list of places: s(age, knots=6)") from None


def _base(node: ast.expr) -> Any:
    """Return the base in Treatment("a") or Treatment(reference="a")."""
    if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("Treatment", "treatment"):
        given = [*node.args, *(word.value for word in node.keywords if word.arg in ("reference", "base"))]
        if len(given) == 1 and isinstance(given[0], ast.Constant):
            return given[0].value
    raise SchemaError("categories are compared with a base: C(ward, Treatment('a')); other contrasts are not supported")


def _shaped(name: str, form: Json, columns: Mapping[str, ColumnKind]) -> ColumnKind:
    """Return the declared column with the form of the formula."""
    if name not in columns:
        raise SchemaError(f"{name!r} is not declared: declare its range, categories, levels or boolean")
    kind = columns[name]
    try:
        if "category" in form:
            if isinstance(kind, Boolean) and "base" not in form:
                return kind
            if not isinstance(kind, Category):
                raise SchemaError("C() is for declared categories: declare categories = [...] for it")
            return replace(kind, base=form["base"]) if "base" in form else kind
        if "term" in form:
            if not isinstance(kind, Number):
                raise SchemaError("s() is for numbers: declare a range for it")
            return replace(kind, term=CURVE, knots=form.get("knots", ()))
        if isinstance(kind, Number) and kind.term is None and not kind.knots:
            return replace(kind, term=LINEAR)
        return kind
    except SchemaError as error:
        raise SchemaError(f"column {name!r}: {error}") from None


def _target(name: str, declared: Schema) -> Target:
    """Return the target as it is declared: by the schema's own target, or as a column."""
    if declared.target is not None and declared.target.column == name:
        return declared.target
    kind = declared.columns.get(name)
    if isinstance(kind, Number) and not kind.is_private:
        return Target(name, range=kind.limits)
    if isinstance(kind, Category | Ordinal):
        ordered = isinstance(kind, Ordinal) and len(kind.levels) > 2
        return Target(name, classes=kind.levels if isinstance(kind, Ordinal) else kind.categories, ordered=ordered)
    if isinstance(kind, Boolean):
        return Target(name, classes=(kind.false[0], kind.true[0]))
    raise SchemaError(f"{name!r} is to be predicted and not declared: declare its classes, or its range")
