#!/bin/sh
# Installs what building, testing and the demo need, if it is missing: a C compiler (the SQL parser is PostgreSQL's own, in
# C), PostgreSQL 15 or later with its contrib extensions, and pgvector where the system has a package. Starts no server,
# changes no setting. Safe to run again.
set -eu

say() { printf '%s\n' "setup: $*"; }
fail() {
	printf '%s\n' "setup: error: $1" >&2
	shift
	for line in "$@"; do printf '%s\n' "  $line" >&2; done
	exit 1
}

# Go

command -v go >/dev/null 2>&1 || fail "Go is not installed, or not on PATH." \
	"Get 1.26 or later from https://go.dev/dl/, and put its bin folder on PATH." \
	"macOS: brew install go"
GO_VERSION=$(go env GOVERSION | sed 's/^go//')
case "$GO_VERSION" in
1.[0-9] | 1.[0-9].* | 1.1[0-9]* | 1.20*) fail "Go $GO_VERSION is too old." "Get 1.26 or later from https://go.dev/dl/." ;;
esac

# What is missing

pg_bin() { # prints the newest folder with a PostgreSQL server of at least 15
	onpath=$(command -v postgres 2>/dev/null || true)
	for dir in ${PG_BIN:-} ${onpath%/*} /usr/lib/postgresql/*/bin /usr/pgsql-*/bin \
		/opt/homebrew/opt/postgresql*/bin /usr/local/opt/postgresql*/bin /opt/homebrew/bin /usr/local/pgsql/bin /usr/local/bin; do
		[ -x "$dir/postgres" ] && [ -x "$dir/initdb" ] || continue
		major=$("$dir/postgres" --version 2>/dev/null | sed -n 's/.*(PostgreSQL) \([0-9]*\).*/\1/p')
		[ "${major:-0}" -ge 15 ] && printf '%s %s\n' "$major" "$dir"
	done | sort -rn | head -n 1
}
has_compiler() {
	cc=$(go env CC)
	command -v "$cc" >/dev/null 2>&1 && printf '#include <stdlib.h>\nint main(void) { return 0; }\n' | "$cc" -x c -fsyntax-only - 2>/dev/null
}
extension() { # tells whether the newest PostgreSQL has extension $1
	set -- "$1" $(pg_bin)
	[ $# -eq 3 ] || return 1
	share=$("$3/pg_config" --sharedir 2>/dev/null || echo "/usr/share/postgresql/$2")
	[ -e "$share/extension/$1.control" ] || [ -e "/usr/share/postgresql/$2/extension/$1.control" ]
}
apt_candidate() { apt-cache policy "$1" 2>/dev/null | grep -q 'Candidate: [0-9]'; }

packages=
has_compiler || packages="$packages gcc libc6-dev"
[ -n "$(pg_bin)" ] || packages="$packages postgresql"
[ -n "$(pg_bin)" ] && extension cube || packages="$packages postgresql-contrib"

if [ "$(uname -s)" = Darwin ]; then
	has_compiler || fail "There is no C compiler." "Run: xcode-select --install"
	[ -n "$(pg_bin)" ] || fail "There is no PostgreSQL server." "Run: brew install postgresql@17 pgvector"
	packages=
elif [ -n "$packages" ] && ! command -v apt-get >/dev/null 2>&1; then
	fail "missing (named as on Debian):$packages" \
		"Install a C compiler with headers, and PostgreSQL 15 or later with its contrib extensions, with your system's package manager." \
		"Fedora, RHEL: sudo dnf install gcc glibc-devel postgresql-server postgresql-contrib" \
		"A PostgreSQL elsewhere: set PG_BIN to the folder that holds postgres and initdb."
fi

# Install

as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null 2>&1; then
		sudo "$@"
	else
		fail "root is needed for: $*" "Run as root: apt-get install$packages" "then run this again."
	fi
}

# Debian makes and starts a cluster for a newly installed server. We want the programs only: while we install, a drop-in
# says so; it goes away with us.
dropin=/etc/postgresql-common/createcluster.d/pgconsent-setup.conf
install_packages() {
	# shellcheck disable=SC2086
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" ||
		fail "apt-get could not install: $*" "Its messages above say why. Without network: install them by other means and run this again."
}
updated=
update_lists() {
	[ -z "$updated" ] || return 0
	updated=yes
	say "reading package lists (apt-get update)"
	as_root apt-get update -q || say "apt-get update failed; going on with the lists there are"
}

if [ -n "$packages" ]; then
	say "missing:$packages"
	[ "$(id -u)" -eq 0 ] || say "installing needs root: sudo may ask for your password"
	update_lists
	case "$packages" in
	*postgresql*)
		install_packages postgresql-common
		as_root mkdir -p /etc/postgresql-common/createcluster.d
		trap 'as_root rm -f "$dropin"' EXIT
		trap 'exit 130' INT TERM
		printf 'create_main_cluster = false\n' | as_root tee "$dropin" >/dev/null
		;;
	esac
	# shellcheck disable=SC2086
	install_packages $packages
	[ -n "$(pg_bin)" ] || fail "the installed PostgreSQL is older than 15." \
		"Add the PostgreSQL project's package source: https://www.postgresql.org/download/linux/" "then run this again."
fi

# pgvector is nice to have: without it embeddings use the extension cube.
if ! extension vector && command -v apt-get >/dev/null 2>&1; then
	major=$(pg_bin | cut -d ' ' -f 1)
	if apt_candidate "postgresql-$major-pgvector"; then
		say "installing pgvector for PostgreSQL $major"
		install_packages "postgresql-$major-pgvector"
	else
		say "this system has no package of pgvector for PostgreSQL $major: embeddings use the extension cube instead"
	fi
fi

set -- $(pg_bin)
say "ready: Go $GO_VERSION, $(go env CC), PostgreSQL $1 in $2"
