"""``discreet.remote``: fits on data that somebody else keeps, through a service (``discreet serve``)."""

import ipaddress
import json
import math
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote as in_url
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from discreet.accounting.certificate import Certificate
from discreet.errors import AccountingError, BudgetExceeded, DiscreetError, Unsupported
from discreet.json_schemas import Json
from discreet.models.base import MODELS, DPLinearModel
from discreet.models.persist import FILES
from discreet.models.scores import PrivateScore
from discreet.models.synthetic import sample_rows
from discreet.models.table_model import TableModel
from discreet.schema.schema import Schema

TOKEN = "DISCREET_TOKEN"
"""The variable that holds a token where none is given: a token does not belong on a command line."""
ANSWER_BYTES = 1 << 28
_THEIRS = ("bounds", "classes", "target", "ledger", "dataset", "verbose", "start", "public_moments")


class ServiceRefused(DiscreetError, RuntimeError):
    """The service answered with an error; ``status`` is HTTP's."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


def remote(url: str, *, token: str | None = None) -> "RemoteService":
    """Return a service that fits models on data which stay with their owner.

    Parameters
    ----------
    url : str
        The address of the service, by https; http is for this machine only.
    token : str, default=None
        Your token. None: the variable ``DISCREET_TOKEN``.

    Returns
    -------
    RemoteService
        The service; nothing is sent yet.

    Raises
    ------
    Unsupported
        If the address is not encrypted, or there is no token.

    Examples
    --------
    >>> import discreet
    >>> service = discreet.remote("https://registry.example.org", token="dsc_...")
    >>> service
    RemoteService('https://registry.example.org')
    """
    return RemoteService(url, token or os.environ.get(TOKEN, ""))


class _NoRedirect(HTTPRedirectHandler):
    """A redirection would take the token to another address."""

    def redirect_request(self, *_: object) -> None:
        return None


class RemoteService:
    """A service, as its analysts reach it. The token is neither shown nor pickled."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        if parts.scheme != "https" and not (parts.scheme == "http" and _is_loopback(parts.hostname)):
            raise Unsupported("a service is reached by https://..., so that nobody reads the token on its way")
        if not token:
            raise Unsupported(f"give your token: remote(url, token=...), or set {TOKEN}")
        self._url, self._token, self._opener = url.rstrip("/"), token, build_opener(_NoRedirect)

    def __repr__(self) -> str:
        return f"RemoteService({self._url!r})"

    def __reduce__(self) -> Any:
        raise TypeError("a service holds your token: call discreet.remote again in the other process")

    def datasets(self) -> list[str]:
        """Return the names of the data sets that you have an allocation of."""
        return [dataset["name"] for dataset in self.ask("/api/datasets")["datasets"]]

    def dataset(self, name: str) -> "RemoteDataset":
        """Return a data set by its name."""
        return RemoteDataset(self, self.ask(f"/api/datasets/{in_url(name, safe='')}"))

    def jobs(self) -> list[Json]:
        """Return your jobs, the newest first."""
        jobs: list[Json] = self.ask("/api/jobs")["jobs"]
        return jobs

    def result(self, job: str, *, seconds: float = math.inf, poll: float = 1.0) -> TableModel:
        """Wait for a job, and return its model, whose certificate was verified on arrival."""
        finished = self._finished(job, seconds, poll)
        with tempfile.TemporaryDirectory() as place:
            for name in FILES:
                (Path(place) / name).write_bytes(self._sent("GET", f"/api/jobs/{finished['id']}/files/{name}"))
            model = TableModel.load(place)
        self._verify(model.certificate_, finished)
        return model

    def _finished(self, job: str, seconds: float, poll: float) -> Json:
        end = time.monotonic() + seconds
        while (state := self.ask(f"/api/jobs/{in_url(job, safe='')}"))["state"] in ("waiting", "queued", "running"):
            if time.monotonic() > end:
                raise ServiceRefused(202, f"the job is {state['state']}: ask later for result({job!r})")
            time.sleep(poll)
        if state["state"] != "done":
            raise (
                BudgetExceeded(state["reason"]) if state["state"] == "refused" else ServiceRefused(409, state["reason"])
            )
        return state

    def score(self, job: str, *, seconds: float = math.inf, poll: float = 1.0) -> PrivateScore:
        """Wait for the job of a private score, and return the score, whose certificate was verified on arrival."""
        finished = self._finished(job, seconds, poll)
        stored = json.loads(self._sent("GET", f"/api/jobs/{finished['id']}/files/score.json"))
        score = PrivateScore.from_dict(stored)
        if score.certificate is None:
            raise ServiceRefused(502, "the service sent a score without a certificate")
        self._verify(score.certificate, finished)
        return score

    def save(self, job: str, folder: str | Path) -> Path:
        """Write a finished job's folder, as `discreet fit` writes it, with its report."""
        from discreet.models.persist import REPORT, new_folder, write_folder

        model, page = self.result(job), self._sent("GET", f"/api/jobs/{in_url(job, safe='')}/report").decode()
        with new_folder(Path(folder)) as scratch:
            write_folder(model, scratch, {REPORT: page})
        return Path(folder)

    @staticmethod
    def _verify(certificate: Certificate, job: Json) -> None:
        verified, charged = certificate.verify(), certificate.ledger or {}
        if not verified.is_private or verified.epsilon > float(job["settings"]["epsilon"]) * (1 + 1e-9):
            raise AccountingError("the certificate does not promise what was asked for: do not rely on the result")
        if charged.get("dataset") != job["dataset"]:
            raise AccountingError("the certificate is of another data set: do not rely on the result")

    def ask(self, path: str, body: Mapping[str, object] | None = None) -> Json:
        """Return an answer of the API; ``body`` is sent as JSON."""
        content = self._sent("GET" if body is None else "POST", path, body)
        try:
            answer: Json = json.loads(content)
        except ValueError:
            raise ServiceRefused(502, "this is not a service of discreet's: is the address right?") from None
        return answer

    def _sent(self, method: str, path: str, body: Mapping[str, object] | None = None) -> bytes:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        content = None if body is None else json.dumps(body, allow_nan=False).encode()
        try:
            with self._opener.open(Request(self._url + path, content, headers, method=method), timeout=300) as answer:
                return bytes(answer.read(ANSWER_BYTES))
        except HTTPError as error:
            raise ServiceRefused(error.code, _detail(error)) from None
        except (URLError, OSError):
            raise ServiceRefused(
                503, "the service cannot be reached: is it running, and is the address right?"
            ) from None


