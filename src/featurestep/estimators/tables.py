"""A table of anyone's data: read, encoded, and fitted by one step and by three other models."""

from __future__ import annotations

import csv
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from ..core.errors import InvalidProblem, install_command
from ..core.types import FloatArray
from ..functions.formula import suggestion
from .models import OneStepClassifier, OneStepRegressor

ENDINGS = (".csv", ".csv.gz", ".tsv", ".parquet")
MAX_CLASSES = 20  # whole numbers with at most so many values count as classes
MAX_CATEGORIES = 20  # of a column; rarer ones are taken together
MAX_DISTINCT_SHARE = 0.5  # of the rows: a column of text with more distinct values is a name
MAX_NUMBER = 1e100  # whose sums of squares are finite
MIN_SHARE_OF_NUMBERS = 0.9  # of a column's values: with so many the others count as missing
FOLDS = 5
ONE_STEP, RANDOM = "one step", "random features"
ALPHAS = np.logspace(-3, 4, 15)
_SEPARATORS = (",", ";", "	", "|")
_DATE = r"\s*(\d{4}[-/.]\d\d?[-/.]\d\d?|\d\d?[-/.]\d\d?[-/.]\d{4})\b.*"
_NAMELESS = "Unnamed: "  # pandas' names of columns without one
_MIN_STANDARD_ERRORS = 2.0  # standard errors of a difference that counts


@dataclass(frozen=True)
class Data:
    """Columns and labels of a file, and what was left out."""

    X: Any  # a DataFrame
    y: Any  # (rows,)
    target: str
    classes: bool
    numbers: tuple[str, ...]  # columns of numbers
    categories: tuple[str, ...]  # columns of categories
    notes: tuple[str, ...]


def read_table(path: str) -> Any:
    """The DataFrame of a CSV or Parquet file, or InvalidProblem."""
    try:
        import pandas
    except ImportError:
        rule = f"needs pandas: {install_command('sklearn')}"
        raise InvalidProblem("FILE", rule, path) from None
    if not path.lower().endswith(ENDINGS):
        raise InvalidProblem("FILE", f"must end in {', '.join(ENDINGS)}", path)
    try:
        if path.lower().endswith(".parquet"):
            return pandas.read_parquet(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pandas.errors.DtypeWarning)
            return _read_text(path)
    except ImportError:
        rule = f"needs a package for .parquet: {install_command('parquet')}"
        raise InvalidProblem("FILE", rule, path) from None
    except OSError as error:
        raise InvalidProblem("FILE", f"cannot be read ({error.strerror or error})", path) from None
    except InvalidProblem:
        raise
    except UnicodeError:
        rule = "must be text in UTF-8: save it with this encoding"
        raise InvalidProblem("FILE", rule, path) from None
    except ValueError as error:  # also pandas' parser errors
        reason = " ".join(str(error).split())[:200]
        raise InvalidProblem("FILE", f"is not a table that pandas reads ({reason})", path) from None


def _read_text(path: str) -> Any:
    """The table of a text file, by the separator that is most frequent in its first line."""
    import pandas

    whole: dict[str, Any] = {"sep": "\1", "header": None, "nrows": 1, "quoting": csv.QUOTE_NONE}
    first = str(pandas.read_csv(path, dtype=str, **whole).iloc[0, 0])
    separator = max(_SEPARATORS, key=first.count)
    _require_different([name.strip() for name in next(csv.reader([first], delimiter=separator))])
    frame = pandas.read_csv(path, sep=separator)
    if separator != "," and any(_has_decimal_commas(each) for _, each in frame.items()):
        frame = pandas.read_csv(path, sep=separator, decimal=",")
    return frame.rename(columns=str.strip)


def _has_decimal_commas(column: Any) -> bool:
    """True if every value is a number such as 1,5 or a whole one."""
    values = column.dropna()
    if values.empty or values.dtype.kind in "biufcmM":
        return False
    return bool(values.astype(str).str.fullmatch(r"\s*[+-]?\d+(,\d+)?\s*").all())


