package proxy

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	pgx3 "github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Whatever a client sends, and whatever is decided, no message goes upstream before it is decided and recorded. Nor
// does one go upstream that was decided under older rights than those of the seal.
func TestNothingGoesUpstreamUndecided(t *testing.T) {
	w := &watched{t: t, decided: map[int]*decided{}, ids: map[sentText]int{}, cached: map[string]*decided{}}
	p := start(t)
	w.listen(p.upstream().Address)
	p.edit = func(r *Route) {
		if r.Kind != Agent {
			return
		}
		r.Upstream.Address = w.address
		openDecider := r.Open
		r.Open = func(ctx context.Context, info SessionInfo) (verdict.Decider, error) {
			d, err := openDecider(ctx, info)
			return &moody{judge: d.(*judge), w: w, random: rand.New(rand.NewPCG(w.seed, 11)), repeats: rand.New(rand.NewPCG(w.seed, 13))}, err
		}
	}
	for seed := range conversations(30) {
		w.seed, w.rights = uint64(seed), 1
		r := rand.New(rand.NewPCG(uint64(seed), 12))
		script := conversation(r)
		for i, round := range script {
			script[i] = slices.Insert(round, r.IntN(len(round)+1), pgx3.FrontendMessage(&pgx3.FunctionCall{Function: 77}))
		}
		// Each third round is answered before the next: only then statements are found prepared.
		var again [][]pgx3.FrontendMessage
		for range 3 {
			again = append(again, nil, []pgx3.FrontendMessage{q("SELECT 7")}, nil, nil, []pgx3.FrontendMessage{pa("", "SELECT 8"), bi("", ""), ex("", 0), sy}, nil)
		}
		converse(t, p.raw(t), again)
		converse(t, p.raw(t), script)
		if t.Failed() {
			t.Fatalf("seed %d\n%s", seed, written(script))
		}
	}
	for description, n := range map[string]int{"executions": w.executions, "uses": w.uses, "refused uses": w.stale,
		"refused records": w.unrecorded, "seals": w.seals, "cached queries": w.cachedQueries, "uses of the cache": w.cachedBinds} {
		if n < 5 {
			t.Errorf("%d %s", n, description)
		}
	}
}

// watched is what was decided, and the way upstream, on which it is looked for.
type watched struct {
	t       *testing.T
	address string
	seed    uint64

	mu      sync.Mutex
	decided map[int]*decided
	ids     map[sentText]int    // the number of the last decision on a text
	cached  map[string]*decided // the statements that the proxy keeps prepared, by their names
	inQuery bool                // messages of a Query that runs a cached statement are passing
	rights  uint64              // the number of the rights that apply
	sealed  uint64              // the rights of the last seal that was sent

	released, executions, unrecorded int // released records, executions that went upstream, and refused records
	agreed, uses, stale, seals       int // rechecks that agreed, uses of prepared statements, rechecks that refused, and seals
	cachedQueries, cachedBinds       int
}

// sentText is a text, and how the client sends it.
type sentText struct {
	text     string
	extended bool
}

// decided is a text that was allowed.
type decided struct {
	text     string
	released int // how many of its records were released
	queried  int
	rights   uint64
	simple   bool
}

// moody allows and refuses at random, what was allowed before too, and cannot record everything. Each seal may be of
// new rights.
type moody struct {
	*judge
	w       *watched
	random  *rand.Rand
	repeats *rand.Rand // decides whether a repeated text gets the same number again
}

func (m *moody) Seal(context.Context, verdict.Backend) (verdict.Seal, error) {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	if m.random.IntN(4) == 0 {
		m.w.rights++
	}
	now := time.Now()
	return verdict.Seal{Setting: settingSeal, Value: fmt.Sprint("rights ", m.w.rights), RenewAfter: now,
		Expires: now.Add(time.Minute), Rights: m.w.rights}, nil
}

func (m *moody) Decide(ctx context.Context, text string, p verdict.Protocol) *verdict.Verdict {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	sent := sentText{text, p == verdict.Extended}
	id, isRepeated := m.w.ids[sent]
	if isRepeated = isRepeated && m.w.decided[id] != nil && m.repeats.IntN(2) == 0; !isRepeated {
		id = len(m.w.decided)
	}
	m.w.ids[sent] = id
	m.prefix = fmt.Sprintf("/*id %06d*/", id)
	v := m.judge.Decide(ctx, text, p)
	v.Rights, v.Detail = m.w.rights, id
	if ends(text) {
		v.Rights = math.MaxUint64
	}
	if isRepeated {
		m.w.decided[id].rights = v.Rights
		return v
	}
	m.w.decided[id] = &decided{text: text, rights: v.Rights, simple: p != verdict.Extended}
	if m.random.IntN(12) == 0 && !ends(text) {
		v.Refusal = sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonRelation, "refused")
	}
	if !v.Allowed() {
		delete(m.w.decided, id)
		m.w.decided[-id-1] = nil // keeps the numbers unique
	}
	return v
}

func (m *moody) Recheck(_ context.Context, v *verdict.Verdict) *verdict.Verdict {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	again := *v
	if m.random.IntN(8) == 0 {
		again.Refusal = planChanged()
		m.w.stale++
		return &again
	}
	if m.random.IntN(12) == 0 {
		again.Text += " "
		return &again
	}
	m.w.agreed++
	again.Rights = m.w.rights
	if id, ok := v.Detail.(int); ok {
		m.w.decided[id].rights = m.w.rights
	}
	return &again
}

func (m *moody) Record(v *verdict.Verdict, runs ...*verdict.Verdict) verdict.Ticket {
	return &moodyTicket{m.judge.Record(v, runs...), m, v}
}

