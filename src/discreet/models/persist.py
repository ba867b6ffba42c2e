"""Saved models: one zip file of a JSON header and plain arrays. Reading one runs no code.

    header.json     {"body": ..., "sha256": of the body's canonical JSON}
    coef.npy, intercept.npy
    coef_noise.npy, intercept_noise.npy     where it is known what the noise did
    coef_correlation.npy                    and to coefficients of one curve together
    effects.npy                             covariances of the coefficients, where they were estimated

The body holds the format's version, the estimator's name, its parameters, the certificate, the names of
the features, the declared classes, and the SHA-256 of each array's file. Everything in it is declared or
released; nothing of the records is stored, nor is the ledger's address. The checksums find damage and careless
edits. They are no signature: anyone who may write the file may write another one.

Nothing is allocated on a file's word: parts are not compressed, an array's own header is compared with the one that the
model implies, and the type of the classes is bounded by ``LABEL_BYTES``. So what reading takes is in proportion to the
file's size.

A fitted table model is a folder, made next to its place, then put there in one step:

    model.discreet      the model of the encoded features
    schema.toml         the schema that it was fitted by
    certificate.json    what may be claimed of it
    report.html         for people, where a report was made
    manifest.json       the SHA-256 of each other file

Anyone who reads the folder finds all of it or none. The sums find damage and careless edits; they are no signature.

In MLflow a fitted model is the scikit-learn pipeline, the certificate as an artifact, the claim as parameters.
"""

import hashlib
import io
import json
import math
import os
import re
import secrets
import struct
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from discreet import __version__
from discreet.accounting.certificate import ESTIMATED_RANGES, Certificate
from discreet.atomic_files import passing, sync
from discreet.bounds import Bounds
from discreet.budget import Budget, Neighbors
from discreet.curator import FEATURES, Layout
from discreet.errors import DiscreetError, MissingExtra, Unsupported
from discreet.json_schemas import Json
from discreet.losses.base import LOSSES
from discreet.models.base import MODELS, DPLinearModel
from discreet.models.export import digest_of
from discreet.models.fit import LARGEST_DEFAULT_DELTA, check_solver
from discreet.parameters import Finite, conformed
from discreet.penalties.base import PENALTIES
from discreet.schema.cell_meaning import SchemaError
from discreet.schema.schema import Schema
from discreet.solvers.base import FIGURES, MATRICES, Effects, settings_class
from discreet.typing import Array, Floats

if TYPE_CHECKING:
    from discreet.models.table_model import TableModel


FORMAT = 1
_HEADER = "header.json"
_ARRAYS = ("coef.npy", "intercept.npy")
_NOISE = ("coef_noise.npy", "intercept_noise.npy")
_NOISE_FIELDS = ("coef_noise_", "intercept_noise_")
_CORRELATION, _EFFECTS = "coef_correlation.npy", "effects.npy"
_CONTENTS = (  # what an archive may hold next to its header
    set(_ARRAYS),
    {*_ARRAYS, *_NOISE},
    {*_ARRAYS, *_NOISE, _CORRELATION},
    {*_ARRAYS, _EFFECTS},
)
_REMEDY = "import the module that registers it (command line: DISCREET_PLUGINS), then load again"
LABEL_BYTES = 1 << 24
"""The most memory that the declared classes of a saved model may take, as an array."""
_LABEL_TYPE = re.compile(r"[<>|=]?(?:[biuf](?:1|2|4|8|12|16)|U[0-9]{1,8}|O)", re.ASCII)
_NPY = struct.Struct("<6sBBH")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same model is the same file
_BODY = {
    "format",
    "library_version",
    "model",
    "params",
    "certificate",
    "n_features",
    "feature_names",
    "classes",
    "sha256",
}


class UnreadableModel(DiscreetError, ValueError):
    """A file that is not a saved model, or not the one that was saved."""


