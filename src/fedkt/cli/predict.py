"""`fedkt predict`: use a final model on new rows."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedkt.cli import options
from fedkt.cli.file_options import FileOptions
from fedkt.cli.fitting import FittingOptions
from fedkt.cli.panels import with_groups
from fedkt.errors import ConfigurationError

if TYPE_CHECKING:
    from fedkt.final_card import FinalCard
    from fedkt.live.final_file import FinalModel
    from fedkt.live.predictions import Predictions


@with_groups
def predict(
    model: Annotated[Path, typer.Argument(help="The final.onnx that the server has written.", metavar="FINAL")],
    rows: Annotated[Path, typer.Argument(help="New rows with the agreed columns.", metavar="ROWS")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The CSV to write. Default: stdout.")] = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Also write how probable each class is: probability_CLASS.")
    ] = False,
    threshold: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CLASS=P",
            help="Predict CLASS where its probability is at least P, e.g. yes=0.3; any number of times.",
        ),
    ] = None,
    server_key: options.ServerKey = None,
    as_json: options.Json = False,
    *,
    file: FileOptions,
    fitting: FittingOptions,
) -> None:
    """Predict new rows: the file's rows in their order, with a column 'prediction' at the end.

    Columns are encoded as the model's file says. Where the label column is there, the accuracy and what is wrong with
    the predictions are told on stderr.

    A class with a threshold is predicted where it is at least that probable; of several, the one that exceeds its
    threshold by the largest ratio. Where none is reached it is the model's own label or, if that is a class below its
    threshold, the likeliest class without one: of two classes the other.

    [bold]Examples[/bold]

      fedkt predict result/final.onnx new.csv -o predictions.csv

      fedkt predict result/final.onnx new.csv --probabilities --threshold yes=0.3 -o predictions.csv

      fedkt predict result/final.onnx new.csv --server-key server.pub --json

      fedkt predict result/final.onnx new.xlsx --sheet May --decimal ,

      fedkt predict result/final.onnx new.csv --rename Age=age --label-map 1=yes,0=no
    """
    from fedkt.cli.output import print_json, stderr
    from fedkt.live.final_file import read_final
    from fedkt.live.predictions import predict_file, to_csv
    from fedkt.system.files import write_atomically

    if output is not None:
        options.check_output(output, model, rows, kind=".csv")
    signer = None if server_key is None else options.public_key(server_key)
    final = read_final(model, server_key=signer)
    if signer is not None:
        stderr.say(f"{model}: signed by {signer}")
    limits = thresholds_of(threshold)
    reading: dict[str, Any] = {"form": file.format(), "choices": fitting.mapping()}
    predictions = predict_file(final, rows, probabilities=probabilities, thresholds=limits, **reading)
    if output is not None:
        write_atomically(output, to_csv(predictions).encode())
    warnings = list(warnings_about(predictions, final, uses_probabilities=probabilities or bool(limits)))
    if as_json:
        answer: dict[str, Any] = {"predictions": predictions.labels}
        if predictions.probabilities is not None:
            answer["probabilities"] = dict(predictions.probabilities)
        if output is not None:
            answer = {"output": str(output)}
        for line in warnings:
            stderr.say(line)
        print_json({**facts_about(predictions, final.card), **answer})
        return
    print_predictions(predictions, output)
    for line in warnings:
        stderr.say(line)


def facts_about(predictions: Predictions, card: FinalCard) -> dict[str, Any]:
    """What is known of the predictions and of the model, as JSON."""
    from fedkt.quality import verdicts

    quality = predictions.quality
    return {
        "rows": len(predictions.labels),
        "accuracy": None if quality is None else quality.accuracy.value,
        "quality": None if quality is None else quality.as_dict(),
        "verdicts": [] if quality is None else verdicts(quality),
        "plan": card.plan,
        "alarms": card.alarms,
        "probability_verdicts_of_the_server": card.probability_verdicts,
        "note": " ".join(predictions.notes) or None,
    }


def warnings_about(predictions: Predictions, final: FinalModel, *, uses_probabilities: bool) -> Iterator[str]:
    """What must not be overlooked, a line each: what the file says of itself, and what these rows say of it.

    Where they say nothing, since they have no labels, and probabilities are used, what the server found about those.
    """
    from fedkt.quality import label_verdicts, probability_verdicts

    path, card, quality = final.model.name, final.card, predictions.quality
    if card.alarms:
        yield f"attention: {path} says of itself: {' '.join(card.alarms)}"
    if quality is not None:
        for found in (label_verdicts(quality), probability_verdicts(quality)):
            if found:
                yield f"attention: {' '.join(found)}"
    elif uses_probabilities and card.probability_verdicts:
        yield f"attention: {path} says of itself, measured by its server: {' '.join(card.probability_verdicts)}"


def print_predictions(predictions: Predictions, output: Path | None) -> None:
    """The rows on stdout unless they went into a file; what is known of them on stderr."""
    from fedkt.cli.output import stderr
    from fedkt.data.values import plural
    from fedkt.live.predictions import to_csv

    if output is None:
        sys.stdout.write(to_csv(predictions))
    else:
        stderr.print(f"Written: {output} ({len(predictions.labels)} rows)", highlight=False)
    if predictions.quality is not None:
        rows = plural(len(predictions.labels), "labelled row")
        stderr.print(f"accuracy {predictions.quality.accuracy.value:.2%} on {rows}", highlight=False)
    for note in predictions.notes:
        stderr.say(f"note: {note}")


def thresholds_of(texts: list[str] | None) -> dict[str | int, float]:
    """The CLASS=P options as a dictionary; the name of a class may have an = in it."""
    thresholds: dict[str | int, float] = {}
    for text in texts or []:
        label, equals, number = text.rpartition("=")
        try:
            least = float(number)
        except ValueError:
            equals = ""
        if not (label and equals):
            raise ConfigurationError(f"--threshold takes CLASS=P, for instance yes=0.3; got {text!r}.")
        if label in thresholds:
            raise ConfigurationError(f"--threshold is given twice for {label!r}.")
        thresholds[label] = least
    return thresholds