type moodyTicket struct {
	verdict.Ticket
	m *moody
	v *verdict.Verdict
}

func (t *moodyTicket) Release() *sqlstate.Error {
	w := t.m.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.m.random.IntN(8) == 0 && !ends(t.v.Original) {
		w.unrecorded++
		return sqlstate.New(sqlstate.IOError, sqlstate.ReasonAudit, "not recorded")
	}
	w.released++
	if id, ok := t.v.Detail.(int); ok && w.decided[id] != nil {
		w.decided[id].released++
	}
	return nil
}

// ends tells whether a text is the one by which [converse] knows that all is answered.
func ends(text string) bool { return strings.HasPrefix(text, "end") }

// listen relays connections to the server, and looks at what goes there.
func (w *watched) listen(server string) {
	w.address = filepath.Join(w.t.TempDir(), "s")
	l, err := net.Listen("unix", w.address)
	if err != nil {
		w.t.Fatal(err)
	}
	var open sync.WaitGroup
	w.t.Cleanup(func() { l.Close(); open.Wait() })
	open.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			upstream, err := net.Dial("unix", server)
			if err != nil {
				client.Close()
				return
			}
			open.Go(func() { _, _ = io.Copy(client, upstream); client.Close() })
			open.Go(func() { w.relay(client, upstream); upstream.Close() })
		}
	})
}

// relay passes one connection's messages on.
func (w *watched) relay(client io.Reader, server io.Writer) {
	for typed := 0; ; typed = 1 { // the first message has no type
		head := make([]byte, typed+4)
		if _, err := io.ReadFull(client, head); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[typed:])-4)
		if _, err := io.ReadFull(client, body); err != nil {
			return
		}
		if typed == 1 {
			w.look(head[0], body)
		}
		if _, err := server.Write(append(head, body...)); err != nil {
			return
		}
	}
}

var tagged = regexp.MustCompile(`^/\*id ([0-9]+)\*/`)

// look holds a message to what was decided by now.
func (w *watched) look(typ byte, body []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	wrong := func(format string, args ...any) {
		w.t.Errorf("%c %q went upstream: %s", typ, body, fmt.Sprintf(format, args...))
	}
	own := func(name string) bool {
		return name == sealName || strings.HasPrefix(name, "denied_") || strings.HasPrefix(name, cachedPrefix) || name == unusedName
	}
	name := func(name string) {
		if name != "" && !strings.HasPrefix(name, "c:") && !strings.HasPrefix(name, "h:") && !own(name) {
			wrong("the name is the client's")
		}
	}
	check := func(d *decided) {
		switch upper := ""; {
		case d == nil:
			wrong("it was refused")
		default:
			upper, _, _ = strings.Cut(strings.ToUpper(d.text), " ")
			if d.rights < w.sealed && !strings.Contains("BEGIN COMMIT ROLLBACK SET RESET DEALLOCATE CLOSE", upper) {
				wrong("it is of rights %d, and the seal of %d", d.rights, w.sealed)
			}
		}
	}
	text := func(text string) *decided {
		m := tagged.FindStringSubmatch(text)
		if m == nil {
			if !strings.Contains(text, "denied_") && text != sealText && text != placeholderText && text != startTimeQuery+"; "+heapQuery(1<<20) {
				wrong("nobody decided it")
			}
			return nil
		}
		id, _ := strconv.Atoi(m[1])
		d := w.decided[id]
		check(d)
		return d
	}
	use := func() {
		if w.uses++; w.uses > w.agreed {
			wrong("%d uses, and %d were agreed to", w.uses, w.agreed)
		}
	}
	query := func(d *decided) {
		if d.queried++; d.queried > d.released {
			wrong("it runs %d times, and has %d records", d.queried, d.released)
		}
	}
	switch typ {
	case 'Q':
		var m pgx3.Query
		_ = m.Decode(body)
		if d := text(m.String); d != nil {
			query(d)
			w.executions++
		}
	case 'P':
		var m pgx3.Parse
		_ = m.Decode(body)
		name(m.Name)
		if d := text(m.Query); strings.HasPrefix(m.Name, cachedPrefix) {
			w.cached[m.Name] = d
		}
	case 'B':
		var m pgx3.Bind
		_ = m.Decode(body)
		if m.DestinationPortal == sealName {
			w.seals++
			n, _ := strconv.Atoi(strings.TrimPrefix(string(m.Parameters[1]), "rights "))
			w.sealed = uint64(n)
		}
		name(m.DestinationPortal)
		name(m.PreparedStatement)
		d := w.cached[m.PreparedStatement]
		switch w.inQuery = d != nil && d.simple; {
		case w.inQuery:
			w.cachedQueries++
			check(d)
			query(d)
		case d != nil:
			w.cachedBinds++
			check(d)
			use()
		case !own(m.PreparedStatement):
			use()
		}
	case 'D':
		var m pgx3.Describe
		_ = m.Decode(body)
		name(m.Name)
		if !w.inQuery && (!own(m.Name) || w.cached[m.Name] != nil) {
			use()
		}
	case 'E':
		var m pgx3.Execute
		_ = m.Decode(body)
		name(m.Portal)
		if own(m.Portal) {
			return
		}
		if !w.inQuery {
			use()
		}
		if w.executions++; w.executions > w.released {
			wrong("%d executions, and %d records", w.executions, w.released)
		}
	case 'C':
		var m pgx3.Close
		_ = m.Decode(body)
		name(m.Name)
		w.inQuery = false
	case 'S', 'H', 'X':
	default:
		wrong("no agent's message of this type does")
	}
}