def save(model: DPLinearModel, path: str | Path) -> Path:
    """Write a fitted model to ``path``, whole or not at all, and return the path."""
    if MODELS.class_named(type(model).__name__) is not type(model):
        raise Unsupported(f"only registered models can be saved: {', '.join(MODELS.class_names())}")
    check_is_fitted(model)
    arrays = {"coef.npy": _array_bytes(model.coef_), "intercept.npy": _array_bytes(model.intercept_)}
    spread = [getattr(model, name, None) for name in _NOISE_FIELDS]
    if not any(values is None for values in spread):
        arrays |= {name: _array_bytes(values) for name, values in zip(_NOISE, spread, strict=True)}
        correlation = getattr(model, "coef_correlation_", None)
        arrays |= {} if correlation is None else {_CORRELATION: _array_bytes(correlation)}
    effects = getattr(model, "effects_", None)
    if effects is not None:
        arrays[_EFFECTS] = _array_bytes(np.stack([getattr(effects, name) for name in MATRICES]))
    if not _is_finite(model):
        raise Unsupported("the model is not saved, since its coefficients are not all finite: fit it again")
    names = getattr(model, "feature_names_in_", None)
    classes = getattr(model, "classes_", None)
    if classes is not None and classes.nbytes > LABEL_BYTES:
        raise Unsupported(f"the classes take more than {LABEL_BYTES:,} bytes: give them shorter names")
    params = {**model.get_params(deep=False), "ledger": None}  # an address, perhaps with a password
    body = {
        "format": FORMAT,
        "library_version": __version__,
        "model": type(model).__name__,
        "params": {name: _encoded(value) for name, value in sorted(params.items())},
        "certificate": model.certificate_.to_json(),
        "n_features": int(model.n_features_in_),
        "feature_names": None if names is None else [str(name) for name in names],
        "classes": None if classes is None else {"dtype": classes.dtype.str, "labels": _encoded(classes.tolist())},
        "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in arrays.items()},
    }
    if effects is not None:
        body["effects"] = {name: float(getattr(effects, name)) for name in FIGURES}
    header = json.dumps({"body": body, "sha256": _body_sum(body)}, indent=1, sort_keys=True, allow_nan=False)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
        for name, part in {_HEADER: header.encode(), **arrays}.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), part)
    return _write_whole(Path(path), content.getvalue())


def load(path: str | Path) -> DPLinearModel:
    """Read a model that ``save`` wrote: the same predictions, the same certificate, ready to be fitted again.

    Parameters
    ----------
    path : str or Path
        The file.

    Raises
    ------
    UnreadableModel
        If the file is not a saved model, or was damaged.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from discreet import DPRidge, load
    >>> model = DPRidge(epsilon=1.0, bounds=1.0, target=(0, 1)).fit(np.eye(3), np.ones(3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     same = load(model.save(f"{folder}/model.discreet"))
    >>> same.coef_.tolist() == model.coef_.tolist()
    True
    """
    if Path(path).is_dir():
        raise UnreadableModel("this is a folder, not a saved model: TableModel.load reads those of discreet fit")
    content = Path(path).read_bytes()
    try:
        return _model_from(_members(content))
    except UnreadableModel:
        raise
    except (
        DiscreetError,
        LookupError,
        TypeError,
        ValueError,
        ArithmeticError,
        AttributeError,
        RecursionError,
        struct.error,
    ):
        raise UnreadableModel(
            "this is not a saved model that discreet can read: a part of it has the wrong form"
        ) from None


