"""Names and codes of a party's own: mapped, offered, refused in words."""

import numpy as np
import pytest

from fedkt.data.mapping import TableMapping, read_mapped
from fedkt.data.nearest import nearest, partners
from fedkt.data.schema import Schema, fit_schema
from fedkt.data.table import read_table
from fedkt.errors import ConfigurationError, DataError

CLASSES = ["sick", "well"]


@pytest.fixture
def schema(tmp_path) -> Schema:
    """Age, blood pressure and sex, to tell whether somebody is ill."""
    public = tmp_path / "public.csv"
    public.write_text("age,blood_pressure,sex\n20,110,male\n40,130,female\n60,150,male\n")
    return fit_schema(read_table(public), label="ill", missing="allow")


def own(tmp_path, text):
    path = tmp_path / "own.csv"
    path.write_text(text)
    return path


AGREED = "age,blood_pressure,sex,ill\n30,120,male,sick\n50,140,female,well\n"
THEIRS = "Sex,Alter,RR sys,DX\nM,30,120,1\nF,50,140,0\n"
MAPPING = TableMapping(
    rename={"Alter": "age", "RR sys": "blood_pressure", "DX": "ill", "Sex": "sex"},
    labels={"1": "sick", "0": "well"},
    values={"sex": {"M": "male", "F": "female"}},
)


def test_a_mapped_file_becomes_the_rows_of_the_agreed_one(tmp_path, schema):
    agreed = schema.read(own(tmp_path, AGREED))
    mapped = read_mapped(schema, own(tmp_path, THEIRS), MAPPING)
    np.testing.assert_array_equal(schema.encode(mapped), schema.encode(agreed))
    assert schema.labels(mapped, CLASSES).tolist() == schema.labels(agreed, CLASSES).tolist() == [0, 1]


def test_the_empty_mapping_changes_nothing_and_has_no_digest(tmp_path, schema):
    path = own(tmp_path, AGREED)
    before, after = schema.read(path), read_mapped(schema, path, TableMapping())
    assert list(before.columns) == list(after.columns)
    assert TableMapping().digest == TableMapping(accept=("age",)).digest == ""


@pytest.mark.parametrize("kind", ["rename", "labels"])
def test_every_choice_that_changes_rows_changes_the_digest(kind):
    assert len({TableMapping(**{kind: {"a": ours}}).digest for ours in "xyz"} | {""}) == 4


def test_two_codes_can_change_places(tmp_path, schema):
    mapping = TableMapping(labels={"sick": "well", "well": "sick"})
    table = read_mapped(schema, own(tmp_path, AGREED), mapping)
    assert schema.labels(table, CLASSES).tolist() == [1, 0]


def test_labels_that_are_numbers_in_the_file_are_mapped_however_they_are_spelt(tmp_path, schema):
    path = own(tmp_path, "age,blood_pressure,sex,ill\n30,120,male,1.0\n50,140,female,00\n")
    table = read_mapped(schema, path, TableMapping(labels={"1": "sick", "0": "well"}))
    assert schema.labels(table, CLASSES).tolist() == [0, 1]


def test_a_name_that_differs_in_case_and_gaps_is_offered(tmp_path, schema):
    path = own(tmp_path, "Age,Blood Pressure,SEX,ill\n30,120,male,sick\n")
    with pytest.raises(
        DataError, match="Did you mean --rename Age=age --rename 'Blood Pressure=blood_pressure' --rename SEX=sex"
    ):
        schema.encode(schema.read(path))


def test_the_nearest_name_is_offered_for_a_label_column(tmp_path, schema):
    path = own(tmp_path, "age,blood_pressure,sex,iIl\n30,120,male,sick\n")
    with pytest.raises(DataError, match=r"no label column 'ill'.*Did you mean --rename iIl=ill\?"):
        schema.read(path)


@pytest.mark.parametrize(
    ("labels", "offer"),
    [
        ("Sick WELL", r"Did you mean --label-map Sick=sick,WELL=well\?"),
        ("S W", r"Did you mean --label-map S=sick,W=well\?"),
        ("1 0", "say which is which: --label-map 1=CLASS,0=CLASS"),
    ],
)
def test_unknown_labels_come_with_the_option_that_maps_them(tmp_path, schema, labels, offer):
    first, second = labels.split()
    path = own(tmp_path, f"age,blood_pressure,sex,ill\n30,120,male,{first}\n50,140,female,{second}\n")
    with pytest.raises(DataError, match=offer):
        schema.labels(schema.read(path), CLASSES)


