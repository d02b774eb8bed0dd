"""Random forests that grow on binned rows: the rows are binned once, and all students of a federation share the bins.

`training.grow_forest` is the way in. A forest of a supported `RandomForestClassifier` is grown by the rules that
scikit-learn has (`growth`), so that the two differ by their random numbers only, on tables whose columns have up to 255
values; other columns are cut into 255 bins (`bins`). The kernels are numba's, of the extra `fast`.
"""
