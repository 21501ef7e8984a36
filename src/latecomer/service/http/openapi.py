"""Writes the OpenAPI 3.1 document from the table of operations and the types of the bodies."""

from importlib.metadata import version
from typing import Any

import msgspec

from latecomer.service.http.errors import CODES, ErrorBody
from latecomer.service.http.openapi_rules import constrain
from latecomer.service.http.operations import BANDIT_NAME, NAME, OPERATIONS, PUBLIC, Operation
from latecomer.service.http.settings import Settings

_REF = "#/components/schemas/{name}"
_DESCRIPTIONS = {
    400: "The request breaks a rule; nothing has changed.",
    401: "No key, or not a valid one.",
    403: "The key is for something else.",
    404: "No such bandit, or no such address.",
    405: "Not a method of this address.",
    408: "The body did not arrive in time.",
    409: "The name or the request id is taken by something else.",
    413: "The body is too large.",
    415: "Not a kind of body that is taken here.",
    431: "The head of the request is too large.",
    500: "A fault of the server.",
    503: "The store cannot be written just now; nothing acknowledged is lost.",
}


def write_document(settings: Settings) -> dict[str, Any]:
    """Return the document as plain data, with the limits of these settings."""
    types = [kind for operation in OPERATIONS for kind in (operation.takes, operation.gives) if kind is not None]
    schemas, components = msgspec.json.schema_components([*types, ErrorBody], ref_template=_REF)
    components = msgspec.json.decode(msgspec.json.encode(components))  # a default may be a tuple
    constrain(components, settings)
    found = dict(zip(map(id, [*types, ErrorBody]), schemas, strict=True))
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        described = _operation(operation, found)
        paths.setdefault(operation.path, {})[operation.method.lower()] = described
    for path, item in paths.items():
        if BANDIT_NAME in path:
            item["parameters"] = [{"name": "name", "in": "path", "required": True, "schema": NAME}]
    return {
        "openapi": "3.1.0",
        "info": {"title": "Latecomer", "version": version("latecomer"), "description": _ABOUT},
        "paths": paths,
        "components": {
            "schemas": components,
            "responses": {CODES[status]: _error(status, found[id(ErrorBody)]) for status in CODES},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


_ABOUT = "Decides now and learns from conversions that arrive late, or never. Every answer is durable before it leaves."


def _operation(operation: Operation, found: dict[int, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "responses": {str(status): _success(operation, status, found) for status in operation.statuses}
        | {str(status): {"$ref": f"#/components/responses/{CODES[status]}"} for status in operation.errors()},
    }
    parameters = [
        {"name": name, "in": place, "required": required, "schema": schema, "description": meaning}
        for place, found_there in (("query", operation.query), ("header", operation.headers))
        for name, (required, schema, meaning) in found_there.items()
    ]
    if parameters:
        described["parameters"] = parameters
    if operation.takes is not None:
        content = {"application/json": {"schema": found[id(operation.takes)]}}
        if operation.takes_arrays:
            content["application/x-npy"] = {"schema": {"type": "string", "format": "binary"}}
        described["requestBody"] = {"required": True, "content": content}
    if operation.scope != PUBLIC:  # a server for its own machine alone may have no keys
        described["security"] = [{"key": []}, {}]
        described["description"] = f"Where keys are needed, one with the scope `{operation.scope}`."
    return described


def _success(operation: Operation, status: int, found: dict[int, Any]) -> dict[str, Any]:
    schema = {"type": "string"} if operation.gives is None else found[id(operation.gives)]
    return {"description": operation.summary, "content": {operation.media: {"schema": schema}}}


def _error(status: int, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": _DESCRIPTIONS[status], "content": {"application/json": {"schema": schema}}}
