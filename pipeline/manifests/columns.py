"""RFC 8785 text in columns: SQL macros for DuckDB, byte for byte what :func:`canonical_text` writes.

``to_json`` of DuckDB writes shortest digits with the exponents of RFC 8785, 3.2.2.3, but for a trailing ``.0``, the
sign of zero and the plus of a positive exponent; and strings as RFC 8785, 3.2.2.2, but for the hex digits of
control characters, which it writes in upper case.
"""

from __future__ import annotations

from typing import Final

import duckdb

_MACROS: Final = (
    # Finite doubles alone: JSON has no text for others.
    r"""
    CREATE MACRO jcs_number(number) AS (
        CASE
            WHEN number = 0 THEN '0'
            WHEN suffix(to_json(number)::VARCHAR, '.0') THEN (to_json(number)::VARCHAR)[:-3]
            WHEN contains(to_json(number)::VARCHAR, 'e')
                THEN replace(replace(to_json(number)::VARCHAR, 'e', 'e+'), 'e+-', 'e-')
            ELSE to_json(number)::VARCHAR
        END
    )
    """,
    # The text between the quotes. An escaped backslash is a token of its own, so what follows it is never taken for
    # the escape of a control character.
    r"""
    CREATE MACRO jcs_characters(string) AS (
        CASE
            WHEN contains(to_json(string)::VARCHAR, '\u00') THEN array_to_string(
                list_transform(
                    regexp_extract_all(to_json(string)::VARCHAR, '\\u[0-9A-Fa-f]{4}|\\.|[^\\]+'),
                    lambda token: if(starts_with(token, '\u'), lower(token), token)
                ),
                ''
            )[2:-2]
            ELSE (to_json(string)::VARCHAR)[2:-2]
        END
    )
    """,
)


def create_macros(connection: duckdb.DuckDBPyConnection) -> None:
    """Make ``jcs_number(DOUBLE)`` and ``jcs_characters(VARCHAR)``, a string without its quotes, in a connection."""
    for macro in _MACROS:
        connection.execute(macro)
