"""What estimators and table models have in common on the way out to other tools."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from sklearn.utils.validation import check_is_fitted

from discreet.atomic_files import passing
from discreet.parameters import checked

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline


class Exported:
    """Ways out to other tools. They hold released and public values only, and cost nothing."""

    def to_sklearn(self) -> "Pipeline":
        """Return a plain, fitted scikit-learn pipeline that predicts the same numbers, to deploy without discreet.

        Features are clipped to their declared ranges, as here. The pipeline of an estimator takes arrays and data
        frames, not sparse matrices. That of a ``TableModel`` takes a pandas data frame with the declared columns, and
        treats missing, unknown and out-of-range cells as the schema says; labels are compared as texts.

        Returns
        -------
        Pipeline
            Its last step, ``model``, is scikit-learn's own linear model.

        Raises
        ------
        Unsupported
            If predictions have a link that scikit-learn does not have.

        Examples
        --------
        >>> type(model.to_sklearn()[-1]).__module__.split(".")[0]
        'sklearn'
        """
        check_is_fitted(self)
        if hasattr(self, "schema_"):
            from discreet.models.export.sklearn_tables import table_pipeline

            return table_pipeline(self)  # type: ignore[arg-type]
        from discreet.models.export.sklearn_arrays import array_pipeline

        return array_pipeline(self)  # type: ignore[arg-type]

    @checked
    def to_onnx(self, path: str | Path) -> Path:
        """Write the model as an ONNX graph in single precision, with the certificate's digest in its metadata.

        An estimator's graph takes one matrix, ``X``. A table model's takes one input of shape (n, 1) per column: a
        number, or a text without blanks around it, empty where nothing is there. Needs ``discreet[onnx]``.

        Parameters
        ----------
        path : str or Path
            The file; it is written whole or not at all.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        Unsupported
            If predictions have a link of their own.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.to_onnx(f"{folder}/model.onnx").suffix
        '.onnx'
        """
        from discreet.models.export.onnx_graph import onnx_model

        check_is_fitted(self)
        content = onnx_model(self).SerializeToString(deterministic=True)
        with passing(Path(path)) as made:
            made.write_bytes(content)
            os.replace(made, path)
        return Path(path)