class RemoteDataset:
    """A data set of a service: its schema and budget are public to you, its rows are not."""

    def __init__(self, service: RemoteService, facts: Json) -> None:
        self._service, self._facts = service, facts
        self._path = f"/api/datasets/{in_url(facts['name'], safe='')}"
        self.schema = Schema.from_dict(facts["schema"])

    def __repr__(self) -> str:
        return f"RemoteDataset({self._facts['name']!r})"

    @property
    def rows(self) -> int | None:
        """The number of rows (persons), where it is public."""
        rows: int | None = self._facts["rows"]
        return rows

    def budget(self) -> Json:
        """Return what is left of the data set's cap, and of your allocation."""
        budget: Json = self._service.ask(self._path)["budget"]
        return budget

    def sample(self, n: int = 1000, *, seed: int = 0) -> Json:
        """Return made-up rows of the schema, for developing code: nothing of the table is in them."""
        return sample_rows(self.schema, n, seed=seed)

    def quote(self, estimator: DPLinearModel) -> Json:
        """Return what a fit would release and cost. Free."""
        return self._service.ask(f"{self._path}/quote", {"settings": settings_of(estimator, self._facts)})

    def forecast(self, estimator: DPLinearModel) -> Json:
        """Return what privacy will probably cost in accuracy. Free."""
        return self._service.ask(f"{self._path}/forecast", {"settings": settings_of(estimator, self._facts)})

    def submit(self, estimator: DPLinearModel, *, charge_id: str | None = None, checks: bool = True) -> str:
        """Submit a fit, and return its job's id at once."""
        settings = {**settings_of(estimator, self._facts), "checks": checks}
        named = {} if charge_id is None else {"charge_id": charge_id}
        job: str = self._service.ask(f"{self._path}/jobs", {"settings": settings, **named})["id"]
        return job

    def fit(self, estimator: DPLinearModel, *, charge_id: str | None = None, checks: bool = True) -> TableModel:
        """Fit on the service, wait, and return the fitted table model with its verified certificate.

        The same ``charge_id`` again is the same fit, charged once.
        """
        return self._service.result(self.submit(estimator, charge_id=charge_id, checks=checks))

    def score(
        self,
        job: str,
        *,
        epsilon: float,
        metric: str = "auto",
        delta: float | None = None,
        level: float = 0.95,
        charge_id: str | None = None,
    ) -> PrivateScore:
        """Score the model of a fit that is done on the rows of this data set, with noise, at a price of its own.

        Use rows that were not in the fit; if they were, the two prices add up for them.
        """
        settings = {"job": job, "epsilon": epsilon, "metric": metric, "delta": delta, "level": level}
        named = {} if charge_id is None else {"charge_id": charge_id}
        body = {"kind": "score", "settings": settings, **named}
        return self._service.score(self._service.ask(f"{self._path}/jobs", body)["id"])


def settings_of(estimator: DPLinearModel, facts: Mapping[str, object]) -> Json:
    """Return an estimator's plain settings; what would be code, or is the service's to say, is refused."""
    name = next((candidate for candidate in MODELS.names() if MODELS[candidate] is type(estimator)), None)
    if name is None:
        raise Unsupported("a service fits discreet's own estimators, such as DPLogisticRegression(epsilon=0.5)")
    usual, settings = type(estimator)().get_params(deep=False), estimator.get_params(deep=False)
    if settings.pop("neighbors") not in (usual.pop("neighbors"), facts["neighbors"]):
        raise Unsupported(f"the data set is registered for {facts['neighbors']}: leave neighbors out")
    given = {key: value for key, value in settings.items() if key == "epsilon" or value is not usual[key]}
    given = {key: value for key, value in given.items() if key == "epsilon" or value != usual[key]}
    for key, value in given.items():
        if key in _THEIRS:
            raise Unsupported(f"{key} is the service's to say: leave it out of the estimator")
        if not (value is None or isinstance(value, str | bool | int | float)):
            raise Unsupported(f"{key} goes to the service by name, such as 'gd', or as a plain number: objects do not")
    return {"model": name, **given}


def _detail(error: HTTPError) -> str:
    try:
        return str(json.loads(error.read(1 << 16))["detail"])
    except (ValueError, KeyError, TypeError, OSError):
        return f"the service answered {error.code}"


def _is_loopback(host: str | None) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False
