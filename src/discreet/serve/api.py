"""The HTTP API: one table of operations, from which routes and the OpenAPI document are made."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from discreet import __version__
from discreet.inference.summary import shown_effects
from discreet.json_schemas import Json
from discreet.serve.jobs import Job
from discreet.serve.settings import Forbidden, NotFound, ServiceError
from discreet.serve.specification import ScoreSpecification, Specification
from discreet.serve.store import shown_time
from discreet.serve.web import Call, Gate, Handler, Problem, bearer

_SETTINGS = {
    "type": "object",
    "required": ["epsilon"],
    "properties": {
        "model": {"type": "string", "default": "auto"},
        "epsilon": {"type": "number", "exclusiveMinimum": 0},
        "delta": {"type": ["number", "null"]},
        "solver": {"type": "string", "default": "auto"},
        "alpha": {"type": "number"},
        "inference": {"type": ["string", "null"], "description": "sandwich: standard errors and intervals"},
        "checks": {"type": "boolean", "default": True},
    },
    "description": "Plain parameters of the model, as `discreet fit` takes them.",
}
_SCORE = {
    "type": "object",
    "required": ["job", "epsilon"],
    "properties": {
        "job": {"type": "string", "description": "A fit of yours that is done."},
        "epsilon": {"type": "number", "exclusiveMinimum": 0},
        "delta": {"type": ["number", "null"]},
        "metric": {"type": "string", "default": "auto"},
        "level": {"type": "number", "default": 0.95},
    },
}
_ASKED = {"type": "object", "required": ["settings"], "properties": {"settings": _SETTINGS}}
_SUBMITTED = {
    **_ASKED,
    "properties": {
        "settings": {"anyOf": [_SETTINGS, _SCORE]},
        "kind": {"enum": ["fit", "score"], "default": "fit"},
        "charge_id": {
            "type": "string",
            "description": "A name of yours: sent again, it is the same job, charged once.",
        },
    },
}


def _list_datasets(call: Call) -> Response:
    names = [dataset.name for dataset in call.service.visible(call.person)]
    return JSONResponse({"datasets": [call.service.described(call.person, name) for name in names]})


def _describe(call: Call) -> Response:
    return JSONResponse(call.service.described(call.person, call.path["dataset"]))


def _asked(call: Call, *more: str) -> tuple[str, Specification, Json]:
    body, name = call.json, call.path["dataset"]
    unknown = sorted(set(body) - {"settings", *more})
    if unknown or "settings" not in body:
        raise ServiceError(f"the body has settings{' and perhaps charge_id' if more else ''}, and nothing else")
    schema = call.service.dataset(call.person, name).schema
    return name, Specification.of(body["settings"], schema), body


def _quote(call: Call) -> Response:
    name, specification, _ = _asked(call)
    quote = call.service.quote(call.person, name, specification)
    return JSONResponse({**quote, "explanation": call.service.explanation(call.person, name, specification)})


def _forecast(call: Call) -> Response:
    name, specification, _ = _asked(call)
    return JSONResponse(call.service.forecast(call.person, name, specification))


def _submit(call: Call) -> Response:
    if call.json.get("kind", "fit") == "score":
        return _submit_score(call)
    name, specification, body = _asked(call, "charge_id", "kind")
    if body.get("kind", "fit") != "fit":
        raise ServiceError("the kind of a job is fit or score")
    job, new = call.service.submit(call.person, name, specification, body.get("charge_id"))
    return JSONResponse(job_dict(job), 202 if new else 200, {"Location": f"/api/jobs/{job.id}"})


def _submit_score(call: Call) -> Response:
    body = call.json
    if set(body) - {"kind", "settings", "charge_id"}:
        raise ServiceError("the body has kind, settings and perhaps charge_id, and nothing else")
    specification = ScoreSpecification.of(body.get("settings"))
    job, new = call.service.submit_score(call.person, call.path["dataset"], specification, body.get("charge_id"))
    return JSONResponse(job_dict(job), 202 if new else 200, {"Location": f"/api/jobs/{job.id}"})


def _list_jobs(call: Call) -> Response:
    return JSONResponse({"jobs": [job_dict(job) for job in call.service.listed(call.person)]})


def _job(call: Call) -> Response:
    return JSONResponse(job_dict(call.service.job(call.person, call.path["job"])))


def _file(call: Call) -> Response:
    content = call.service.result(call.person, call.path["job"], call.path["file"])
    return Response(content, media_type="application/octet-stream")


def _summary(call: Call) -> Response:
    model = call.service.model(call.person, call.path["job"])
    effects = shown_effects(model)
    shown: Json = {"certificate": model.certificate_.summary(), "coefficients": None, "effects": None}
    if effects is None or isinstance(effects, str):
        shown |= {"coefficients": [vars(coefficient) for coefficient in model.coefficients()], "no_effects": effects}
    else:  # one number per effect, and none for those that noise hides
        shown["effects"] = effects.to_dict()
    return JSONResponse(shown)


def _report(call: Call) -> Response:
    page = call.service.report(call.person, call.path["job"])
    return Response(page, media_type="application/octet-stream")


def _decide(call: Call) -> Response:
    decision = call.path["decision"]
    if decision not in ("approve", "decline"):
        raise NotFound("a decision is approve or decline")
    return JSONResponse(job_dict(call.service.decide(call.person, call.path["job"], approved=decision == "approve")))


def _history(call: Call) -> Response:
    return JSONResponse({"entries": call.service.history(call.person, call.query.get("dataset"))})


def _verify(call: Call) -> Response:
    return JSONResponse(call.service.verify(call.person))


def _audit(call: Call) -> Response:
    if not call.person.reads_all:
        raise Forbidden("owners and auditors read the audit log")
    return JSONResponse({"lines": [vars(line) for line in call.service.store.lines(500)]})


def _people(call: Call) -> Response:
    if not call.person.is_owner:
        raise Forbidden("the owner sees who has tokens")
    return JSONResponse({"tokens": [token.to_dict() for token in call.service.accounts.tokens()]})


def _revoke(call: Call) -> Response:
    if not call.person.is_owner:
        raise Forbidden("the owner revokes tokens")
    call.service.accounts.revoke(call.path["handle"], call.person.name)
    return Response(status_code=204)


@dataclass(frozen=True)
class Operation:
    """One thing that can be asked: its address, what it does, who may ask, and the body."""

    method: str
    path: str
    handler: Handler
    summary: str
    roles: str
    body: Json | None = None


_ALL, _OVER = "owner, analyst, auditor", "owner, auditor"
OPERATIONS = (
    Operation("GET", "/api/datasets", _list_datasets, "List data sets with schemas and budgets", _ALL),
    Operation("GET", "/api/datasets/{dataset}", _describe, "Describe a data set: public facts only", _ALL),
    Operation("POST", "/api/datasets/{dataset}/quote", _quote, "Price a fit. Free: no record is read", _ALL, _ASKED),
    Operation(
        "POST", "/api/datasets/{dataset}/forecast", _forecast, "Simulate what privacy will cost. Free", _ALL, _ASKED
    ),
    Operation(
        "POST", "/api/datasets/{dataset}/jobs", _submit, "Submit a fit or a private score", "analyst", _SUBMITTED
    ),
    Operation("GET", "/api/jobs", _list_jobs, "List your jobs", _ALL),
    Operation("GET", "/api/jobs/{job}", _job, "Look at a job: queued, running, done, refused, failed", _ALL),
    Operation("GET", "/api/jobs/{job}/files/{file}", _file, "Fetch a file of the result's folder", _ALL),
    Operation(
        "GET",
        "/api/jobs/{job}/summary",
        _summary,
        "Read the certificate, and coefficients or effects",
        "owner, analyst",
    ),
    Operation("GET", "/api/jobs/{job}/report", _report, "Fetch the report", "owner, analyst"),
    Operation("POST", "/api/jobs/{job}/{decision}", _decide, "Approve or decline a job that waits", "owner"),
    Operation("GET", "/api/history", _history, "Read entries of the ledger", _ALL),
    Operation("GET", "/api/verify", _verify, "Verify ledger, audit log and certificates", _OVER),
    Operation("GET", "/api/audit", _audit, "Read the audit log", _OVER),
    Operation("GET", "/api/tokens", _people, "List tokens, without secrets", "owner"),
    Operation("POST", "/api/tokens/{handle}/revoke", _revoke, "Revoke a token at once", "owner"),
)


def job_dict(job: Job) -> Json:
    """What its analyst may know of a job. Running times are not among it: an outcome is shown on a grid of times."""
    return {
        "id": job.id,
        "charge_id": job.charge_id,
        "name": job.name,
        "dataset": job.dataset,
        "kind": job.kind,
        "state": job.state,
        "reason": job.reason,
        "settings": job.settings,
        "submitted": shown_time(job.made),
    }


def document(title: str) -> Json:
    """Return the OpenAPI document."""
    paths: dict[str, Json] = {}
    for operation in OPERATIONS:
        names = [part[1:-1] for part in operation.path.split("/") if part.startswith("{")]
        word: Json = {
            "summary": operation.summary,
            "description": f"For: {operation.roles}.",
            "parameters": [
                {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names
            ],
            "responses": {"200": {"description": "The answer"}, "default": {"$ref": "#/components/responses/Problem"}},
        }
        if operation.body is not None:
            word["requestBody"] = {"required": True, "content": {"application/json": {"schema": operation.body}}}
        paths.setdefault(operation.path, {})[operation.method.lower()] = word
    problem = {"type": {"type": "string"}, "title": {"type": "string"}, "status": {"type": "integer"}}
    content = {"schema": {"type": "object", "properties": {**problem, "detail": {"type": "string"}}}}
    described = {"description": "Problem details", "content": {"application/problem+json": content}}
    components = {
        "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        "responses": {"Problem": described},
    }
    info = {"title": title, "version": __version__}
    return {"openapi": "3.1.0", "info": info, "security": [{"token": []}], "paths": paths, "components": components}


def routes(gate: Gate) -> list[Route]:
    """Make the routes of the table."""

    def shown(problem: Problem, _: Request) -> Response:
        return problem.response

    identify = bearer(gate)
    return [
        Route(
            operation.path,
            gate.answering(operation.handler, identify, shown, "application/json"),
            methods=[operation.method],
        )
        for operation in OPERATIONS
    ]