def prepared(frame: Any, target: str, task: str) -> Data:
    """Columns sorted by kind; rows without a label and columns without use are left out."""
    names = [str(name) for name in frame.columns]
    if not all(name.isprintable() for name in names):
        rule = "must be a table of text with the names of its columns in the first line"
        raise InvalidProblem("FILE", rule, "bytes that are no text")
    frame = frame.set_axis(names, axis=1)
    if target not in names:
        shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
        rule = f"must be a column of the file ({shown}){suggestion(target, names)}"
        raise InvalidProblem("--target", rule, target)
    _require_different(names)
    notes = []
    missing = int(frame[target].isna().sum())
    if missing:
        notes.append(f"rows without a value of {target} are left out: {missing}")
    frame = frame[frame[target].notna()]
    if len(frame) < 4 * FOLDS:
        rule = f"must have at least {4 * FOLDS} rows with a value of {target}"
        raise InvalidProblem("FILE", rule, len(frame))
    classes = _are_classes(frame[target], task)
    if classes and task == "auto" and frame[target].dtype.kind in "iu":
        values = f"whole numbers of {frame[target].nunique()} values"
        notes.append(f"{target} is taken as classes, being {values}: see --task regression")
    frame, mended = _with_numbers(frame, target)
    numbers, categories, left_out = _columns(frame.drop(columns=target))
    if not numbers and not categories:
        raise InvalidProblem("FILE", "must have a column to predict from", [*names])
    y = frame[target].astype(str) if classes else frame[target].astype(np.float64)
    labels = y.to_numpy()
    finite = f"must have numbers of size up to {MAX_NUMBER:g}"
    if not classes and not (np.abs(labels) <= MAX_NUMBER).all():
        raise InvalidProblem("--target", finite, float(labels[np.abs(labels).argmax()]))
    X = frame[[*numbers, *categories]].copy()
    for name in numbers:
        X[name] = frame[name].to_numpy(dtype=np.float64, na_value=np.nan)
        if (X[name].abs() > MAX_NUMBER).any():
            raise InvalidProblem("FILE", finite, f"column {name}")
    for name in categories:
        X[name] = frame[name].astype(str).astype(object).where(frame[name].notna(), np.nan)
    columns = tuple(numbers), tuple(categories)
    return Data(X, labels, target, classes, *columns, (*notes, *mended, *left_out))


def _require_different(names: Sequence[str]) -> None:
    """Refuses names of columns that come twice; pandas would number those of a text file."""
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice is not None:
        raise InvalidProblem("FILE", "must have columns of different names", twice)


def _are_classes(y: Any, task: str) -> bool:
    """Whether labels are classes; refuses those that no model can be judged on."""
    from pandas.api.types import is_bool_dtype, is_integer_dtype, is_numeric_dtype

    counts = y.value_counts()
    words = is_bool_dtype(y) or not is_numeric_dtype(y)
    few = is_integer_dtype(y) and len(counts) <= MAX_CLASSES
    if task == "regression" and words:
        raise InvalidProblem("--target", "must have numbers for --task regression", _odd_value(y))
    if len(counts) < 2:
        raise InvalidProblem("--target", "must have at least 2 different values", len(counts))
    classes = task == "classification" or (task == "auto" and (words or few))
    if task == "auto" and words and len(counts) > max(MAX_CATEGORIES, MAX_DISTINCT_SHARE * len(y)):
        rule = f"must be numbers or classes; here it is text with {len(counts)} different values"
        raise InvalidProblem("--target", rule, _odd_value(y))
    if classes and int(counts.min()) < FOLDS:
        rule = f"must have at least {FOLDS} rows of each of its {len(counts)} classes"
        raise InvalidProblem("--target", rule, int(counts.min()))
    return classes


def _odd_value(y: Any) -> Any:
    """The first value that is no number."""
    import pandas

    return y[pandas.to_numeric(y.astype(str), errors="coerce").isna()].iloc[0]


def _with_numbers(frame: Any, target: str) -> tuple[Any, list[str]]:
    """Columns of many values as numbers where almost all of them are, and notes on the others."""
    import pandas

    notes = []
    for name, column in frame.drop(columns=target).items():
        if pandas.api.types.is_numeric_dtype(column) or column.nunique() <= MAX_CATEGORIES:
            continue
        numbers = as_numbers(frame[[name]])[name]
        odd = column[numbers.isna() & column.notna()]
        if len(odd) <= (1.0 - MIN_SHARE_OF_NUMBERS) * int(column.notna().sum()):
            frame = frame.assign(**{name: numbers})
            values = "1 value that is no number" if len(odd) == 1 else f"{len(odd)} that are none"
            notes.append(f"column {name} is read as numbers; missing: {values} ({odd.iloc[0]!r})")
    return frame, notes


def _columns(frame: Any) -> tuple[list[str], list[str], list[str]]:
    """Names of the columns of numbers and of categories, and notes on those left out."""
    from pandas.api.types import is_numeric_dtype

    numbers, categories, notes = [], [], []
    for name, column in frame.items():
        distinct = column.nunique()
        if distinct < 2:
            count = "one value" if distinct else "no values"
            notes.append(f"column {name} is left out: it has {count}")
        elif name.startswith(_NAMELESS) and not np.ptp(column - frame.index):
            notes.append("a column without a name is left out: it numbers the rows")
        elif is_numeric_dtype(column):
            numbers.append(name)
        elif distinct > max(MAX_CATEGORIES, MAX_DISTINCT_SHARE * len(frame)):
            notes.append(f"column {name} is left out: {_kind_of_text(column.dropna(), distinct)}")
        else:
            categories.append(name)
    return numbers, categories, notes


def _kind_of_text(values: Any, distinct: int) -> str:
    """What a column is whose text serves neither as numbers nor as categories."""
    if values.astype(str).str.fullmatch(_DATE).all():
        return "it has dates; columns of numbers, such as the year or the month, would be used"
    return f"text with {distinct} different values, such as {values.iloc[0]!r}"


