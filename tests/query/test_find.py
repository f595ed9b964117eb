from __future__ import annotations

import pytest
from duckdb import DuckDBPyConnection

from pipeline.errors import UsageError
from pipeline.query.find import check_profile, find, find_operations, near
from tests.conftest import House
from tests.query.warehouse_fixture import GEMM, GROUPED, HOSTILE


@pytest.mark.parametrize(
    ("short", "kind"),
    [
        ("winner", "run"),
        ("gemm", "operation"),
        ("evil", "implementation"),
        ("wide", "workload"),
        ("b200", "environment"),
        ("protocol", "protocol"),
        ("log", "artifact"),
    ],
)
@pytest.mark.parametrize("cut", [slice(0, None), slice(7, None), slice(7, 15), slice(0, 15)])
def test_a_digest_prefix_finds_its_object(
    house: House, connection: DuckDBPyConnection, short: str, kind: str, cut: slice
) -> None:
    digest = house.digests[short]
    found = find(connection, digest[cut])
    assert (found.kind, found.digest) == (kind, digest)


def test_hex_digits_may_be_upper_case(house: House, connection: DuckDBPyConnection) -> None:
    assert find(connection, house.digests["winner"][7:].upper()).digest == house.digests["winner"]


@pytest.mark.parametrize(("name", "kind"), [(GEMM, "operation"), (HOSTILE, "implementation")])
def test_an_exact_name_finds_its_object(connection: DuckDBPyConnection, name: str, kind: str) -> None:
    assert find(connection, name).kind == kind


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("gemm_n128_k204", f"did you mean {GEMM}"),
        ("grouped", GROUPED),
        ("qqqq", "lists what there is"),
        ("sha256:12", "too short"),
        ("1234567", "too short"),
        ("1234567890abcdef", "has a digest"),
        ("'; DROP TABLE runs; --", "nothing is called"),
        ("", "nothing is called"),
    ],
)
def test_what_is_unknown_is_said_in_a_sentence(connection: DuckDBPyConnection, text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as error:
        find(connection, text)
    assert sentence in str(error.value)


def test_an_ambiguous_prefix_names_the_candidates(own_house: House) -> None:
    import duckdb

    from pipeline.store.database import connect

    with duckdb.connect(str(own_house.data.database)) as writer:
        twin = own_house.digests["winner"][:20] + "0" * 51
        writer.execute(
            "INSERT INTO runs SELECT * REPLACE (? AS run_digest) FROM runs WHERE run_digest = ?",
            [twin, own_house.digests["winner"]],
        )
    with connect(own_house.data.database) as connection:
        with pytest.raises(UsageError) as error:
            find(connection, own_house.digests["winner"][7:19])
        assert find(connection, twin).digest == twin
    assert twin[:23] in str(error.value)
    assert own_house.digests["winner"][:23] in str(error.value)


def test_operations_are_found_by_name_and_prefix(house: House, connection: DuckDBPyConnection) -> None:
    digest = house.digests["gemm"]
    assert [each.digest for each in find_operations(connection, GEMM)] == [digest]
    assert [each.digest for each in find_operations(connection, digest[:20])] == [digest]


def test_an_operation_is_no_implementation(connection: DuckDBPyConnection) -> None:
    with pytest.raises(UsageError, match="no operation is called"):
        find_operations(connection, "cublas_n128")


def test_an_unknown_profile_lists_those_that_exist(connection: DuckDBPyConnection) -> None:
    check_profile(connection, "source_native")
    with pytest.raises(UsageError, match=r'no profile "fastest"; it has .*source_native'):
        check_profile(connection, "fastest")


@pytest.mark.parametrize(
    ("text", "names"),
    [("rmsnorm_h4069", ["rmsnorm_h4096"]), ("RMS", ["fused_rmsnorm", "rmsnorm_h4096"]), ("", []), ("zzz", [])],
)
def test_near(text: str, names: list[str]) -> None:
    assert near(text, ["rmsnorm_h4096", "gemm", "fused_rmsnorm", "gemm"]) == names
