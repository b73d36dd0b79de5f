package proxy

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	pgx3 "github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// originMapper is a decider that maps the columns of a view to those of the table behind it.
type originMapper struct{ verdict.Decider }

func (originMapper) ClientOrigin(o verdict.Origin) verdict.Origin {
	if o.Relation == 50000 {
		return verdict.Origin{Relation: 40000, Number: o.Number + 10}
	}
	return o
}

// TestDescriptions: in a RowDescription, however its bytes arrive, the proxy replaces each column's origin by the
// relation that the client named. Nothing else of the stream changes.
func TestDescriptions(t *testing.T) {
	manyFields := make([]pgx3.FieldDescription, 1664)
	for i := range manyFields {
		manyFields[i] = pgx3.FieldDescription{Name: []byte(strings.Repeat("n", 63)), TableOID: 50000,
			TableAttributeNumber: uint16(i), DataTypeOID: 25, DataTypeSize: -1, TypeModifier: -1}
	}
	for name, fields := range map[string][]pgx3.FieldDescription{
		"none": {}, "many": manyFields,
		"three": {
			{Name: []byte("a"), TableOID: 50000, TableAttributeNumber: 2, DataTypeOID: 23, DataTypeSize: 4, TypeModifier: -1, Format: 1},
			{Name: []byte(""), DataTypeOID: 50000}, {Name: []byte("T"), TableOID: 40000, TableAttributeNumber: 7, DataTypeOID: 50000},
		},
	} {
		steps := []int{1, 2, 3, 7, 19, 4096, bufferSize}
		if name == "many" {
			steps = steps[3:]
		}
		for _, step := range steps {
			t.Run(fmt.Sprintf("%s by %d", name, step), func(t *testing.T) {
				input, mappedOutput := rowDescription(t, fields, false), rowDescription(t, fields, true)
				got, failure := relayInSteps(t, input, step)
				if failure != nil || !bytes.Equal(got, mappedOutput) {
					t.Errorf("%v: %d bytes, not the %d of\n%.200q\n%.200q", failure, len(got), len(mappedOutput), got, mappedOutput)
				}
			})
		}
	}
}

// A malformed RowDescription ends the session.
func TestMalformedDescriptions(t *testing.T) {
	wellFormed := append(append([]byte{'T', 0, 0, 0, 6 + 20, 0, 1, 'a', 0}, make([]byte, 18)...), 'D')
	if _, failure := relayInSteps(t, wellFormed[:len(wellFormed)-1], 1); failure != nil {
		t.Fatal(failure)
	}
	for name, input := range map[string][]byte{
		"no count":           {'T', 0, 0, 0, 4, 'D', 0, 0},
		"half a count":       {'T', 0, 0, 0, 5, 0, 'D', 0},
		"columns of none":    {'T', 0, 0, 0, 7, 0, 0, 1},
		"less than it says":  append([]byte{'T', 0, 0, 0, 6 + 20, 0, 2}, wellFormed[7:]...),
		"more than it says":  append([]byte{'T', 0, 0, 0, 6 + 21, 0, 1}, wellFormed[7:]...),
		"a name without end": append([]byte{'T', 0, 0, 255, 255, 0, 1}, bytes.Repeat([]byte("a"), 9999)...),
	} {
		for _, step := range []int{1, 5, 1 << 16} {
			if _, failure := relayInSteps(t, input, step); failure == nil {
				t.Errorf("%s, by %d: goes on", name, step)
			}
		}
	}
}

// rowDescription returns a RowDescription and a row after it, as the server sends them, or mapped as the client must
// get them.
func rowDescription(t *testing.T, fields []pgx3.FieldDescription, isMapped bool) []byte {
	out := make([]pgx3.FieldDescription, len(fields))
	for i, f := range fields {
		if out[i] = f; isMapped && f.TableOID == 50000 {
			out[i].TableOID, out[i].TableAttributeNumber = 40000, f.TableAttributeNumber+10
		}
	}
	b, err := (&pgx3.RowDescription{Fields: out}).Encode(nil)
	if err == nil {
		b, err = (&pgx3.DataRow{Values: [][]byte{[]byte("T")}}).Encode(b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// relayInSteps relays an answer that arrives in pieces of step bytes, and returns what the client gets.
func relayInSteps(t *testing.T, input []byte, step int) (got []byte, _ error) {
	server, err := New(Config{Router: &testProxy{}})
	if err != nil {
		t.Fatal(err)
	}
	s := &session{conn: newConn(server, nil), ledger: newLedger(), decider: originMapper{}}
	s.ledger.push([]entry{&queryEntry{}})
	buf := make([]byte, bufferSize)
	o := newAnswers(s, &buf, nil)
	for len(input) > 0 {
		o.unreadEnd = copy(buf, buf[o.unreadStart:o.unreadEnd])
		o.unreadStart, o.passStart = 0, 0
		n := copy(buf[o.unreadEnd:min(len(buf), o.unreadEnd+step)], input)
		if n == 0 {
			t.Fatal("no room is left")
		}
		o.unreadEnd, input = o.unreadEnd+n, input[n:]
		failure := o.scan()
		got = append(append(got, o.inserted...), buf[o.passStart:o.unreadStart]...)
		o.inserted = o.inserted[:0]
		if failure != nil {
			return got, failure
		}
	}
	return got, nil
}
