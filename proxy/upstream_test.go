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

// Whatever a client sends, and whatever the decider decides, no message is sent to the server before it is decided and
// recorded. No message is sent that was decided for older rights than those in the session's seal.
func TestNothingGoesUpstreamUndecided(t *testing.T) {
	w := &upstreamWatch{t: t, decisions: map[int]*allowedText{}, textNumbers: map[sentText]int{}, cachedStatements: map[string]*allowedText{}}
	p := startProxy(t)
	w.listen(p.upstream().Address)
	p.editRoute = func(r *Route) {
		if r.Kind != Agent {
			return
		}
		r.Upstream.Address = w.address
		openDecider := r.Open
		r.Open = func(ctx context.Context, info SessionInfo) (verdict.Decider, error) {
			d, err := openDecider(ctx, info)
			return &randomDecider{fakeDecider: d.(*fakeDecider), watch: w, random: rand.New(rand.NewPCG(w.seed, 11)), repeatRandom: rand.New(rand.NewPCG(w.seed, 13))},
				err
		}
	}
	for seed := range conversationSeeds(15) {
		w.seed, w.rights = uint64(seed), 1
		r := rand.New(rand.NewPCG(uint64(seed), 12))
		script := randomConversation(r)
		for i, round := range script {
			script[i] = slices.Insert(round, r.IntN(len(round)+1), pgx3.FrontendMessage(&pgx3.FunctionCall{Function: 77}))
		}
		// In each third conversation, a round is answered before the next is sent. Only then are repeated statements
		// found prepared.
		var repeatedRounds [][]pgx3.FrontendMessage
		for range 3 {
			repeatedRounds = append(repeatedRounds, nil, []pgx3.FrontendMessage{q("SELECT 7")}, nil, nil,
				[]pgx3.FrontendMessage{pa("", "SELECT 8"), bi("", ""), ex("", 0), sy}, nil)
		}
		playConversation(t, p.connectRaw(t), repeatedRounds)
		playConversation(t, p.connectRaw(t), script)
		if t.Failed() {
			t.Fatalf("seed %d\n%s", seed, formatScript(script))
		}
	}
	for description, n := range map[string]int{"executions": w.executions, "uses": w.preparedUses, "refused uses": w.refusedRechecks,
		"refused records": w.refusedRecords, "seals": w.seals, "cached queries": w.cachedQueries, "uses of the cache": w.cachedBinds} {
		if n < 5 {
			t.Errorf("%d %s", n, description)
		}
	}
}

// upstreamWatch compares the messages that the proxy sends to the server with the decisions.
type upstreamWatch struct {
	t       *testing.T
	address string
	seed    uint64

	mu               sync.Mutex
	decisions        map[int]*allowedText
	textNumbers      map[sentText]int        // the number of the last decision on a text
	cachedStatements map[string]*allowedText // the statements that the proxy keeps prepared, by name
	inCachedQuery    bool                    // messages are passing that run a cached statement for a Query
	rights           uint64                  // the number of the current rights
	sealedRights     uint64                  // the rights of the last seal that was sent

	releasedRecords, executions, refusedRecords          int // releasedRecords records, executions that went upstream, and refused records
	agreedRechecks, preparedUses, refusedRechecks, seals int // rechecks that agreed, uses of prepared statements, rechecks that refused, and seals
	cachedQueries, cachedBinds                           int
}

// sentText is a text, with the protocol by which the client sends it.
type sentText struct {
	text     string
	extended bool
}

// allowedText is a text that was allowed.
type allowedText struct {
	text            string
	releasedRecords int // how many of its records were released
	runs            int
	rights          uint64
	isSimpleQuery   bool
}

// randomDecider allows and refuses at random, also texts that it allowed before, and sometimes fails to record. Each
// seal may be for new rights.
type randomDecider struct {
	*fakeDecider
	watch        *upstreamWatch
	random       *rand.Rand
	repeatRandom *rand.Rand // decides whether a repeated text gets the same number as before
}

