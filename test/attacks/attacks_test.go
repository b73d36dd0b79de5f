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

func attacks(t testing.TB, file string) []attack {
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

func schema(t testing.TB, name string) oracle.Schema {
	t.Helper()
	for _, s := range oracle.Schemas {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no schema %q", name)
	return oracle.Schema{}
}

// onSchema attacks twins of a schema by its list, of at least so many blocks and messages: in the nightly run in every
// mode, else by every third block in one mode, which the schema's number chooses.
func onSchema(t *testing.T, name string, number, blocks, messages int) {
	t.Helper()
	list := attacks(t, name+".txt")
	if b, m := count(list); b < blocks || m < messages {
		t.Errorf("%d attacks with %d messages", b, m)
	}
	tier.All(t)
	t.Parallel() // each has databases and proxies of its own
	modes, control := modesOf(instance.Both, instance.Auto, instance.SignedViews), list
	if !tier.IsNightly() {
		modes = modes[number%len(modes):][:1]
		list = everyFifth(list, number)
	}
	onTwins(t, schema(t, name), list, control, name+".sql", modes)
}

// everyFifth is a fifth of a list, the same for one number.
func everyFifth[T any](list []T, number int) []T {
	var out []T
	for i, item := range list {
		if tier.Turn(i+number, 5) {
			out = append(out, item)
		}
	}
	return out
}

// Attacks that are known from elsewhere tell twins apart in no mode that an operator may choose.
func TestKnownAttacks(t *testing.T) {
	list := attacks(t, "attacks.txt")
	if blocks, messages := count(list); blocks < 12 || messages < 150 {
		t.Errorf("%d attacks with %d messages", blocks, messages)
	}
	onTwins(t, schema(t, "works"), list, list, "disturb.sql", modesOf(instance.Both, instance.Auto, instance.SignedViews))
}

// Nor do attacks on a schema with what the others lack: partitions of partitions, domains, composite types, ranges,
// identity columns, views over views, hidden columns; and what they write reaches no hidden row.
func TestAttacksOnAnotherSchema(t *testing.T) { onSchema(t, "hospital", 0, 8, 300) }

// A third schema: names that need quotes, foreign keys of several columns into partitions, consent by records, masks, a
// materialised view, functions that read.
func TestAttacksOnAThirdSchema(t *testing.T) { onSchema(t, "crm", 1, 8, 300) }

// A hospital's wards: children of a table, exclusion constraints, domains over arrays, composite types within composite
// types, trees, rules over three schemas with odd names.
func TestAttacksOnWards(t *testing.T) { onSchema(t, "ward", 2, 5, 350) }

// A marketplace as mappers make it: polymorphic owners, join tables without keys, hstore, citext, trigrams.
func TestAttacksOnABazaar(t *testing.T) { onSchema(t, "bazaar", 3, 5, 250) }

// A planner's tables beside a warehouse: quoted names, a star schema, events in partitions, a materialised view, views
// over views, functions of a row.
func TestAttacksOnAPlanner(t *testing.T) { onSchema(t, "orbit", 4, 5, 300) }

// Documents, chats and memories of agents: searches by likeness, functions that search, rows made from others, the
// owner's own row policies.
func TestAttacksOnMemories(t *testing.T) { onSchema(t, "recall", 5, 5, 280) }

// A law firm's cases: keys of three columns, generic foreign keys, composite types in domains and arrays, partitions by
// hash, consents as a history, an aggregate and functions of a row.
func TestAttacksOnADocket(t *testing.T) { onSchema(t, "docket", 6, 5, 250) }

// Vehicles and readings: children of children, partitions by range and list, exclusion constraints, a session's own
// choice, a column by key only.
func TestAttacksOnAFleet(t *testing.T) { onSchema(t, "fleet", 7, 5, 200) }

// A newsroom: keys into partitions of partitions, rows made from rows, contracts, groups only, domains over composites
// and ranges, casts and operators of its own, deferred exclusion, unique keys of expressions and of a part of the rows.
func TestAttacksOnANewsroom(t *testing.T) { onSchema(t, "press", 8, 5, 300) }

// A company's family trees: pairs that need both ends, consents of the living and of who speaks for them, names that
// PostgreSQL has for itself, a table without columns, parts whose columns stand elsewhere, ltree and intarray, searches
// kept in rows, functions of every form.
func TestAttacksOnKin(t *testing.T) { onSchema(t, "kin", 9, 5, 400) }

// A housing co-operative: rows with two times, keys and exclusions over what is computed, an event store, attributes as
// rows, tables of one name in several schemas, keys of parts of a table, cascades into rows of others, large objects,
// procedures.
func TestAttacksOnAnEstate(t *testing.T) { onSchema(t, "estate", 10, 5, 400) }

// Notes, chats and what assistants remember: a composite type with an order of its own, text of which two spellings are
// equal, defaults and triggers that run with their owner's rights, counters, closures and searches kept by triggers,
// foreign keys that set a default, partitions by an expression.
func TestAttacksOnAScribe(t *testing.T) { onSchema(t, "scribe", 11, 5, 500) }

// A payroll: columns of the rarer types and ranges of money, exclusions and keys with conditions, a foreign table, XML,
// a cast of its own, aggregates, contracts by a live attribute and derived rows in one policy.
func TestAttacksOnAPayroll(t *testing.T) { onSchema(t, "payroll", 12, 5, 500) }

// Schools: a table of a type, columns that hold rows of other tables, consents by purpose and stream, people inside
// arrays of JSON, answers that are kept, XML taken apart by views, domains and indexes whose functions raise errors,
// statements' triggers with tables of what changed, views with ties, rows as JSON and set operations.
func TestAttacksOnACampus(t *testing.T) { onSchema(t, "campus", 13, 3, 450) }

// A telephone company: call records in partitions of partitions, consents to pings by records and a session's own
// choice, names that are reserved or PostgreSQL's own, domains over domains, numbers that rows and searches make of
// themselves, deferred and deferrable keys, updatable views with checks over one another, recursive views, defaults and
// masks on what joins.
func TestAttacksOnACarrier(t *testing.T) { onSchema(t, "carrier", 14, 5, 500) }

// A charity as four mappers have written to it: join tables without keys, polymorphic comments and their versions,
// joined and single-table inheritance, consents as periods and inside documents, attributes as rows about rows of
// several kinds, partitions of partitions one of which is detached, names that generated text uses itself, ranges over
// an enum and over a domain, a constraint trigger that is asked at the end.
func TestAttacksOnAlms(t *testing.T) { onSchema(t, "alms", 15, 5, 600) }

// An airline: keys of three and four columns, partitions over two columns and by hash beneath, consents by records
// whose subject is the row's own, an array of a composite type under a domain, children that the policy does not list,
// foreign keys MATCH FULL and deferred, a view that is written through a trigger, a session's own choice beside an
// attribute that is looked up.
func TestAttacksOnAloft(t *testing.T) { onSchema(t, "aloft", 16, 5, 600) }

// An energy cooperative: consents as a history by stream, readings in monthly partitions, tariffs and contracts that
// exclude one another in time, multiranges, digests made from notes, domains over arrays and versions, a generated
// search, views of every form over one another, a materialised view behind two rules, functions that give rows, a
// session's own choice beside an attribute that is looked up.
func TestAttacksOnAGrid(t *testing.T) { onSchema(t, "grid", 17, 5, 600) }

// A matchmaking app on Supabase: points, age ranges, embeddings in arrays, an ltree, pairs in canonical order, members
// in arrays, meetups in a zone of their own, ranges of a time of day, periods and money, charges by hash, swipes by
// list and then by hash, patterns, zones, documents and configurations of searches as data, a view of the API's own,
// functions of a row, a plan that is looked up beside a thread that the session chooses.
func TestAttacksOnTryst(t *testing.T) { onSchema(t, "tryst", 18, 5, 600) }

// A company's memory for its agents: chunks, checkpoints and a store as LangGraph keeps them, messages in monthly
// partitions, consents with an expiry and by purpose, masks of nearly every kind, a recursive view, an hstore, an
// ltree, a composite cost, a child by inheritance, a queue behind a view with a check option, a region that is looked
// up beside a conversation that the session chooses.
func TestAttacksOnACortex(t *testing.T) { onSchema(t, "cortex", 19, 5, 400) }

// A booking platform of several hotel brands: stays that exclude one another in time, consents by purpose and expiry,
// an array of a composite type, charges by month, payments by list and then by hash, reviews in the language that each
// row names, a column of another collation, zones and points in rows, a domain that is never NULL, an appointment's
// mapper, a tree of tasks with watchers, views over views, statistics of two columns, a hotel that the session chooses.
func TestAttacksOnALodge(t *testing.T) { onSchema(t, "lodge", 20, 5, 600) }

// An insurer's claims desk: people and firms as children of parties, texts of which two spellings are equal, keys of
// three columns, clauses in a domain over an array, ranges and multiranges of money, reserves in two times, a
// configuration of searches of its own, a desk that is looked up, tasks whose order is checked at the end, a table that
// a rule keeps empty, names that need quotes.
func TestAttacksOnASurety(t *testing.T) { onSchema(t, "surety", 21, 5, 400) }

// A casting agency on Supabase: extensions in a schema of their own, performers who agreed and guardians who must for
// minors, reels of several people, availability as multiranges, texts of three collations, soft deletion, an event log
// by month, a definer's trigger, generated keys and searches, views behind a barrier, over one another and with a
// check.
func TestAttacksOnATroupe(t *testing.T) { onSchema(t, "troupe", 22, 5, 250) }

// A telephone practice: documents as FHIR servers keep them, whose subject, clinic and code are computed from them, and
// whom a row shows to with these; calls without what speakers said who have not agreed, consents by purpose that begin
// and end, of persons or their guardians, agreements of clinics that refer to one another, transcripts whose spans
// exclude one another, summaries of several calls, slots, queues.
func TestAttacksOnARemedy(t *testing.T) { onSchema(t, "remedy", 23, 5, 400) }

// What a condition compares with may say nothing of the row, raise an error, or draw a random number; PostgreSQL works
// it out for the rows that come so far. Policies come before: each day, and not in turn.
func TestPoliciesComeFirst(t *testing.T) {
	tier.All(t)
	list := slices.DeleteFunc(attacks(t, "aloft.txt"), func(a attack) bool {
		return !strings.HasPrefix(a.name, "what says nothing of a row")
	})
	if blocks, messages := count(list); blocks != 2 || messages < 100 {
		t.Errorf("%d attacks with %d messages", blocks, messages)
	}
	onTwins(t, schema(t, "aloft"), list, list, "aloft.sql", modesOf(instance.Both, instance.Auto, instance.SignedViews))
}

func count(list []attack) (blocks, messages int) {
	for _, a := range list {
		messages += len(a.messages)
	}
	return len(list), messages
}

func onTwins(t *testing.T, s oracle.Schema, list, control []attack, disturb string, modes []instance.Mode) {
	t.Helper()
	visible := instance.ReadRepoFile(t, "test/oracle/testdata/"+s.Name+"/visible.sql")
	twin := visible + instance.ReadRepoFile(t, "test/attacks/testdata/"+disturb)
	for i, mode := range modes {
		one, two := s.BehindProxy(t), s.TwinBehindProxy(t, twin)
		proxies := []*instance.Proxy{instance.Start(t, mode, one, s.Attributes), instance.Start(t, mode, two, s.Attributes)}
		if i == 0 {
			tellsApart(t, control, one.DB, two.DB)
		}
		before, visibleRows := s.HiddenRows(t, one.DB), seen(t, proxies, s.Name)
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
					ask := instance.AskCopy
					if m%2 == 1 && mode.Name != instance.Both.Name && strings.HasPrefix(message, "SELECT ") && !strings.Contains(message, ";") {
						ask = instance.AskBinary
					}
					got[i] = append(got[i], strings.ReplaceAll(ask(c, message).SortedString(), name, "DATABASE"))
					// A transaction that fails within its own message would refuse all that comes after.
					if !c.IsClosed() && c.TxStatus() == 'E' && strings.HasPrefix(message, "BEGIN") && strings.Contains(message, ";") {
						instance.Ask(c, "ROLLBACK")
					}
				}
				_ = c.Close(context.Background())
			}
			for m, message := range a.messages {
				if got[0][m] != got[1][m] && !failsAlike(got[0][m], got[1][m], visibleRows) {
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

// tellsApart is the control, by a whole list: what only reads does tell the twins apart where there are no walls.
func tellsApart(t *testing.T, list []attack, one, two *pgtest.DB) {
	t.Helper()
	a, b := instance.ConnectSuperuser(t, one), instance.ConnectSuperuser(t, two)
	const enough = 20
	differ := 0
	for _, attack := range list {
		for _, message := range attack.messages {
			if strings.HasPrefix(message, "SELECT ") && !strings.Contains(message, ";") && !strings.Contains(message, "pg_") {
				if instance.Ask(a, message).SortedString() != instance.Ask(b, message).SortedString() {
					differ++
				}
				// Enough: one that comes later may give gigabytes where no wall stands before it.
				if differ == enough {
					return
				}
			}
		}
	}
	t.Errorf("without walls only %d messages tell the twins apart", differ)
}

// Retrieval with pgvector: vectors of every type, of one dimension and of several, searches that are told to look at
// little, indexes of a part of the rows, of casts and of partitions.
func TestAttacksOnAQuarry(t *testing.T) {
	list := attacks(t, "quarry.txt")
	if blocks, messages := count(list); blocks < 5 || messages < 190 {
		t.Errorf("%d attacks with %d messages", blocks, messages)
	}
	oracle.NeedsPgvector(t)
	onTwins(t, oracle.VectorSchema, list, list, "quarry.sql", modesOf(instance.Both, instance.Auto, instance.SignedViews))
	onTwins(t, oracle.VectorSchema.WithIndexPlans(), list, list, "quarry.sql", []instance.Mode{instance.Auto})
}
