# Everything a newcomer needs: "make demo" shows it, "make test" proves it. Both set up what is missing.
# docs/development/README.md says which tests to run when.

GO      ?= go
BIN     := bin/pgconsent
PKG     ?= ./...
FUZZ    ?= 60s
ROWS    ?= 1000000
SEED    ?= 1
DEMO    ?= --tour

# The command behind the tests, and what it compiles, have the same settings, so that nothing is compiled twice: paths that do
# not name this clone (another clone can use what this one has compiled), no debug information, and few garbage collections.
RUN     := GOGC=$(or $(GOGC),400) GOFLAGS='$(strip $(GOFLAGS) -trimpath -gcflags=all=-dwarf=false)' $(GO) run ./test/run

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

# What random tests begin at, and how many cases they make: see test/tier.
export PGCONSENT_SEED := $(SEED)
ifdef CASES
export PGCONSENT_CASES := $(CASES)
endif

.PHONY: help demo test test-all test-nightly matrix bench-plans bench-wire bench-available build static setup check fuzz noninterference answers messages triples history mutants kills soak clean

help: ## what there is to make
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile

demo: setup build ## start a real PostgreSQL with an example, the proxy before it, play a tour, go on serving
	@echo "demo: starting; Ctrl-C stops it and what it started, the next start resumes"
	@exec $(BIN) demo $(DEMO)

test: setup ## check the code and test it against a real PostgreSQL: some five minutes; before every commit
	@$(RUN) $(PKG)

test-all: setup ## every test, -race where goroutines meet: some 22 minutes; before a change to what enforces lands
	@$(RUN) -all -race $(PKG)

test-nightly: setup ## what takes hours: every case of every list, random runs, broken variants, kills, fuzzing, PostgreSQL 15 to 18
	@PGCONSENT_NIGHTLY=1 PGCONSENT_POOL=session $(RUN) -all $(PKG)
	@PGCONSENT_NIGHTLY=1 PGCONSENT_POOL=transaction $(RUN) -all ./test/...
	@$(MAKE) noninterference answers messages history triples kills soak mutants fuzz matrix

matrix: setup ## the tests that depend on the server, on PostgreSQL 15 to 18, fetched where npm is there
	@sh scripts/matrix.sh

bench-plans: setup ## queries on ROWS (1000000) rows: by hand, and by each path; CPU times go to docs/explanation/performance.md (ten minutes, 3 GB)
	@PLANS_ROWS=$(ROWS) VECTORS_ROWS=$(ROWS) PLANS_OUT=$(CURDIR)/docs/explanation/performance.md $(GO) test -count=1 -v -timeout 120m -run "TestPlans|TestNearest|TestStar|TestBitmaps" ./test/plans

bench-wire: setup ## what standing between costs, beside PgBouncer (where it is installed) and nothing; goes to docs/explanation/performance.md (half an hour)
	@WIRE_ROUNDS=$(or $(N),5) WIRE_OUT=$(CURDIR)/docs/explanation/performance.md $(GO) test -count=1 -v -timeout 60m -run TestWire ./test/wire

bench-available: setup ## what agents notice of schema changes, SECONDS (60) for each kind, and of slow starts, and what catalog refreshes cost; goes to docs/explanation/performance.md
	@AVAILABLE_SECONDS=$(or $(SECONDS),60) AVAILABLE_OUT=$(CURDIR)/docs/explanation/performance.md $(GO) test -count=1 -v -timeout 60m -run "TestAvailable|TestStarts|TestCatalogRefreshes" ./test/available

check: ## format, vet, staticcheck
	@echo "check: gofmt"
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "not formatted (gofmt -w): $$unformatted" >&2; exit 1; fi
	@echo "check: go vet  (the first time the SQL parser is compiled: some minutes without output)"
	@$(GO) vet $(PKG)
	@echo "check: staticcheck"
	@$(GO) tool staticcheck $(PKG)

build: ## the program, as bin/pgconsent
	@echo "build: $(BIN)  (the first time the SQL parser is compiled: some minutes without output)"
	@$(GO) build -ldflags "-X main.version=$(VERSION)" -o $(BIN) ./cmd/pgconsent

static: ## the same without any library, for a container, as bin/pgconsent-static (Linux)
	@echo "static: $(BIN)-static  (the first time the SQL parser is compiled: some minutes without output)"
	@$(GO) build -tags netgo,osusergo -ldflags "-linkmode external -extldflags -static -X main.version=$(VERSION)" -o $(BIN)-static ./cmd/pgconsent

setup: ## install what is missing: C compiler, PostgreSQL, pgvector
	@sh scripts/setup.sh

fuzz: setup ## each fuzz target for FUZZ (60s)
	@set -e; for pkg in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "fuzz: $$pkg $$target for $(FUZZ)"; \
	    $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZ) $$pkg; \
	  done; \
	done

noninterference: setup ## N made cases (10000) from SEED on databases that differ in hidden rows only, and N on such that differ in hidden values
	@$(GO) test ./test/noninterference -run '^(TestNoninterference|TestValues)$$' -timeout 0 -v -args -cases $(or $(N),10000)

answers: setup ## N statements (10000) made up from SEED on the schemas of the oracle: answered as on copies without the hidden rows
	@$(GO) test ./test/oracle -run '^TestRandomAnswersEqualThoseOfAFilteredCopy$$' -timeout 0 -v -args -cases $(or $(N),10000)

messages: setup ## N sequences (10000) of protocol messages from SEED on twins and on PostgreSQL itself
	@$(GO) test ./test/messages -run '^TestRandomMessages$$' -timeout 0 -v -args -sequences $(or $(N),10000)

kills: setup ## kill the server N (1000) times at random while agents read: no answer without its record
	@PGCONSENT_CASES=$(or $(N),1000) $(GO) test -count=1 -timeout 4h -v -run '^TestKills$$' ./cmd/pgconsent

soak: setup ## agents in both modes of pools while networks and the server break, for FOR (10m) from SEED: a line for each round
	@$(GO) test ./test/faults -run '^TestSoak$$' -count=1 -timeout 0 -v -args -for $(or $(FOR),10m)

triples: setup ## hold both walls against the model on N (1000000) random rows, callers and clocks
	@PGCONSENT_NIGHTLY=1 PGCONSENT_CASES=$(or $(N),1000000) $(GO) test -count=1 -timeout 2h -v -run "^(TestTriples|TestDerivedFromEachOther)$$" ./internal/enforce/predicate

mutants: setup ## every broken variant made by hand, and MACHINE (200) by machine, against the harness
	@$(GO) test ./test/mutants -run 'TestMutants$$' -timeout 0 -v -args -hand -machine $(or $(MACHINE),200)

history: setup ## N histories (1000) of each way to read, of a consent that is withdrawn meanwhile; SEED plays one again
	@echo "history: $(or $(N),1000) of each way; a line for every hundred"
	@PGCONSENT_CASES=$(or $(N),1000) $(GO) test ./test/e2e -run '^TestHistory(OfTheRegistry)?$$' -v -count=1 -timeout 0

clean: ## what was built
	rm -rf bin
