"""How good a model is, measured once for every interface, and what a reader must be told about it.

```python
from fedkt.quality import measure_quality, verdicts

quality = measure_quality([0, 0, 0, 1], [0, 0, 0, 0], ["no", "yes"])
print(quality.accuracy, quality.majority)
print(verdicts(quality))
```

Truth and labels are class indices, probabilities have a column per class. What is not defined is None, never 0.
"""

from fedkt.quality.figures import CalibrationBin, Quality
from fedkt.quality.intervals import Interval
from fedkt.quality.measure import measure_quality
from fedkt.quality.paired import Difference, compare_accuracy
from fedkt.quality.verdict import label_verdicts, probability_verdicts, verdicts

__all__ = [
    "CalibrationBin",
    "Difference",
    "Interval",
    "Quality",
    "compare_accuracy",
    "label_verdicts",
    "measure_quality",
    "probability_verdicts",
    "verdicts",
]