func (m *randomDecider) Seal(context.Context, verdict.Backend) (verdict.Seal, error) {
	m.watch.mu.Lock()
	defer m.watch.mu.Unlock()
	if m.random.IntN(4) == 0 {
		m.watch.rights++
	}
	now := time.Now()
	return verdict.Seal{Setting: settingSeal, Value: fmt.Sprint("rights ", m.watch.rights), RenewAfter: now,
		Expires: now.Add(time.Minute), RightsEpoch: m.watch.rights}, nil
}

func (m *randomDecider) Decide(ctx context.Context, text string, p verdict.Protocol) *verdict.Verdict {
	m.watch.mu.Lock()
	defer m.watch.mu.Unlock()
	key := sentText{text, p == verdict.Extended}
	id, isRepeated := m.watch.textNumbers[key]
	if isRepeated = isRepeated && m.watch.decisions[id] != nil && m.repeatRandom.IntN(2) == 0; !isRepeated {
		id = len(m.watch.decisions)
	}
	m.watch.textNumbers[key] = id
	m.prefix = fmt.Sprintf("/*id %06d*/", id)
	v := m.fakeDecider.Decide(ctx, text, p)
	v.RightsEpoch, v.EnforcerDetail = m.watch.rights, id
	if isEndText(text) {
		v.RightsEpoch = math.MaxUint64
	}
	if isRepeated {
		m.watch.decisions[id].rights = v.RightsEpoch
		return v
	}
	m.watch.decisions[id] = &allowedText{text: text, rights: v.RightsEpoch, isSimpleQuery: p != verdict.Extended}
	if m.random.IntN(12) == 0 && !isEndText(text) {
		v.Refusal = sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonRelation, "refused")
	}
	if !v.IsAllowed() {
		delete(m.watch.decisions, id)
		m.watch.decisions[-id-1] = nil // numbers stay unique
	}
	return v
}

func (m *randomDecider) Recheck(_ context.Context, v *verdict.Verdict) *verdict.Verdict {
	m.watch.mu.Lock()
	defer m.watch.mu.Unlock()
	newVerdict := *v
	if m.random.IntN(8) == 0 {
		newVerdict.Refusal = planChanged()
		m.watch.refusedRechecks++
		return &newVerdict
	}
	if m.random.IntN(12) == 0 {
		newVerdict.Text += " "
		return &newVerdict
	}
	m.watch.agreedRechecks++
	newVerdict.RightsEpoch = m.watch.rights
	if id, ok := v.EnforcerDetail.(int); ok {
		m.watch.decisions[id].rights = m.watch.rights
	}
	return &newVerdict
}

func (m *randomDecider) Record(v *verdict.Verdict, runs ...*verdict.Verdict) verdict.Ticket {
	return &randomTicket{m.fakeDecider.Record(v, runs...), m, v}
}

type randomTicket struct {
	verdict.Ticket
	decider *randomDecider
	verdict *verdict.Verdict
}

func (t *randomTicket) Release() *sqlstate.Error {
	w := t.decider.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.decider.random.IntN(8) == 0 && !isEndText(t.verdict.Original) {
		w.refusedRecords++
		return sqlstate.New(sqlstate.IOError, sqlstate.ReasonAudit, "not recorded")
	}
	w.releasedRecords++
	if id, ok := t.verdict.EnforcerDetail.(int); ok && w.decisions[id] != nil {
		w.decisions[id].releasedRecords++
	}
	return nil
}

// isEndText returns whether a text is one that [converse] sends to find out that everything is answered.
func isEndText(text string) bool { return strings.HasPrefix(text, "end") }

// listen relays connections to the server, and checks the messages on them.
func (w *upstreamWatch) listen(server string) {
	w.address = filepath.Join(w.t.TempDir(), "s")
	l, err := net.Listen("unix", w.address)
	if err != nil {
		w.t.Fatal(err)
	}
	var openRelays sync.WaitGroup
	w.t.Cleanup(func() { l.Close(); openRelays.Wait() })
	openRelays.Go(func() {
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
			openRelays.Go(func() { _, _ = io.Copy(client, upstream); client.Close() })
			openRelays.Go(func() { w.relay(client, upstream); upstream.Close() })
		}
	})
}