def encoder(data: Data) -> ColumnTransformer:
    """Numbers by their median where missing, and standardised; categories as 0 and 1."""
    categories = OneHotEncoder(
        max_categories=MAX_CATEGORIES,
        handle_unknown="infrequent_if_exist",
        sparse_output=False,
        feature_name_combiner=category_name,
    )
    numbers = make_pipeline(
        FunctionTransformer(as_numbers, feature_names_out="one-to-one"),
        SimpleImputer(strategy="median", add_indicator=True),
        StandardScaler(),
    )
    parts = [
        ("number", numbers, list(data.numbers)),
        ("category", categories, list(data.categories)),
    ]
    made = ColumnTransformer(parts, verbose_feature_names_out=False)
    return made.set_output(transform="pandas")


def as_numbers(frame: Any) -> Any:
    """Columns as numbers; what is none counts as missing."""
    import pandas

    return frame.apply(pandas.to_numeric, errors="coerce")


def category_name(column: str, value: object) -> str:
    """The name of a category's column of 0 and 1."""
    return f"{column} = {value}"


def models(data: Data, width: int, seed: int) -> Mapping[str, Pipeline]:
    """The pipelines that are compared."""
    kind = OneStepClassifier if data.classes else OneStepRegressor
    trees = HistGradientBoostingClassifier if data.classes else HistGradientBoostingRegressor
    linear = RidgeClassifierCV if data.classes else RidgeCV
    last = {
        ONE_STEP: kind(width=width, random_state=seed),
        RANDOM: kind(width=width, step_size=0.0, random_state=seed),
        "ridge": linear(alphas=ALPHAS),
        "boosted trees": trees(random_state=seed),
    }
    return {name: Pipeline([("encoder", encoder(data)), ("model", m)]) for name, m in last.items()}


@dataclass(frozen=True)
class Scores:
    """Of one model on the folds."""

    errors: FloatArray  # (folds,): share of the labels' variance, or of wrong classes
    seconds: float  # of a fit, in the mean

    @property
    def error(self) -> float:
        """The mean."""
        return float(self.errors.mean())

    @property
    def spread(self) -> float:
        """Its standard error."""
        return float(self.errors.std(ddof=1) / len(self.errors) ** 0.5)


def cross_validate(
    data: Data, given: Mapping[str, Pipeline], seed: int, told: Callable[[float], None]
) -> dict[str, Scores]:
    """Errors on held-out fifths and seconds of a fit, for every model on the same folds."""
    kind = StratifiedKFold if data.classes else KFold
    folds = list(kind(FOLDS, shuffle=True, random_state=seed).split(data.X, data.y))
    found = {}
    for index, (name, model) in enumerate(given.items()):
        errors, seconds = [], 0.0
        for fold, (kept, held) in enumerate(folds):
            started = time.perf_counter()
            model.fit(data.X.iloc[kept], data.y[kept])
            seconds += time.perf_counter() - started
            guess = model.predict(data.X.iloc[held])
            errors.append(error_of(data, guess, data.y[held]))
            told((index * FOLDS + fold + 1) / (len(given) * FOLDS))
        found[name] = Scores(np.array(errors), seconds / FOLDS)
    return found


def error_of(data: Data, guess: Any, labels: Any) -> float:
    """The share of wrong classes, or of the labels' variance (over all rows) that is missed."""
    if data.classes:
        return float(np.mean(guess != labels))
    return float(np.mean((guess - labels) ** 2) / np.var(data.y))


def error_of_a_constant(data: Data) -> float:
    """The error of the mean, or of the most frequent class, on the rows themselves."""
    if not data.classes:
        return 1.0
    return 1.0 - float(np.unique(data.y, return_counts=True)[1].max()) / len(data.y)


def verdict(scores: Mapping[str, Scores], constant: float = np.inf) -> str:
    """Whether the step was worth it, by the paired differences over the folds.

    constant: error of a constant prediction, which a model should be below.
    """
    step, random = scores[ONE_STEP], scores[RANDOM]
    gain = random.errors - step.errors
    error = float(gain.std(ddof=1) / len(gain) ** 0.5)
    both = f"{step.error:.3g} with it, {random.error:.3g} without"
    if gain.mean() > _MIN_STANDARD_ERRORS * error:
        text = f"The step was worth it: the error is {both}"
    elif gain.mean() < -_MIN_STANDARD_ERRORS * error:
        text = f"The step did harm: the error is {both}"
    else:
        text = f"The step made no clear difference: the error is {both}"
    best = min(scores, key=lambda name: scores[name].error)
    if scores[best].error >= constant:
        return f"No model does better than a constant, whose error is {constant:.3g}."
    if best == ONE_STEP and np.array_equal(step.errors, random.errors):
        chosen = "cross-validation chose a step of size 0, so that both are the same network"
        return f"{text} ({chosen}). They have the smallest error of the {len(scores)} models."
    if best == ONE_STEP:
        return f"{text}. One step has the smallest error of the {len(scores)} models."
    but = ", but the" if text.startswith("The step was worth") else ". The"
    return f"{text}{but} smallest error is that of {best}, {scores[best].error:.3g}."
