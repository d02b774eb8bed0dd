"""`fedkt predict`: use a final model on new rows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedkt.cli import options
from fedkt.errors import ConfigurationError

if TYPE_CHECKING:
    from fedkt.live.predictions import Predictions


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
) -> None:
    """Predict new rows: the file's rows in their order, with a column 'prediction' at the end.

    Columns are encoded as the model's file says. Where the label column is there, the accuracy is told on stderr.

    A class with a threshold is predicted where it is at least that probable; of several, the one that exceeds its
    threshold by the largest ratio. Where none is reached it is the model's own label or, if that is a class below its
    threshold, the likeliest class without one: of two classes the other.

    [bold]Examples[/bold]

      fedkt predict result/final.onnx new.csv -o predictions.csv

      fedkt predict result/final.onnx new.csv --probabilities --threshold yes=0.3 -o predictions.csv

      fedkt predict result/final.onnx new.csv --server-key server.pub --json
    """
    from fedkt.cli.output import print_json, stderr
    from fedkt.live.final_file import read_final
    from fedkt.live.predictions import predict_file, to_csv
    from fedkt.system.files import write_atomically

    signer = None if server_key is None else options.public_key(server_key)
    final = read_final(model, server_key=signer)
    if signer is not None:
        stderr.say(f"{model}: signed by {signer}")
    limits = thresholds_of(threshold)
    predictions = predict_file(final, rows, probabilities=probabilities, thresholds=limits)
    if output is not None:
        write_atomically(output, to_csv(predictions).encode())
    if final.card.alarms:
        stderr.say(f"attention: {model} says of itself: {' '.join(final.card.alarms)}")
    if as_json:
        facts = {"rows": len(predictions.labels), "accuracy": predictions.accuracy, "plan": final.card.plan}
        answer: dict[str, Any] = {"alarms": final.card.alarms, "predictions": predictions.labels}
        if predictions.probabilities is not None:
            answer["probabilities"] = dict(predictions.probabilities)
        if output is not None:
            answer = {"alarms": final.card.alarms, "output": str(output)}
        print_json({**facts, **answer, "note": " ".join(predictions.notes) or None})
        return
    print_predictions(predictions, output)


def print_predictions(predictions: Predictions, output: Path | None) -> None:
    """The rows on stdout unless they went into a file; what is known of them on stderr."""
    from fedkt.cli.output import stderr
    from fedkt.live.predictions import to_csv

    if output is None:
        sys.stdout.write(to_csv(predictions))
    else:
        stderr.print(f"Written: {output} ({len(predictions.labels)} rows)", highlight=False)
    if predictions.accuracy is not None:
        count = len(predictions.labels)
        noun = "labelled row" if count == 1 else "labelled rows"
        stderr.print(f"accuracy {predictions.accuracy:.2%} on {count} {noun}", highlight=False)
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