// relay relays the messages of one connection.
func (w *upstreamWatch) relay(client io.Reader, server io.Writer) {
	for typeBytes := 0; ; typeBytes = 1 { // the first message has no type
		head := make([]byte, typeBytes+4)
		if _, err := io.ReadFull(client, head); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[typeBytes:])-4)
		if _, err := io.ReadFull(client, body); err != nil {
			return
		}
		if typeBytes == 1 {
			w.checkMessage(head[0], body)
		}
		if _, err := server.Write(append(head, body...)); err != nil {
			return
		}
	}
}

var numberComment = regexp.MustCompile(`^/\*id ([0-9]+)\*/`)

// checkMessage checks a message against the decisions so far.
func (w *upstreamWatch) checkMessage(typ byte, body []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	reportError := func(format string, args ...any) {
		w.t.Errorf("%c %q went upstream: %s", typ, body, fmt.Sprintf(format, args...))
	}
	isOwnName := func(name string) bool {
		return name == sealName || strings.HasPrefix(name, "denied_") || strings.HasPrefix(name, cachedPrefix) || name == unusedName
	}
	name := func(name string) {
		if name != "" && !strings.HasPrefix(name, "c:") && !strings.HasPrefix(name, "h:") && !isOwnName(name) {
			reportError("the name is the client's")
		}
	}
	check := func(d *allowedText) {
		switch upperText := ""; {
		case d == nil:
			reportError("it was refused")
		default:
			upperText, _, _ = strings.Cut(strings.ToUpper(d.text), " ")
			if d.rights < w.sealedRights && !strings.Contains("BEGIN COMMIT ROLLBACK SET RESET DEALLOCATE CLOSE", upperText) {
				reportError("it is of rights %d, and the seal of %d", d.rights, w.sealedRights)
			}
		}
	}
	text := func(text string) *allowedText {
		m := numberComment.FindStringSubmatch(text)
		if m == nil {
			if !strings.Contains(text, "denied_") && text != sealText && text != placeholderText && text != startTimeQuery+"; "+heapQuery(1<<20) {
				reportError("nobody decided it")
			}
			return nil
		}
		id, _ := strconv.Atoi(m[1])
		d := w.decisions[id]
		check(d)
		return d
	}
	countUse := func() {
		if w.preparedUses++; w.preparedUses > w.agreedRechecks {
			reportError("%d uses, and %d were agreed to", w.preparedUses, w.agreedRechecks)
		}
	}
	query := func(d *allowedText) {
		if d.runs++; d.runs > d.releasedRecords {
			reportError("it runs %d times, and has %d records", d.runs, d.releasedRecords)
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
			w.cachedStatements[m.Name] = d
		}
	case 'B':
		var m pgx3.Bind
		_ = m.Decode(body)
		if m.DestinationPortal == sealName {
			w.seals++
			n, _ := strconv.Atoi(strings.TrimPrefix(string(m.Parameters[1]), "rights "))
			w.sealedRights = uint64(n)
		}
		name(m.DestinationPortal)
		name(m.PreparedStatement)
		d := w.cachedStatements[m.PreparedStatement]
		switch w.inCachedQuery = d != nil && d.isSimpleQuery; {
		case w.inCachedQuery:
			w.cachedQueries++
			check(d)
			query(d)
		case d != nil:
			w.cachedBinds++
			check(d)
			countUse()
		case !isOwnName(m.PreparedStatement):
			countUse()
		}
	case 'D':
		var m pgx3.Describe
		_ = m.Decode(body)
		name(m.Name)
		if !w.inCachedQuery && (!isOwnName(m.Name) || w.cachedStatements[m.Name] != nil) {
			countUse()
		}
	case 'E':
		var m pgx3.Execute
		_ = m.Decode(body)
		name(m.Portal)
		if isOwnName(m.Portal) {
			return
		}
		if !w.inCachedQuery {
			countUse()
		}
		if w.executions++; w.executions > w.releasedRecords {
			reportError("%d executions, and %d records", w.executions, w.releasedRecords)
		}
	case 'C':
		var m pgx3.Close
		_ = m.Decode(body)
		name(m.Name)
		w.inCachedQuery = false
	case 'S', 'H', 'X':
	default:
		reportError("no agent's message of this type does")
	}
}
