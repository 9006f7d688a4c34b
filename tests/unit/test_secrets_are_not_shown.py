"""Errors repeat URIs, addresses of locks and texts of clients; what may be a secret in them is not shown."""

from __future__ import annotations

import io
import logging
import pickle

import pytest

from airflow_lake.lineage import identity
from lake_core.errors import InvalidInput, LakeError, Unavailable, from_wire, to_wire, without_secrets
from log_lake.agents.ingest.parking import park, parked_files
from log_lake.agents.ingest.report import changed_text
from log_lake.cli.main import _logging
from log_lake.console.logged import LineFormatter
from log_lake.lake import Lake
from log_lake.loading.source_files import SourceFile
from log_lake.stores import open_store
from log_lake.stores.locks import open_lock
from log_lake.stores.memory import MemoryStore


@pytest.mark.parametrize(
    "text",
    [
        "s3://AK:hush@bucket/lake: no such lake",
        'Could not connect to the endpoint URL: "http://u:hush@127.0.0.1:9/bucket"',
        "postgresql://u:p@hush@127.0.0.1/db: refused",
        "url: /tokeninfo?access_token=hush (Caused by ...)",
        "file 'https://h/a.csv?X-Amz-Signature=hush&x=1': reading failed",
        "file 'https://h/a.csv?sv=1&sig=hush': reading failed",
        "https://hush@host/in/a.csv: refused",
        "https://h/a.csv#access_token=hush: refused",
        "https://h/a.csv?jwt=hush&x=1: refused",
        "401 for a request with Authorization: Bearer hush.hush.hush",
        "the environment has AWS_SECRET_ACCESS_KEY=hush",
        """wrong options {'key': 'AK', 'secret': 'hush'}""",
        """{"client_secret": "hush", "x": 1}""",
        "connection failed: host=h user=u password=hush dbname=d",
        """keyfile_dict={"private_key":"hush"}""",
    ],
)
def test_an_error_shows_no_secret(text: str) -> None:
    error = Unavailable(text)
    for shown in (error, pickle.loads(pickle.dumps(error)), from_wire(to_wire(error))):
        assert "hush" not in str(shown)
        assert "***" in str(shown)


@pytest.mark.parametrize(
    "text",
    [
        "s3://bucket/lake: there is no lake; make one with: lake init",
        "pool 'flights@dev': no such branch; use lake://lake_default/flights?branch=dev",
        "file 'github://org:repo@main/a.csv': does not exist",
        "use file:///FOLDER or postgresql://USER@HOST:5432/DATABASE",
        "setting compact.depth=0: use a whole number of at least 1",
        "see s3://bucket/a and mail me@example.org",
        "field 'password': missing; name it: the header has none",
        "neither AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, nor a profile: set the two variables",
    ],
)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert without_secrets(text) == str(LakeError(text)) == text


def test_an_address_of_a_lock_that_cannot_be_read_is_not_repeated() -> None:
    with pytest.raises(InvalidInput) as caught:
        open_lock("postgresql://u:hu[sh@127.0.0.1/db")
    assert "hu" not in str(caught.value)


def test_a_lock_that_does_not_answer_shows_no_part_of_its_password() -> None:
    lock = open_lock("postgresql://u:first@hush@127.0.0.1:9/db", patience=0.1)
    with pytest.raises(Unavailable) as caught, lock.hold("x"):
        pass
    assert "hush" not in str(caught.value)
    assert "first" not in str(caught.value)


def test_lineage_names_no_user_of_a_store() -> None:
    assert identity("s3://AK:hush@bucket/in/a.csv") == ("s3://bucket", "in/a.csv")


def test_a_lake_uri_with_a_password_is_refused_without_it() -> None:
    with pytest.raises(InvalidInput) as caught:
        open_store("s3://AK:hush@bucket/lake")
    assert "hush" not in str(caught.value)


def test_a_line_of_the_log_of_a_command_shows_no_secret(capsys: pytest.CaptureFixture[str]) -> None:
    with _logging(2):
        logging.getLogger("lake_core.x").info("reads %s", "https://u:hush@h/a.csv?X-Amz-Signature=hush")
    shown = capsys.readouterr().err
    assert "reads https://***@h/a.csv" in shown
    assert "hush" not in shown


def test_a_line_of_a_log_is_one_line_without_secrets_and_moves_no_cursor() -> None:
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(LineFormatter("%(message)s"))
    logger = logging.Logger("x")
    logger.addHandler(handler)
    logger.info("begun by %s: %s", "ann\n\x1b[2Jb: done", "https://u:hush@h/a?X-Amz-Signature=hush")
    try:
        raise ValueError("https://u:hush@h/")
    except ValueError:
        logger.exception("failed")
    first, second, *trace = out.getvalue().splitlines()
    assert first.startswith("begun by ann\\n\\u001b[2Jb: done: https://***@h/a")
    assert (second, trace[0]) == ("failed", "Traceback (most recent call last):")
    assert "hush" not in out.getvalue()


def test_a_parked_file_is_logged_without_the_secrets_of_its_address(caplog: pytest.LogCaptureFixture) -> None:
    pool = Lake.create_on(MemoryStore()).create_pool("p", key="k")
    file = SourceFile("https://h/in/a.csv?sig=hush", 1, "e", 0.0)
    park(pool, file, why="no", now=0.0)
    assert [note.file for note in parked_files(pool)] == [file.uri]
    said = changed_text("p", [file])
    assert "a.csv?sig=***" in said
    assert "hush" not in said
    assert "hush" not in caplog.text
