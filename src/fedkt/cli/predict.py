"""`fedkt predict`: use a final model on new rows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from fedkt.cli import options


def predict(
    model: Annotated[Path, typer.Argument(help="The final.onnx that the server has written.", metavar="FINAL")],
    rows: Annotated[Path, typer.Argument(help="New rows with the agreed columns.", metavar="ROWS")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The CSV to write. Default: stdout.")] = None,
    server_key: options.ServerKey = None,
    as_json: options.Json = False,
) -> None:
    """Predict new rows: the file's rows in their order, with a column 'prediction' at the end.

    Columns are encoded as the model's file says. Where the label column is there, the accuracy is told on stderr.

    [bold]Examples[/bold]

      fedkt predict result/final.onnx new.csv -o predictions.csv

      fedkt predict result/final.onnx new.csv --server-key server.pub --json
    """
    from fedkt.cli.output import print_json, stderr
    from fedkt.live.final_file import predict_file, read_final, to_csv
    from fedkt.system.files import write_atomically

    signer = None if server_key is None else options.public_key(server_key)
    final = read_final(model, server_key=signer)
    if signer is not None:
        stderr.say(f"{model}: signed by {signer}")
    predictions = predict_file(final, rows)
    if output is not None:
        write_atomically(output, to_csv(predictions).encode())
    if as_json:
        facts = {"rows": len(predictions.labels), "accuracy": predictions.accuracy, "plan": final.card.plan}
        answer = {"predictions": predictions.labels} if output is None else {"output": str(output)}
        print_json({**facts, **answer, "note": " ".join(predictions.notes) or None})
        return
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
