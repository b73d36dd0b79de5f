package proxy

import (
	"bytes"
	"encoding/binary"
	"io"
	"regexp"
	"strings"
	"testing"

	pgx3 "github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// FuzzFrames: the proxy splits any bytes of a client into messages without a panic. No body exceeds its limit, and no
// more memory is held than bytes have arrived.
func FuzzFrames(f *testing.F) {
	f.Add(appendQuery(nil, "SELECT 1"), 1)
	f.Add(appendSync(appendExecute(appendBind(appendParse(nil, "a", "SELECT 1", []byte{0, 0}), "", "a", noParameters), "", 0)), 7)
	f.Add(binary.BigEndian.AppendUint32([]byte{'d'}, 1<<20), 100)
	f.Add([]byte{'Q', 0xff, 0xff, 0xff, 0xff}, 2)
	f.Add([]byte{'B', 0, 0xff, 0xff, 0xff}, 3)
	f.Add([]byte{0, 0, 0, 8, 0, 3, 0, 0}, 1)
	f.Fuzz(func(t *testing.T, b []byte, step int) {
		in := newInput(&stepReader{b, max(1, step%4096)})
		defer in.release()
		takenBytes := 0
		for {
			typ, body, ok, err := in.next()
			if err != nil {
				return
			}
			if ok {
				if limit, drop := maxBody(typ, defaultMaxText); limit < 0 || len(body) > limit || drop && body != nil {
					t.Fatalf("%c with a body of %d", typ, len(body))
				}
				takenBytes += 5 + len(body)
				decode(typ, body)
				continue
			}
			if err := in.fill(); err != nil {
				if err != io.EOF {
					t.Fatal(err)
				}
				break
			}
			if heldRows := len(in.bytes()); heldRows > 2*len(b)+bufferSize {
				t.Fatalf("%d bytes held for %d", heldRows, len(b))
			}
		}
		if takenBytes > len(b) {
			t.Fatalf("%d bytes out of %d", takenBytes, len(b))
		}
	})
}

// stepReader returns a few bytes per Read.
type stepReader struct {
	b    []byte
	step int
}

func (s *stepReader) Read(p []byte) (int, error) {
	if len(s.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.b[:min(s.step, len(s.b))])
	s.b = s.b[n:]
	return n, nil
}

// decode runs the decoder for a message type.
func decode(typ byte, body []byte) (encoded []byte, ok bool) {
	switch typ {
	case 'Q':
		text, ok := decodeQuery(body)
		return appendQuery(nil, text), ok
	case 'P':
		name, text, types, ok := decodeParse(body)
		return appendParse(nil, name, text, types), ok
	case 'B':
		portal, statement, rest, ok := decodeBind(body)
		return appendBind(nil, portal, statement, rest), ok
	case 'D', 'C':
		object, name, ok := decodeNamed(body)
		if typ == 'D' {
			return appendDescribe(nil, object, name), ok
		}
		return appendClose(nil, object, name), ok
	case 'E':
		portal, rows, ok := decodeExecute(body)
		return appendExecute(nil, portal, rows), ok
	}
	return nil, false
}

// FuzzClientMessages: an accepted message equals what the encoder makes of its fields, so no extra bytes pass
// unnoticed. An independent decoder accepts it too.
func FuzzClientMessages(f *testing.F) {
	f.Add(byte('Q'), []byte("SELECT 1\x00"))
	f.Add(byte('Q'), []byte{})
	f.Add(byte('P'), []byte("n\x00SELECT $1\x00\x00\x01\x00\x00\x00\x17"))
	f.Add(byte('B'), []byte("\x00\x00\x00\x00\x00\x01\xff\xff\xff\xff\x00\x00"))
	f.Add(byte('D'), []byte("Sx\x00"))
	f.Add(byte('C'), []byte("P\x00"))
	f.Add(byte('E'), []byte("\x00\x00\x00\x00\x05"))
	f.Fuzz(func(t *testing.T, typ byte, body []byte) {
		encoded, ok := decode(typ, body)
		if !ok {
			return
		}
		if want := appendMessage(nil, typ, body); !bytes.Equal(want, encoded) {
			t.Fatalf("%q became %q", want, encoded)
		}
		var independentMessage pgx3.FrontendMessage
		switch typ {
		case 'Q':
			independentMessage = &pgx3.Query{}
		case 'P':
			independentMessage = &pgx3.Parse{}
		case 'D':
			independentMessage = &pgx3.Describe{}
		case 'C':
			independentMessage = &pgx3.Close{}
		case 'E':
			independentMessage = &pgx3.Execute{}
		default:
			return
		}
		if err := independentMessage.Decode(body); err != nil {
			t.Fatalf("%q: %v", body, err)
		}
	})
}

// FuzzStartup: a startup packet is accepted or refused. The one that the proxy sends on has the same settings and the
// upstream database's name.
func FuzzStartup(f *testing.F) {
	f.Add([]byte("user\x00a\x00database\x00b\x00options\x00-c a=b\x00\x00"), uint32(protocol30))
	f.Add([]byte("user\x00a\x00_pq_.x\x001\x00\x00"), uint32(protocol30+9999))
	f.Add([]byte("user\x00"), uint32(protocol30))
	f.Add([]byte{}, uint32(2<<16))
	f.Fuzz(func(t *testing.T, body []byte, version uint32) {
		if len(body)+8 > maxStartupBytes {
			return
		}
		packet := binary.BigEndian.AppendUint32(nil, uint32(8+len(body)))
		packet = append(binary.BigEndian.AppendUint32(packet, version), body...)
		st, err := parseStartup(packet)
		if err != nil {
			return
		}
		st.negotiation()
		words := splitWords(st.options)
		for _, w := range words {
			if w == "" {
				t.Fatalf("an empty word in %q", st.options)
			}
		}
		_, _ = splitOptions(st.options)
		replayedPacket, err := st.replay("another")
		if err != nil {
			return
		}
		reparsed, err := parseStartup(replayedPacket)
		if err != nil || reparsed.database != "another" || reparsed.user != st.user || reparsed.options != st.options || len(reparsed.settings) != len(st.settings) {
			t.Fatalf("%+v became %+v: %v", st, reparsed, err)
		}
	})
}

// FuzzServerError: no error of the server is relayed with a field that is not on the list, or with names of pgconsent's
// own objects.
func FuzzServerError(f *testing.F) {
	f.Add([]byte("SERROR\x00VERROR\x00C22P02\x00Mbad\x00Dsecret\x00P7\x00Wctx\x00tt\x00\x00"))
	f.Add([]byte("SERROR\x00C23505\x00Mduplicate\x00DKey (id)=(1)\x00\x00"))
	f.Add([]byte("C42501\x00Mpgconsent.keys\x00\x00"))
	f.Add([]byte("M"))
	f.Fuzz(func(t *testing.T, body []byte) {
		e := &bindEntry{statement: "s"}
		e.name, e.verdict = "n", &verdict.Verdict{Rewritten: verdict.Rewritten{Position: func(p int) int { return p }}}
		fields := parseFields(body)
		fields.notice()
		b, code := fields.sanitisedMessage(e)
		var got pgx3.ErrorResponse
		if len(b) < 6 || int(binary.BigEndian.Uint32(b[1:])) != len(b)-1 || got.Decode(b[5:]) != nil {
			t.Fatalf("%q", b)
		}
		if got.Code != string(code) || len(got.Code) != 5 || got.Message == "" {
			t.Fatalf("%+v", got)
		}
		if got.Where != "" && !regexp.MustCompile(`^COPY, line [0-9]+$`).MatchString(got.Where) {
			t.Fatalf("%+v", got)
		}
		if got.SchemaName+got.TableName+got.ColumnName+got.DataTypeName+got.ConstraintName+got.File+got.Routine+
			got.InternalQuery != "" || got.Line+got.InternalPosition != 0 || len(got.UnknownFields) > 0 {
			t.Fatalf("%+v", got)
		}
		if strings.Contains(strings.ReplaceAll(got.Message+got.Detail+got.Hint, "`pgconsent doctor`", ""), internalName) {
			t.Fatalf("%+v", got)
		}
	})
}
