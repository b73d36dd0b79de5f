#!/bin/sh
# Runs the tests that depend on the server's version on each major version of PostgreSQL that pgconsent works with.
# The servers: folders given in PGCONSENT_PG_BIN (separated by spaces), else those that scripts/postgres.sh finds or
# fetches. MAJORS chooses versions, MATRIX_MISSING=skip lets one that is not to be had pass.
set -eu

cd "$(dirname "$0")/.."
GO=${GO:-go}
MAJORS=${MAJORS:-15 16 17 18}
PACKAGES="./internal/sql/catalog/... ./internal/enforce/predicate ./rewrite ./migrations ./rls ./internal/tool/doctor ./test/oracle ./test/written ./test/attacks"
# Of the end-to-end tests those that compare answers: with a filtered copy, of two databases, with PostgreSQL's second opinion.
E2E='FilteredCopy|Twins|Touched|Declared|Arcive|Psql'
say() { printf '%s\n' "matrix: $*"; }

major_of() { "$1/postgres" --version | sed -n 's/.*(PostgreSQL) \([0-9]*\).*/\1/p'; }

failed= ran=
try() { # runs the tests with the server in folder $1
	major=$(major_of "$1")
	say "PostgreSQL $major ($1)"
	passed=yes
	# The result depends on PG_BIN in ways that the test cache does not see. What one part finds is no reason not to ask the other.
	PG_BIN=$1 $GO test -count=1 -timeout 60m $PACKAGES || passed=
	PG_BIN=$1 $GO test -count=1 -timeout 60m -run "$E2E" ./test/e2e || passed=
	if [ -n "$passed" ]; then
		ran="$ran $major"
	else
		failed="$failed $major"
	fi
}

if [ -n "${PGCONSENT_PG_BIN:-}" ]; then
	for dir in $PGCONSENT_PG_BIN; do try "$dir"; done
else
	for major in $MAJORS; do
		if dir=$(sh scripts/postgres.sh "$major"); then
			try "$dir"
		elif [ "${MATRIX_MISSING:-fail}" = skip ]; then
			say "PostgreSQL $major is not to be had here: NOT TESTED"
		else
			failed="$failed $major(missing)"
		fi
	done
fi
say "passed on:${ran:- none}"
[ -z "$failed" ] || { say "FAILED on:$failed" >&2; exit 1; }
