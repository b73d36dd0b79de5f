package attacks

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/oracle"
	"github.com/pgconsent/pgconsent/test/tier"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type attack struct {
	name     string
	messages []string
}

func readAttacks(t testing.TB, file string) []attack {
	t.Helper()
	var out []attack
	for block := range strings.SplitSeq(instance.ReadRepoFile(t, "test/attacks/testdata/"+file), "\n\n") {
		lines := strings.Split(strings.Trim(block, "\n"), "\n")
		if len(lines) < 2 {
			continue // the title
		}
		out = append(out, attack{strings.TrimPrefix(lines[0], "# "), lines[1:]})
	}
	return out
}

func schemaNamed(t testing.TB, name string) oracle.Schema {
	t.Helper()
	for _, s := range oracle.Schemas {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no schema %q", name)
	return oracle.Schema{}
}

// attackSchema sends the attacks of a schema's list to its twins. The list must have at least so many blocks and
// messages. In the nightly run it does so in every mode; otherwise it sends a fifth of the list in one mode, both
// chosen by the schema's number.
func attackSchema(t *testing.T, name string, schemaNumber, minBlocks, minMessages int) {
	t.Helper()
	list := readAttacks(t, name+".txt")
	if b, m := countAttacks(list); b < minBlocks || m < minMessages {
		t.Errorf("%d attacks with %d messages", b, m)
	}
	tier.All(t)
	t.Parallel() // each test has its own databases and proxies
	modes, control := modesOf(instance.Both, instance.Auto, instance.SignedViews), list
	if !tier.IsNightly() {
		modes = modes[schemaNumber%len(modes):][:1]
		list = everyFifth(list, schemaNumber)
	}
	attackTwins(t, schemaNamed(t, name), list, control, name+".sql", modes)
}

// everyFifth returns a fifth of a list; the number chooses which.
func everyFifth[T any](list []T, number int) []T {
	var out []T
	for i, item := range list {
		if tier.IsPicked(i+number, 5) {
			out = append(out, item)
		}
	}
	return out
}

// Attacks published elsewhere must get the same answers from both twins, in each mode that an operator may choose.
func TestKnownAttacks(t *testing.T) {
	list := readAttacks(t, "attacks.txt")
	if blocks, messages := countAttacks(list); blocks < 12 || messages < 150 {
		t.Errorf("%d attacks with %d messages", blocks, messages)
	}
	attackTwins(t, schemaNamed(t, "works"), list, list, "disturb.sql", modesOf(instance.Both, instance.Auto, instance.SignedViews))
}

// The hospital has partitions of partitions, domains, composite types, ranges, identity columns, views over views and
// hidden columns. Attacks on it must reveal and change no hidden row.
func TestAttacksOnAnotherSchema(t *testing.T) { attackSchema(t, "hospital", 0, 8, 300) }

// A CRM: names that need quotes, foreign keys of several columns into partitions, consent by records, masks, a
// materialized view, and functions that read.
func TestAttacksOnAThirdSchema(t *testing.T) { attackSchema(t, "crm", 1, 8, 300) }

// A hospital's wards: inheritance children, exclusion constraints, domains over arrays, composite types within
// composite types, trees, and rules over three schemas with odd names.
func TestAttacksOnWards(t *testing.T) { attackSchema(t, "ward", 2, 5, 350) }

// A marketplace as object-relational mappers create it: polymorphic owners, join tables without keys, hstore, citext
// and trigrams.
func TestAttacksOnABazaar(t *testing.T) { attackSchema(t, "bazaar", 3, 5, 250) }

// A planner's tables beside a warehouse: quoted names, a star schema, events in partitions, a materialized view, views
// over views, and functions of a row.
func TestAttacksOnAPlanner(t *testing.T) { attackSchema(t, "orbit", 4, 5, 300) }

// Documents, chats and memories of agents: similarity searches, functions that search, derived rows, and the owner's
// own row policies.
func TestAttacksOnMemories(t *testing.T) { attackSchema(t, "recall", 5, 5, 280) }

// A law firm's cases: keys of three columns, generic foreign keys, composite types in domains and arrays, and
// partitions by hash. It also has consents as a history, an aggregate, and functions of a row.
func TestAttacksOnADocket(t *testing.T) { attackSchema(t, "docket", 6, 5, 250) }

// Vehicles and readings: children of children, partitions by range and list, exclusion constraints, a setting that the
// session chooses, and a column by key only.
func TestAttacksOnAFleet(t *testing.T) { attackSchema(t, "fleet", 7, 5, 200) }

// A newsroom: keys into partitions of partitions, derived rows, contracts, and rows that show only as parts of groups.
// It also has domains over composites and ranges, its own casts and operators, deferred exclusion constraints, and
// unique keys over expressions and over some of the rows.
func TestAttacksOnANewsroom(t *testing.T) { attackSchema(t, "press", 8, 5, 300) }

// A company's family trees: pairs that show only if both ends do, and consents of living people and of representatives.
// It also has names that PostgreSQL reserves, a table without columns, and partitions with another column order. There
// are ltree and intarray, stored searches, and functions of every form.
func TestAttacksOnKin(t *testing.T) { attackSchema(t, "kin", 9, 5, 400) }

// A housing co-operative: rows with two time ranges, keys and exclusion constraints over computed values, an event
// store, and attributes stored as rows. It also has tables of one name in several schemas, keys of partitions, cascades
// into other people's rows, large objects, and procedures.
func TestAttacksOnAnEstate(t *testing.T) { attackSchema(t, "estate", 10, 5, 400) }

// Notes, chats and what assistants remember: a composite type with its own order, and a collation in which two
// spellings are equal. It also has defaults and triggers that run with their owner's rights, and counters, closure
// tables and searches that triggers maintain. There are foreign keys that set a default, and partitions by an
// expression.
func TestAttacksOnAScribe(t *testing.T) { attackSchema(t, "scribe", 11, 5, 500) }

// A payroll: columns of the rarer types and ranges of money, exclusion constraints and keys with conditions, a foreign
// table, and XML. It also has its own cast, aggregates, contracts by a live attribute, and derived rows in one policy.
func TestAttacksOnAPayroll(t *testing.T) { attackSchema(t, "payroll", 12, 5, 500) }

// Schools: a typed table, columns that hold rows of other tables, consents by purpose and stream, and people inside
// arrays of JSON. It also has materialized answers, views that take XML apart, and domains and indexes whose functions
// raise errors. There are statement triggers with transition tables, views with ties, rows as JSON, and set operations.
func TestAttacksOnACampus(t *testing.T) { attackSchema(t, "campus", 13, 3, 450) }

// A telephone company: call records in partitions of partitions, and consents to pings by records and by a setting that
// the session chooses. It also has reserved names, domains over domains, columns computed for searches, and deferred
// and deferrable keys. There are updatable views with checks over one another, recursive views, and defaults and masks
// on joined columns.
func TestAttacksOnACarrier(t *testing.T) { attackSchema(t, "carrier", 14, 5, 500) }

// A charity whose tables four object-relational mappers have created: join tables without keys, polymorphic comments
// and their versions, and joined and single-table inheritance. It also has consents as periods and inside documents,
// attribute rows about rows of several kinds, and partitions of partitions, one of them detached. There are names that
// pgconsent's SQL uses as well, ranges over an enum and over a domain, and a deferred constraint trigger.
func TestAttacksOnAlms(t *testing.T) { attackSchema(t, "alms", 15, 5, 600) }

// An airline: keys of three and four columns, partitions over two columns with hash partitions below, and consents by
// records whose subject is the row's own. It also has an array of a composite type under a domain, unlisted children,
// and foreign keys MATCH FULL and deferred. There is a view that is written through a trigger. One attribute is a
// setting that the session chooses, another is looked up.
func TestAttacksOnAloft(t *testing.T) { attackSchema(t, "aloft", 16, 5, 600) }

// An energy cooperative: consents as a history by stream, readings in monthly partitions, and tariffs and contracts
// that exclude one another in time. It also has multiranges, derived digests, domains over arrays and versions, and a
// generated search column. There are views of every form over one another, a materialized view behind two rules, and
// functions that return rows. One attribute is a setting that the session chooses, another is looked up.
func TestAttacksOnAGrid(t *testing.T) { attackSchema(t, "grid", 17, 5, 600) }

// A matchmaking app on Supabase: points, age ranges, embeddings in arrays, an ltree, pairs in canonical order, and
// members in arrays. It also has meetups in their own time zone, ranges of a time of day, periods and money, charges by
// hash, and swipes by list and then by hash. Patterns, zones, documents and search configurations are data. There are a
// view for the API and functions of a row. The plan is an attribute that is looked up, the thread a setting that the
// session chooses.
func TestAttacksOnTryst(t *testing.T) { attackSchema(t, "tryst", 18, 5, 600) }

// A company's memory for its agents: chunks, checkpoints and a store as LangGraph has them, and messages in monthly
// partitions. It also has consents with an expiry and by purpose, masks of nearly every kind, a recursive view, an
// hstore, an ltree, and a composite cost. There are an inheritance child, and a queue behind a view with a check
// option. The region is an attribute that is looked up, the conversation a setting that the session chooses.
func TestAttacksOnACortex(t *testing.T) { attackSchema(t, "cortex", 19, 5, 400) }

// A booking platform of several hotel brands: stays that exclude one another in time, consents by purpose and expiry,
// and an array of a composite type. It also has charges by month, payments by list and then by hash, and reviews in the
// language that each row names. There are a column of another collation, zones and points in rows, a domain that is
// never NULL, and a tree of tasks with watchers. There are views over views, statistics of two columns, and a hotel
// that the session chooses.
func TestAttacksOnALodge(t *testing.T) { attackSchema(t, "lodge", 20, 5, 600) }

// An insurer's claims department: people and firms as children of parties, a collation in which two spellings are
// equal, and keys of three columns. It also has clauses in a domain over an array, ranges and multiranges of money,
// reserves with two time ranges, and its own search configuration. There are an attribute that is looked up, tasks
// whose order is checked at COMMIT, a table that a rule keeps empty, and names that need quotes.
func TestAttacksOnASurety(t *testing.T) { attackSchema(t, "surety", 21, 5, 400) }

// A casting agency on Supabase: extensions in their own schema, consents of performers and of guardians for minors, and
// reels of several people. It also has availability as multiranges, texts of three collations, soft deletion, an event
// log by month, a SECURITY DEFINER trigger, and generated keys and searches. There are security barrier views, views
// over one another and views with a check option.
func TestAttacksOnATroupe(t *testing.T) { attackSchema(t, "troupe", 22, 5, 250) }

// A telephone practice: documents as FHIR servers store them. Their subject, clinic and code are generated columns,
// which decide who sees a row. It also has calls without the words of speakers who have not agreed. Consents are by
// purpose, of persons or their guardians, with a beginning and an end. There are agreements of clinics that refer to
// one another, transcripts whose spans exclude one another, summaries of several calls, slots, and queues.
func TestAttacksOnARemedy(t *testing.T) { attackSchema(t, "remedy", 23, 5, 400) }

// The agent compares a column with a value that does not depend on the row, and that raises an error or draws a random
// number. PostgreSQL computes such a value for each row that reaches the condition. Row policies must come first, so
// that no hidden row reaches it.
func TestPoliciesComeFirst(t *testing.T) {
	tier.All(t)
	list := slices.DeleteFunc(readAttacks(t, "aloft.txt"), func(a attack) bool {
		return !strings.HasPrefix(a.name, "what says nothing of a row")
	})
	if blocks, messages := countAttacks(list); blocks != 2 || messages < 100 {
		t.Errorf("%d attacks with %d messages", blocks, messages)
	}
	attackTwins(t, schemaNamed(t, "aloft"), list, list, "aloft.sql", modesOf(instance.Both, instance.Auto, instance.SignedViews))
}

func countAttacks(list []attack) (blocks, messages int) {
	for _, a := range list {
		messages += len(a.messages)
	}
	return len(list), messages
}

func attackTwins(t *testing.T, s oracle.Schema, list, controlAttacks []attack, twinFile string, modes []instance.Mode) {
	t.Helper()
	visible := instance.ReadRepoFile(t, "test/oracle/testdata/"+s.Name+"/visible.sql")
	twin := visible + instance.ReadRepoFile(t, "test/attacks/testdata/"+twinFile)
	for i, mode := range modes {
		one, two := s.BehindProxy(t), s.TwinBehindProxy(t, twin)
		proxies := []*instance.Proxy{instance.Start(t, mode, one, s.Attributes), instance.Start(t, mode, two, s.Attributes)}
		if i == 0 {
			requireTwinsDiffer(t, controlAttacks, one.DB, two.DB)
		}
		before, visibleRows := s.HiddenRows(t, one.DB), visibleText(t, proxies, s.Name)
		for _, a := range list {
			var got [2][]string
			for i, proxy := range proxies {
				c := proxy.Agent(t, "agent", s.Name)
				name := one.DB.Name
				if i == 1 {
					name = two.DB.Name
				}
				for m, message := range a.messages {
					if c.IsClosed() {
						c = proxy.Agent(t, "agent", s.Name)
					}
					send := instance.AskCopy
					if m%2 == 1 && mode.Name != instance.Both.Name && strings.HasPrefix(message, "SELECT ") && !strings.Contains(message, ";") {
						send = instance.AskBinary
					}
					got[i] = append(got[i], strings.ReplaceAll(send(c, message).SortedString(), name, "DATABASE"))
					// A transaction that fails within its own message would refuse all messages after it.
					if !c.IsClosed() && c.TxStatus() == 'E' && strings.HasPrefix(message, "BEGIN") && strings.Contains(message, ";") {
						instance.Ask(c, "ROLLBACK")
					}
				}
				_ = c.Close(context.Background())
			}
			for m, message := range a.messages {
				if got[0][m] != got[1][m] && !isSameErrorOfVisibleRows(got[0][m], got[1][m], visibleRows) {
					t.Errorf("%s, %s: %s\none:\n%s\ntwin:\n%s", mode.Name, a.name, message, instance.Truncate(got[0][m]), instance.Truncate(got[1][m]))
				}
			}
		}
		for _, proxy := range proxies {
			proxy.Tap().RequireNoMarker(t)
		}
		if after := s.HiddenRows(t, one.DB); after != before {
			t.Errorf("%s: hidden rows have changed\nbefore:\n%s\nafter:\n%s", mode.Name, before, after)
		}
	}
}

// requireTwinsDiffer is the control: without enforcement, at least 20 of the attacks that only read must answer
// differently on the twins.
func requireTwinsDiffer(t *testing.T, list []attack, one, two *pgtest.DB) {
	t.Helper()
	a, b := instance.ConnectSuperuser(t, one), instance.ConnectSuperuser(t, two)
	const enough = 20
	differing := 0
	for _, attack := range list {
		for _, message := range attack.messages {
			if strings.HasPrefix(message, "SELECT ") && !strings.Contains(message, ";") && !strings.Contains(message, "pg_") {
				if instance.Ask(a, message).SortedString() != instance.Ask(b, message).SortedString() {
					differing++
				}
				// 20 are enough: a later attack may return gigabytes without enforcement.
				if differing == enough {
					return
				}
			}
		}
	}
	t.Errorf("without walls only %d messages tell the twins apart", differing)
}

// Searches with pgvector: vectors of every type, of one dimension and of several, and with a small search width. There
// are indexes of a part of the rows, of casts and of partitions.
func TestAttacksOnAQuarry(t *testing.T) {
	list := readAttacks(t, "quarry.txt")
	if blocks, messages := countAttacks(list); blocks < 5 || messages < 190 {
		t.Errorf("%d attacks with %d messages", blocks, messages)
	}
	oracle.NeedsPgvector(t)
	attackTwins(t, oracle.VectorSchema, list, list, "quarry.sql", modesOf(instance.Both, instance.Auto, instance.SignedViews))
	attackTwins(t, oracle.VectorSchema.WithIndexPlans(), list, list, "quarry.sql", []instance.Mode{instance.Auto})
}
