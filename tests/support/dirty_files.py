"""Files as people have them: each is read right, or refused with a remedy that works.

`python tests/support/dirty_files.py` writes docs/dirty-files.md anew from this list.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "dirty-files.md"

Content = bytes | Callable[[], bytes]


@dataclass(frozen=True)
class Dirty:
    """A file, and what becomes of it."""

    what: str
    content: Content
    expected: dict[str, list[Any]]
    """The columns' values by hand: numbers, dates as year-month-day, categories, truths, labels; None for missing."""
    name: str = "north.csv"
    options: tuple[str, ...] = ()
    """The remedies in the order in which refusals name them; "SIGN -> ^" fills what a message cannot know."""
    edit: tuple[bytes, bytes] | bytes | None = None
    """What the remedy says to change in the file, or the file as it then is."""
    words: str = ""
    """What the refusal that asks for the edit says, or the note about a file that is read."""
    public: bool = False
    """Whether a plan is to be made from it, rather than a party's rows to be read under one."""


def text(*lines: str, end: str = "\n", code: str = "utf-8") -> bytes:
    return (end.join(lines) + end).encode(code)


def in_zip(**files: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("_", "."), content)
    return packed.getvalue()


def workbook(**sheets: list[list[Any]]) -> Callable[[], bytes]:
    def make() -> bytes:
        from openpyxl import Workbook

        book = Workbook()
        book.remove(book.active)
        for title, rows in sheets.items():
            sheet = book.create_sheet(title)
            for row in rows:
                sheet.append(row)
        packed = io.BytesIO()
        book.save(packed)
        return packed.getvalue()

    return make


PLAIN = text("age,ill", "31,yes", "40,no")
AGES = {"age": [31, 40], "ill": ["yes", "no"]}
DOSES = {"dose": [3.14, 2.5], "ill": ["yes", "no"]}
THOUSANDS = {"dose": [1234.5, 2.5], "ill": ["yes", "no"]}
DAYS = {"day": ["2024-03-04", "2023-12-31"], "ill": ["yes", "no"]}
TEN = [f"{n},5" for n in range(1, 11)]
HALVES = {"dose": [n + 0.5 for n in range(1, 11)]}

