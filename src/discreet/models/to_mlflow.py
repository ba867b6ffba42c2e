"""A fitted model in MLflow: the scikit-learn pipeline, the certificate as an artifact, the claim as parameters."""

from typing import Any

from sklearn.utils.validation import check_is_fitted

from discreet.errors import MissingExtra
from discreet.models.to_onnx import digest_of


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