def _members(content: bytes) -> dict[str, bytes]:
    """Return the parts, by name. Anything else in the archive, or a compressed part, is refused unread."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            names = [entry.filename for entry in entries]
            if len(set(names)) < len(names) or _HEADER not in names or {*names} - {_HEADER} not in _CONTENTS:
                raise UnreadableModel(
                    "this is not a saved model: its archive holds other parts than a header and arrays"
                )
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
                raise UnreadableModel("this is not a saved model: its parts are compressed")
            sizes = [entry.file_size for entry in entries]
            if sizes != [entry.compress_size for entry in entries] or sum(sizes) > len(content):
                raise UnreadableModel("this is not a saved model: its parts are said to be larger than the file")
            return {entry.filename: archive.read(entry) for entry in entries}
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, struct.error):
        raise UnreadableModel("this is not a saved model, or it is damaged: save it again") from None


def _model_from(members: Mapping[str, bytes]) -> DPLinearModel:
    body = _checked_body(members)
    cls = MODELS.class_named(body["model"])
    if cls is None:
        raise UnreadableModel(f"the saved model is none of {', '.join(MODELS.class_names())}: {_REMEDY}")
    params = {name: _decoded(value) for name, value in body["params"].items()}
    model = cls(**params)
    if set(params) != set(model.get_params(deep=False)):
        raise UnreadableModel("the saved parameters are not those of its estimator: save it again with this version")
    if type(body["n_features"]) is not int:
        raise UnreadableModel("the saved model is not consistent: its number of features is no whole number")
    model.n_features_in_ = body["n_features"]
    outputs: tuple[int, ...] = ()
    if body["classes"] is not None:
        model.classes_ = _labels(**body["classes"])
        outputs = (cls._n_margins(len(model.classes_)),)
    if body["feature_names"] is not None:
        model.feature_names_in_ = np.array(conformed("feature_names", body["feature_names"], tuple[str, ...]), object)
        if len(model.feature_names_in_) != model.n_features_in_:
            raise UnreadableModel("the saved model is not consistent: it has not as many feature names as features")
    model.coef_ = _array(members["coef.npy"], (*outputs, model.n_features_in_))
    model.intercept_ = _array(members["intercept.npy"], outputs)[()]
    model.coef_noise_ = model.intercept_noise_ = model.coef_correlation_ = None
    if _NOISE[0] in members:
        model.coef_noise_ = _array(members[_NOISE[0]], (*outputs, model.n_features_in_))
        model.intercept_noise_ = _array(members[_NOISE[1]], outputs)[()]
    if _CORRELATION in members:
        length = len(members[_CORRELATION]) - _NPY.size - _NPY.unpack_from(members[_CORRELATION])[-1]
        shape = (model.n_features_in_, length // max(1, 8 * model.n_features_in_))
        model.coef_correlation_ = _array(members[_CORRELATION], shape)
        if not (np.abs(model.coef_correlation_) <= 1).all():
            raise UnreadableModel("the saved model is not consistent: a correlation is beyond 1")
    model.effects_ = None
    if _EFFECTS in members:
        size = (model.n_features_in_ + bool(params["fit_intercept"])) * (max(2, *outputs) - 1 if outputs else 1)
        matrices = _array(members[_EFFECTS], (len(MATRICES), size, size))
        figures = {name: conformed(name, body["effects"][name], Finite) for name in FIGURES}
        model.effects_ = Effects.from_dict({**dict(zip(MATRICES, matrices, strict=True)), **figures})
    _check_declarations(model)  # after the arrays: nothing is allocated for more features than they have
    if not _is_finite(model):
        raise UnreadableModel(
            "the saved model's coefficients, intercepts or noise are not all finite numbers: do not rely on it"
        )
    model.certificate_ = Certificate.from_json(body["certificate"])
    return model


def _check_declarations(model: DPLinearModel) -> None:
    """Refuse parameters that no fit would have taken, or that do not go together with the features and the classes."""
    bounds, loss = model._declared()
    settings = model._fit_settings(bounds, loss)
    Budget(
        settings.epsilon,
        LARGEST_DEFAULT_DELTA if settings.delta is None else settings.delta,
        Neighbors(settings.neighbors),
    )
    check_solver(settings.solver)
    bounds.ranges(model.n_features_in_, getattr(model, "feature_names_in_", None))
    if list(bounds.classes or ()) != getattr(model, "classes_", np.array(())).tolist() or settings.ledger is not None:
        raise UnreadableModel("the saved model is not consistent: its classes are not the ones that were declared")


def _checked_body(members: Mapping[str, bytes]) -> Json:
    header = json.loads(members[_HEADER])
    body: Json = header["body"]
    if set(header) != {"body", "sha256"} or header["sha256"] != _body_sum(body):
        raise UnreadableModel("the saved model's header is not what was written: the file was changed or damaged")
    version = body.get("format")
    if type(version) is not int or version != FORMAT:
        raise UnreadableModel(
            f"the model was saved in another format than {FORMAT}: read it with the version that wrote it"
        )
    conformed("library_version", body.get("library_version"), str)
    arrays = members.keys() - {_HEADER}
    if set(body) != _BODY | ({"effects"} if _EFFECTS in arrays else set()) or set(body["sha256"]) != arrays:
        raise UnreadableModel("this is not a saved model: fields of its header are missing or unknown")
    for name in arrays:
        if hashlib.sha256(members[name]).hexdigest() != body["sha256"][name]:
            raise UnreadableModel("the saved model's arrays are not what was written: the file was changed or damaged")
    return body


def _body_sum(body: object) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _array_bytes(values: object) -> bytes:
    content = io.BytesIO()
    np.lib.format.write_array(content, np.asarray(values, dtype="<f8", order="C"), version=(1, 0), allow_pickle=False)
    return content.getvalue()


def _array(content: bytes, shape: tuple[int, ...]) -> Floats:
    """Float64 of exactly this shape: the array's own header must be the one that ``save`` writes for it.

    It is compared and not parsed: a parser of whatever stands there could be made to run out of memory.
    """
    implied = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape!r}, }}".encode()
    magic, major, minor, length = _NPY.unpack_from(content)
    start = _NPY.size + length
    header = content[_NPY.size : start].rstrip()  # padded, by some versions of numpy more than by others
    if (magic, major, minor, header) != (b"\x93NUMPY", 1, 0, implied) or len(content) - start != 8 * math.prod(shape):
        raise UnreadableModel("the saved model is not consistent: an array has not the shape that its header implies")
    return np.frombuffer(content, dtype="<f8", offset=start).astype(np.float64).reshape(shape)


def _is_finite(model: DPLinearModel) -> bool:
    """Whether a model can predict: NaN and infinities are the mark of a file that was made up, or of a failed fit."""
    names = ("coef_", "intercept_", *_NOISE_FIELDS)
    values = [getattr(model, name, None) for name in names]
    effects = getattr(model, "effects_", None)
    values += [] if effects is None else list(vars(effects).values())
    return all(value is None or bool(np.isfinite(value).all()) for value in values)


def _labels(dtype: str, labels: list[Any]) -> Array:
    if not _LABEL_TYPE.fullmatch(dtype) or type(labels) is not list or len(labels) < 2:
        raise UnreadableModel("the saved model's classes are neither numbers nor texts")
    if len(labels) * np.dtype(dtype).itemsize > LABEL_BYTES:
        raise UnreadableModel(f"the saved model's classes would take more than {LABEL_BYTES:,} bytes of memory")
    return np.array([_decoded(label) for label in labels], dtype=dtype)


def _encoded(value: object) -> Any:
    """Return a parameter as JSON; what JSON does not know is an object with a ``type``."""
    if isinstance(value, np.ndarray):
        value = tuple(value.tolist())
    elif isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Neighbors):
        return str(value)
    if value is None or type(value) in (str, bool, int):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"type": "float", "value": str(value)}
    if type(value) is list:
        return [_encoded(item) for item in value]
    if type(value) is tuple:
        return {"type": "tuple", "items": [_encoded(item) for item in value]}
    if isinstance(value, Mapping):
        return {"type": "dict", "items": [[_encoded(name), _encoded(item)] for name, item in value.items()]}
    name = type(value).__name__
    if _setting_class(name) is type(value):
        return {"type": name, "fields": {key: _encoded(item) for key, item in _fields(value).items()}}
    raise Unsupported(
        f"a parameter of type {name} cannot be saved: use plain numbers, texts, tuples, discreet's own bounds, losses, "
        "penalties and solvers, or register yours"
    )


def _setting_class(name: str) -> type | None:
    """Return the class of this name that a parameter may have: ours, or one that this process has registered."""
    if name == Bounds.__name__:
        return Bounds
    return settings_class(name) or PENALTIES.class_named(name) or LOSSES.class_named(name)


def _fields(value: Any) -> Json:
    if is_dataclass(value):
        return {item.name: getattr(value, item.name) for item in fields(value) if item.init}
    return value._asdict() if value.__getnewargs__() else {}


def _decoded(value: object) -> Any:
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    if not isinstance(value, dict):
        return value
    kind = value["type"]
    if kind == "float":
        return float(value["value"])
    if kind == "tuple":
        return tuple(_decoded(item) for item in value["items"])
    if kind == "dict":
        return {_decoded(name): _decoded(item) for name, item in value["items"]}
    cls = _setting_class(kind)
    if cls is None:
        raise UnreadableModel(f"the saved model has a parameter of a class that is not registered here: {_REMEDY}")
    return cls(**{name: _decoded(item) for name, item in value["fields"].items()})


def _write_whole(path: Path, content: bytes) -> Path:
    """Next to the target first, then in its place: a reader finds the old file or the new one, never a part."""
    with passing(path) as scratch:
        with scratch.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, path)
    sync(path.parent)
    return path


FOLDER_FORMAT = 1
MODEL, SCHEMA, CERTIFICATE = "model.discreet", "schema.toml", "certificate.json"
REPORT, MANIFEST = "report.html", "manifest.json"
FILES: tuple[str, ...] = (MANIFEST, MODEL, SCHEMA, CERTIFICATE)
"""What every folder holds; a report is added where one was made."""
_NEEDED = {MODEL, SCHEMA, CERTIFICATE}


def is_folder(path: Path) -> bool:
    """Return whether this is a folder with a table model in it."""
    return (path / MANIFEST).is_file()


@contextmanager
def new_folder(place: Path) -> Iterator[Path]:
    """A folder to write into, which becomes ``place`` when the block ends, and vanishes where it fails.

    That the place is free and can be written to is found out at once: before anything is charged or read.
    """
    if place.exists() or place.is_symlink():
        raise Unsupported(f"{place}: there is something already: choose another folder, or remove this one")
    place.parent.mkdir(parents=True, exist_ok=True)
    with passing(place, folder=True) as scratch:
        yield scratch
        for path in (*scratch.iterdir(), scratch):
            sync(path)
        try:
            os.rename(scratch, place)
        except OSError:  # somebody made it meanwhile: what was paid for is not thrown away
            spare = place.with_name(f"{place.name}-{secrets.token_hex(4)}")
            os.rename(scratch, spare)
            raise Unsupported(f"{place}: it was made meanwhile by somebody else; the model is in {spare}") from None
        sync(place.parent)


def save_folder(model: "TableModel", place: Path) -> Path:
    """Write the model to a new folder, and return the folder."""
    with new_folder(place) as folder:
        write_folder(model, folder)
    return place


def write_folder(model: "TableModel", folder: Path, extra: Mapping[str, str] | None = None) -> None:
    """All files of a fitted model, and further texts by name, into a folder that is empty."""
    save(model.estimator_, folder / MODEL)
    texts = {SCHEMA: model.schema_.to_toml(), CERTIFICATE: model.certificate_.to_json() + "\n", **(extra or {})}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    sums = {path.name: _sum(path) for path in sorted(folder.iterdir())}
    manifest = {"format": FOLDER_FORMAT, "sha256": sums}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def load_folder(folder: Path) -> "TableModel":
    """Return the model in a folder, its files checked against their sums and against each other."""
    from sklearn.base import clone

    from discreet.models.table_model import TableModel

    check_files(folder)
    estimator = load(folder / MODEL)
    if (estimator.certificate_.to_json() + "\n").encode() != (folder / CERTIFICATE).read_bytes():
        raise UnreadableModel("the folder's certificate is not the model's")
    try:
        schema = Schema.load(folder / SCHEMA)
        unfitted = clone(estimator).set_params(bounds=None)
        model = TableModel(schema, unfitted, terms="linear")  # what was a curve is declared as one
        model.estimator_, model.schema_ = estimator, schema
        features, names = len(model.coefficients()), [feature.name for feature in Layout(schema).features]
    except SchemaError:
        raise UnreadableModel("the folder's schema cannot be read") from None
    except (IndexError, ValueError):
        features, names = -1, []
    public = estimator.certificate_.assumed_public
    if features < 0 or (_declared(public), public.get(FEATURES)) != (schema.to_dict(), names):
        raise UnreadableModel("the folder's schema is not the one that the model was fitted by")
    return model


def check_files(folder: Path) -> None:
    """Raise where a file is missing, unknown, or not what was written."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if manifest.get("format") != FOLDER_FORMAT:
            raise UnreadableModel(
                f"the folder has another format than {FOLDER_FORMAT}: read it with the version that wrote it"
            )
        sums: dict[str, str] = dict(manifest["sha256"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UnreadableModel(f"{folder}: this is not the folder of a model: its {MANIFEST} cannot be read") from None
    names = {path.name for path in folder.iterdir()} - {MANIFEST}
    if not set(sums) >= _NEEDED or names != set(sums) or not all((folder / name).is_file() for name in sums):
        raise UnreadableModel(f"{folder}: files are missing from the model, or were added to it")
    changed = [name for name, expected in sorted(sums.items()) if _sum(folder / name) != expected]
    if changed:
        raise UnreadableModel(f"{folder}: {', '.join(changed)} is not what was written: it was changed or damaged")


def _declared(public: Mapping[str, Any]) -> Any:
    """Return the schema in a certificate, with its estimated ranges, as plain values."""
    stored = public.get("schema", {})
    estimated = {name: (low, high) for name, (low, high) in public.get(ESTIMATED_RANGES, {}).items()}
    schema = Schema.from_dict(stored)
    return (schema.with_ranges(estimated) if schema.private_columns else schema).to_dict()


def _sum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def log_to_mlflow(model: Any, name: str = "model", **settings: Any) -> Any:
    """Log a fitted model to the active MLflow run, as a scikit-learn pipeline that does not need discreet.

    ``certificate.json`` becomes an artifact; epsilon, delta, neighbors, unit and the certificate's digest become tags.
    Nothing is computed from records. Turn ``mlflow.sklearn.autolog`` off: it logs exact training scores of pipelines
    and searches, which no certificate counts. Needs ``discreet[mlflow]``.

    Parameters
    ----------
    model : estimator or TableModel
        Fitted.
    name : str, default="model"
        The name of the logged model.
    **settings : dict
        Further settings of ``mlflow.sklearn.log_model``, such as ``registered_model_name``.

    Returns
    -------
    ModelInfo
        What ``mlflow.sklearn.log_model`` returns.

    Raises
    ------
    MissingExtra
        If MLflow is not installed.

    Examples
    --------
    >>> from discreet.models import log_to_mlflow
    >>> log_to_mlflow(DPRidge())  # doctest: +SKIP
    """
    try:
        import mlflow
        import mlflow.sklearn
    except ImportError:
        raise MissingExtra('logging to MLflow needs mlflow: pip install "discreet[mlflow]"') from None
    check_is_fitted(model)
    certificate = model.certificate_
    claim = {key: getattr(certificate, key) for key in ("epsilon", "delta", "neighbors", "unit")}
    mlflow.set_tags({f"discreet.{key}": str(value) for key, value in claim.items()})
    mlflow.set_tag("discreet.certificate.sha256", digest_of(certificate))
    mlflow.log_text(certificate.to_json() + "\n", "certificate.json")
    settings = {"serialization_format": mlflow.sklearn.SERIALIZATION_FORMAT_CLOUDPICKLE, **settings}
    return mlflow.sklearn.log_model(model.to_sklearn(), name=name, **settings)