FILES = {
    "Characters": [
        Dirty("UTF-8 with a mark (BOM)", b"\xef\xbb\xbf" + PLAIN, AGES),
        Dirty("two marks, as a file has that was saved twice", b"\xef\xbb\xbf\xef\xbb\xbf" + PLAIN, AGES),
        Dirty("UTF-16, as Excel saves “Unicode text”", text("age\till", "31\tyes", "40\tno", code="utf-16"), AGES, words="UTF-16"),
        Dirty("UTF-16 without a mark", text("age,ill", "31,yes", "40,no", code="utf-16-le"), AGES, options=("--encoding utf-16-le",)),
        Dirty("Windows-1252 (or Latin-1)", text("ward,ill", "Zürich,yes", "Genève,no", code="cp1252"), {"ward": ["Zürich", "Genève"], "ill": ["yes", "no"]}, words="'Zürich'"),
        Dirty("Polish in Windows-1250", text("ward,ill", "Łódź,yes", "Białystok,no", code="cp1250"), {"ward": ["Łódź", "Białystok"], "ill": ["yes", "no"]}, options=("--encoding cp1250",)),
        Dirty("Cyrillic in Windows-1251", text("ward,ill", "Москва,yes", "Казань,no", code="cp1251"), {"ward": ["Москва", "Казань"], "ill": ["yes", "no"]}, options=("--encoding NAME -> cp1251",), words="cp1251"),
        Dirty("German from DOS (code page 850)", text("ward,ill", "Köln,yes", "Münster,no", code="cp850"), {"ward": ["Köln", "Münster"], "ill": ["yes", "no"]}, options=("--encoding NAME -> cp850",), words="cp850"),
        Dirty("UTF-8 and Windows-1252 in one file", text("ward,ill", "Köln,yes") + text("Zürich,no", code="cp1252"), {"ward": ["Köln", "Zürich"], "ill": ["yes", "no"]}, edit=(b"Z\xfcrich", "Zürich".encode()), words="some of it is UTF-8"),
        Dirty("NUL characters in a line", text("age,ill", "31,yes", "40\0,no"), AGES, edit=(b"\0", b""), words="Take them out"),
    ],
    "Lines and separators": [
        Dirty("semicolons", text("age;ill", "31;yes", "40;no"), AGES),
        Dirty("tabs in a .tsv", text("age\till", "31\tyes", "40\tno"), AGES, name="north.tsv"),
        Dirty("pipes in a .psv", text("age|ill", "31|yes", "40|no"), AGES, name="north.psv"),
        Dirty("a table in a .txt", text("age\till", "31\tyes", "40\tno"), AGES, name="north.txt"),
        Dirty("carets", text("age^ill", "31^yes", "40^no"), AGES, options=("--separator SIGN -> ^",)),
        Dirty("names in quotes with commas in them, between semicolons", text('"age, years";"dose, mg";ill', "31;3.5;yes"), {"age, years": [31], "ill": ["yes"]}),
        Dirty("the line sep=; that Excel writes", text("sep=;", "age;ill", "31;yes", "40;no"), AGES),
        Dirty("blank lines first, last and in between", text("", "  ", "age,ill", "31,yes", "", "40,no", "", " "), AGES),
        Dirty("mixed line ends", b"age,ill\r\n31,yes\n40,no\r", AGES),
        Dirty("lines of comments", text("# made on Monday, by hand", "age,ill", "# first", "31,yes", "40,no"), AGES, options=("--comment '#'",)),
        Dirty("a title above the names", text("Ward 3, May", "", "age,dose,ill", "31,1,yes", "40,2,no"), AGES, options=("--header 3",)),
        Dirty("no line of names, numbers only", text("31,1", "40,0"), AGES, options=("--names age,dose,… -> --names age,ill",)),
        Dirty("no line of names, with words", text("31,north,yes", "40,south,no"), AGES, options=("--names age,dose,… -> --names age,ward,ill",)),
        Dirty("no line of names in a public file", text("31,2,north", "40,3,south", "37,4,north"), {"age": [31, 40, 37]}, options=("--names age,dose,… -> --names age,beds,ward",), public=True),
        Dirty("years as names in a public file", text("2023,2024", "1,2", "3,4"), {"2023": [1, 3]}, options=("--header 1",), public=True),
        Dirty("a last line without separators", text("age,ill", "31,yes", "40,no", "2 patients"), AGES, options=("--footer 1",)),
        Dirty("a total at the end", text("age,ill", "31,yes", "40,no", "71,"), AGES, options=("--footer 1",)),
        Dirty("a total by its name at the end", text("age,ill", "31,yes", "40,no", "Total,2"), AGES, options=("--footer 1",)),
        Dirty("rows of separators at the end", text("age;ill", "31;yes", "40;no", ";", ";"), AGES, options=("--footer 2",)),
        Dirty("a total at the end of a public file", text("ward,beds", "north,31", "south,40", "Total,71"), {"ward": ["north", "south"], "beds": [31, 40]}, options=("--footer 1",), public=True),
        Dirty("a last public row that only looks like a total", text("size,beds", "part,31", "part,40", "total,35"), {"size": ["part", "part", "total"]}, options=("--footer 0",), public=True),
        Dirty("empty rows at the end of a public file", text("age;beds", "31;1", "40;2", ";", ";"), {"age": [31, 40]}, options=("--footer 2",), public=True),
        Dirty("a value with a comma and no quotes", text("ward,ill", "Bern, old,yes"), {"ward": ["Bern, old"], "ill": ["yes"]}, edit=(b"Bern, old", b'"Bern, old"'), words="Quote values that contain the delimiter"),
        Dirty("a quote that is never closed", text("ward,ill", '"north,yes', "south,no"), {"ward": ["north", "south"], "ill": ["yes", "no"]}, edit=(b'"north', b"north"), words="Close it"),
        Dirty("a quote inside quotes", text("ward,ill", '"the "old" one",yes'), {"ward": ['the "old" one'], "ill": ["yes"]}, edit=(b'the "old" one', b'the ""old"" one'), words="twice"),
        Dirty("a value without end", text("ward,ill", f"{'x' * 200_000},yes"), {"ward": ["x"], "ill": ["yes"]}, edit=(b"x" * 200_000, b"x"), words="No value is that long"),
        Dirty("names but no rows", text("age,ill"), AGES, edit=PLAIN, words="has a header but no rows"),
        Dirty("nothing", b"", AGES, edit=PLAIN, words="is empty"),
        Dirty("a web page called .csv", b"<html><table><tr><td>31</td></tr></table></html>", AGES, edit=PLAIN, words="Save it as CSV"),
    ],
    "Names of columns": [
        Dirty("a row number without a name, as pandas writes it", text(",age,ill", "0,31,yes", "1,40,no"), AGES, words="'column 1'"),
        Dirty("a row number without a name in a public file", text(",age", "0,31", "1,40"), {"age": [31, 40]}, options=("--ignore 'column 1'",), public=True),
        Dirty("a separator at the end of every line", text("age;ill;", "31;yes;", "40;no;"), AGES, words="passed over"),
        Dirty("spaces around names and values", text(" age ; ill ", " 31 ; yes", "40 ;no "), AGES),
        Dirty("a line break in a name", text('"age', '(years)",ill', "31,yes"), {"age (years)": [31], "ill": ["yes"]}),
        Dirty("the same name twice", text("age,age,ill", "31,3,yes", "40,4,no"), AGES, edit=(b"age,age", b"age,beds"), words="Rename the columns"),
        Dirty("names in another case", text("Age,ILL", "31,yes", "40,no"), AGES, edit=(b"Age,ILL", b"age,ill"), words="It has: 'Age', 'ILL'"),
    ],
    "Packed files and spreadsheets": [
        Dirty("gzip that is called .csv", gzip.compress(PLAIN), AGES),
        Dirty("bz2", bz2.compress(PLAIN), AGES, name="north.csv.bz2"),
        Dirty("xz", lzma.compress(PLAIN), AGES, name="north.csv.xz"),
        Dirty("a zip with one file", in_zip(north_csv=PLAIN), AGES, name="north.zip"),
        Dirty("a zip with two files", in_zip(north_csv=PLAIN, south_csv=PLAIN), AGES, name="north.csv.zip", edit=PLAIN, words="Unpack it"),
        Dirty("zstd", b"\x28\xb5\x2f\xfd\x04\x00", AGES, edit=PLAIN, words="zstd -d"),
        Dirty("an Excel file of the old kind", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", AGES, edit=PLAIN, words="Save it as .xlsx or CSV"),
        Dirty("an Excel file", workbook(Data=[["age", "ill"], [31, "yes"], [40, "no"]]), AGES, name="north.xlsx"),
        Dirty("an Excel file that is called .csv", workbook(Data=[["age", "ill"], [31, "yes"], [40, "no"]]), AGES),
        Dirty("cells with dates and truths", workbook(Data=[["day", "smoker", "ill"], [date(2024, 3, 4), True, "yes"], [datetime(2023, 12, 31), False, "no"]]), {**DAYS, "smoker": [True, False]}, name="north.xlsx"),
        Dirty("the table on the second sheet", workbook(Notes=[["made", "by"], ["May", "hand"]], Data=[["age", "ill"], [31, "yes"], [40, "no"]]), AGES, name="north.xlsx", options=("--sheet Data",)),
        Dirty("a title above the names of a sheet", workbook(Data=[["Ward 3"], [], ["age", "ill"], [31, "yes"], [40, "no"]]), AGES, name="north.xlsx", options=("--header 3",)),
        Dirty("a formula that nobody has computed", workbook(Data=[["age", "ill"], ["=30+1", "yes"], [40, "no"]]), AGES, name="north.xlsx", edit=b"saved", words="spreadsheet program and save it"),
    ],
    "Numbers": [
        Dirty("decimal commas", text("dose;ill", "3,14;yes", "2,5;no"), DOSES, options=("--decimal ,",)),
        Dirty("decimal commas in a public file", text("dose;ward", *(f"{each};a" for each in TEN)), HALVES, options=("--decimal ,",), public=True),
        Dirty("grouped thousands and a decimal comma", text("dose;ill", "1.234,5;yes", "2,5;no"), THOUSANDS, options=("--decimal ,",)),
        Dirty("grouped thousands and a decimal point", text("dose;ill", "1,234.5;yes", "2.5;no"), THOUSANDS, options=("--decimal .",)),
        Dirty("thousands grouped by spaces that do not break", text("dose;ill", "1\u202f234,5;yes", "2,5;no"), THOUSANDS, options=("--decimal ,",)),
        Dirty("a comma that may be either sign", text("dose;ill", "1,234;yes", "2;no"), {"dose": [1234, 2], "ill": ["yes", "no"]}, options=("--decimal .",)),
        Dirty("a comma here, a point there", text("dose;ill", "3,14;yes", "2.5;no"), DOSES, options=("--decimal ,",), edit=(b"2.5", b"2,5"), words="Write all of them alike"),
        Dirty("a minus sign from a word processor", text("dose,ill", "−3.5,yes", "2,no"), {"dose": [-3.5, 2], "ill": ["yes", "no"]}, options=("--decimal .",)),
        Dirty("powers of ten", text("dose,ill", "1e3,yes", "2.5E-1,no"), {"dose": [1000, 0.25], "ill": ["yes", "no"]}),
        Dirty("a unit", text("dose,ill", "3.14 mg,yes", "2.5mg,no"), DOSES, options=("--unit dose=mg",)),
        Dirty("percent signs in a public file", text("share,ward", *(f"{n}%,a" for n in range(10))), {"share": list(range(10))}, options=("--unit share=%",), public=True),
        Dirty("a currency before decimal commas", text("dose;ill", "€ 1.234,5;yes", "€ 2,5;no"), THOUSANDS, options=("--unit 'dose=€'", "--decimal ,")),
        Dirty("infinity", text("dose,ill", "inf,yes", "2.5,no"), {"dose": [None, 2.5], "ill": ["yes", "no"]}, options=("--missing-value inf",)),
        Dirty("a dash for what is not known", text("dose,ill", "-,yes", "2.5,no"), {"dose": [None, 2.5], "ill": ["yes", "no"]}, options=("--missing-value -",)),
        Dirty("an error of a spreadsheet", text("dose,ill", "#N/A,yes", "2.5,no"), {"dose": [None, 2.5], "ill": ["yes", "no"]}, options=("--missing-value '#N/A'",)),
        Dirty("one word among the numbers of a public file", text("age,ward", *(f"{n},a" for n in range(30, 40)), "old,a"), {"age": [*range(30, 40), None]}, options=("--missing-value old",), public=True),
        Dirty("a word for a number", text("age,ill", "31,yes", "old,no"), AGES, edit=(b"old", b"40"), words="Correct it"),
    ],
    "Dates": [
        Dirty("year first", text("day,ill", "2024-03-04,yes", "2023/12/31,no"), DAYS),
        Dirty("day.month.year", text("day;ill", "4.3.2024;yes", "31.12.2023;no"), DAYS),
        Dirty("month/day/year that can be nothing else", text("day,ill", "3/4/2024,yes", "12/31/2023,no"), DAYS),
        Dirty("day/month or month/day", text("day,ill", "04/03/2024,yes", "05/03/2024,no"), {"day": ["2024-03-04", "2024-03-05"], "ill": ["yes", "no"]}, options=("--dates day=dd/mm/yyyy",)),
        Dirty("day/month or month/day in a public file", text("day,ward", "04/03/2024,a", "05/03/2024,a"), {"day": ["2024-04-03", "2024-05-03"]}, options=("--dates day=mm/dd/yyyy",), public=True),
        Dirty("two digits for the year", text("day;ill", "4.3.24;yes", "31.12.23;no"), DAYS, options=("--dates day=dd.mm.yy",)),
        Dirty("day numbers of a spreadsheet", text("day,ill", "45355,yes", "45291,no"), DAYS, options=("--dates day=excel",)),
        Dirty("months by name", text("day,ill", "04-Mar-2024,yes", "31-Dec-2023,no"), DAYS, options=("--dates day=FORM -> --dates day=%d-%b-%Y",)),
        Dirty("times of day, in UTC and beside it", text("day,ill", "2024-03-04T00:00:00Z,yes", "2023-12-31 02:00+02:00,no"), DAYS),
        Dirty("a time with a zone and one without", text("day,ill", "2024-03-04T00:00:00Z,yes", "2023-12-31 00:00,no"), DAYS, edit=(b"00:00,no", b"00:00Z,no"), words="has no time zone"),
        Dirty("a day that there is not", text("day,ill", "31.2.2024,yes", "31.12.2023,no"), DAYS, edit=(b"31.2.", b"4.3."), words="Correct it"),
    ],
    "Yes and no": [
        Dirty("TRUE and false", text("smoker,ill", "TRUE,yes", "false,no"), {"smoker": [True, False], "ill": ["yes", "no"]}),
        Dirty("ja and Nein", text("smoker,ill", "ja,yes", "Nein,no"), {"smoker": [True, False], "ill": ["yes", "no"]}),
        Dirty("1 and 0", text("smoker,ill", "1,yes", "0,no"), {"smoker": [True, False], "ill": ["yes", "no"]}),
        Dirty("labels in other words", text("age,ill", "31,JA", "40,false"), AGES),
        Dirty("truths in a column of numbers", text("dose,ill", "True,yes", "False,no"), {"dose": [1, 0], "ill": ["yes", "no"]}),
    ],
}  # fmt: skip


def outcome(dirty: Dirty) -> str:
    """What becomes of a file, for the page."""
    if not dirty.options and dirty.edit is None:
        return "read" + (", and told" if dirty.words else "")
    remedies = [f"`{each.partition(' -> ')[2] if ' -> --' in each else filled(each)}`" for each in dirty.options]
    return (
        f"refused: {', then '.join([*remedies, *([f'an edit (“{dirty.words}”)'] if dirty.edit is not None else [])])}"
    )


def filled(remedy: str) -> str:
    """A remedy as it is typed: with what a message cannot know."""
    named, arrow, applied = remedy.partition(" -> ")
    return named if not arrow else applied if applied.startswith("--") else f"{named.rpartition(' ')[0]} {applied}"


def page() -> str:
    """The page that lists all files."""
    count = sum(map(len, FILES.values()))
    lines = [
        "# Dirty files",
        "",
        f"{count} files as people have them, and what becomes of each. The list is that of a test, which reads every file,",
        "follows the remedy of every refusal to the letter, and compares what is then read with values worked out by hand.",
        "What the options mean, and by which rules files are read without them:",
        "[how files are written](guide/data.md#how-files-are-written).",
    ]
    for title, files in FILES.items():
        lines += ["", f"## {title}", "", "| file | what becomes of it |", "|---|---|"]
        for each in files:
            shown = f"{each.what} (public file)" if each.public and "public" not in each.what else each.what
            lines.append(f"| {shown} | {outcome(each)} |".replace("sep=;", "`sep=;`"))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