@pytest.mark.parametrize(
    ("name", "known", "found"),
    [
        ("AGE", ["age", "ages"], "age"),
        ("blood pressure", ["BloodPressure", "pressure"], "BloodPressure"),
        ("M", ["male", "female"], "male"),
        ("feamle", ["male", "female"], "female"),
        ("cholesterin", ["cholesterol", "glucose"], "cholesterol"),
        ("12", ["112", "13"], None),
        ("x", ["xa", "xb"], None),
        ("weight", ["age"], None),
    ],
)
def test_the_nearest_name_is_the_one_a_person_would_have_meant(name, known, found):
    assert nearest(name, known) == found


def test_no_column_is_offered_for_two():
    assert partners(["age", "ages"], ["Age"]) == {"age": "Age"}


def test_a_renamed_column_that_is_not_there_is_named_with_the_likely_one(tmp_path, schema):
    path = own(tmp_path, THEIRS)
    with pytest.raises(DataError, match=r"no column 'Altr', which is to be called 'age'"):
        read_mapped(schema, path, TableMapping(rename={"Altr": "age"}))


def test_a_rename_that_the_file_does_not_need_is_no_fault(tmp_path, schema):
    table = read_mapped(schema, own(tmp_path, AGREED), TableMapping(rename={"Alter": "age"}))
    assert table.columns["age"].tolist() == ["30", "50"]


def test_two_columns_of_one_name_are_refused_and_one_can_be_set_aside(tmp_path, schema):
    path = own(tmp_path, "age,Age,blood_pressure,sex,ill\n3,30,120,male,sick\n")
    with pytest.raises(DataError, match=r"'age', 'Age' would all be 'age'.*--rename age=age_before"):
        read_mapped(schema, path, TableMapping(rename={"Age": "age"}))
    mapping = TableMapping(rename={"Age": "age", "age": "age_before"}).checked(schema, CLASSES)
    assert read_mapped(schema, path, mapping).columns["age"].tolist() == ["30"]


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"rename": {"Alter": "aeg"}}, r"--rename Alter=aeg: 'aeg' is no column of the plan\. Did you mean 'age'\?"),
        ({"labels": {"1": "ja"}}, r"--label-map 1=ja: 'ja' is no agreed class\. There is: 'sick', 'well'\."),
        (
            {"values": {"sex": {"M": "Male"}}},
            r"--value-map sex:M=Male: 'Male' is no agreed category.*Did you mean 'male'\?",
        ),
        ({"values": {"age": {"x": "old"}}}, r"is a number, and 'old' is neither a number nor a missing value"),
        ({"values": {"sx": {"M": "male"}}}, r"--value-map sx: 'sx' is no column of the plan\. Did you mean 'sex'\?"),
        ({"accept": ("Age",)}, r"--accept Age: .* Did you mean 'age'\?"),
    ],
)
def test_choices_that_were_not_agreed_on_are_refused_with_what_there_is(schema, choices, words):
    with pytest.raises(ConfigurationError, match=words):
        TableMapping(**choices).checked(schema, CLASSES)


def test_a_column_may_be_called_by_its_own_name_where_it_is_renamed(schema):
    choices = TableMapping(rename={"Geschlecht": "sex"}, values={"Geschlecht": {"w": "female"}}, accept=("Geschlecht",))
    checked = choices.checked(schema, CLASSES)
    assert checked.values == {"sex": {"w": "female"}}
    assert checked.accept == ("sex",)


def test_a_value_may_be_mapped_to_a_missing_one(tmp_path, schema):
    mapping = TableMapping(values={"sex": {"U": "?"}}).checked(schema, CLASSES)
    table = read_mapped(schema, own(tmp_path, AGREED.replace("female", "U")), mapping)
    assert schema.encode(table)[1, schema.feature_names.index("sex is missing")] == 1


def test_a_word_among_numbers_may_be_mapped_to_a_missing_one(tmp_path, schema):
    mapping = TableMapping(values={"age": {"unknown": "NA", "newborn": "0"}}).checked(schema, CLASSES)
    path = own(tmp_path, AGREED.replace("30", "unknown").replace("50", "newborn"))
    rows = schema.encode(read_mapped(schema, path, mapping))
    assert rows[:, schema.feature_names.index("age is missing")].tolist() == [1, 0]
    assert rows[1, 0] == pytest.approx((0 - 40) / 16.3299, rel=1e-4)
