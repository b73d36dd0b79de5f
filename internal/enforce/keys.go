package enforce

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/policy"
)

// A report about a person says which rows about them went to whom, and the log holds no data: of the tables that the
// policy names, outcomes have commitments to the keys of the rows that were returned, where the result has the key.
// Where it has not, the outcome says that any row may have been among them.

// maxKeys is how many rows of a table one outcome lists.
const maxKeys = 1000

// keyPart is a column of a relation that statements read, and what it is of the key of a table.
type keyPart struct {
	table string
	part  int
	of    int // columns of the key
}

// keyColumns are these columns, by the OID of the relation and the number of the column.
type keyColumns map[uint32]map[uint16]keyPart

// keyed are the tables among those of a text that have the keys of rows recorded. single tells that each row of its
// result is one of the only one.
func (st *state) keyed(statements []policy.Statement) (tables []string, single bool) {
	accesses := 0
	for _, s := range statements {
		accesses += len(s.Accesses)
		for _, a := range s.Accesses {
			if t, ok := st.policy.Table(a.Relation); ok && t.AuditKeys && !slices.Contains(tables, a.Relation.String()) {
				tables = append(tables, a.Relation.String())
			}
		}
	}
	return tables, len(statements) == 1 && statements[0].SingleTable && len(tables) == 1 && accesses == 1
}

// returned are the keys of the rows that an execution has returned.
type returned struct {
	session *session
	tables  []string
	single  bool
	columns keyColumns

	seen        int64 // rows
	described   []byte
	formats     []int16
	known       bool
	places      map[string][]int // of each table's key in a row, by its parts
	types       []uint32
	binary      []bool
	commitments map[string][]string
	incomplete  map[string]bool
}

// keysOf makes it for an execution; nil: nothing is recorded of its rows.
func (s *session) keysOf(v *verdict.Verdict, runs []*verdict.Verdict) *returned {
	var tables []string
	single := false
	reads := func(v *verdict.Verdict) {
		j, ok := v.Detail.(*judgement)
		if !ok || !v.Allowed() {
			return
		}
		for _, t := range j.keyed {
			if !slices.Contains(tables, t) {
				tables = append(tables, t)
			}
		}
		single = j.single && len(runs) == 0
	}
	reads(v)
	for _, run := range runs {
		reads(run)
	}
	if len(tables) == 0 {
		return nil
	}
	r := &returned{session: s, tables: tables, single: single, commitments: map[string][]string{},
		incomplete: map[string]bool{}}
	if columns := s.db.keyColumns.Load(); columns != nil {
		r.columns = *columns
	}
	return r
}

var _ verdict.KeyReader = (*ticket)(nil)

// ReadsKeys tells whether rows are looked at.
func (t *ticket) ReadsKeys() bool { return t.keys != nil }

// Row looks at one.
func (t *ticket) Row(description []byte, formats []int16, row []byte) {
	t.keys.row(description, formats, row)
}

func (r *returned) row(description []byte, formats []int16, row []byte) {
	r.seen++
	if !r.known || len(description) != len(r.described) || len(description) > 0 && &description[0] != &r.described[0] {
		r.known, r.described, r.formats = true, description, formats
		r.describe()
	}
	values, ok := fields(row)
	for _, table := range r.tables {
		places := r.places[table]
		list := r.commitments[table]
		if !ok || len(places) == 0 || len(list) >= maxKeys {
			r.incomplete[table] = true
			continue
		}
		key := make([]string, len(places))
		whole := true
		for i, at := range places {
			if at >= len(values) || values[at] == nil {
				whole = false
				break
			}
			if key[i], whole = printed(values[at], r.types[at], r.binary[at]); !whole {
				break
			}
		}
		commitment := ""
		if whole {
			commitment = r.session.e.cfg.Audit.Key().Commit(r.session.info.ID, table, key...)
		}
		switch {
		case commitment == "":
			r.incomplete[table] = true
		case !slices.Contains(list, commitment):
			r.commitments[table] = append(list, commitment)
		}
	}
}

// describe finds the keys in a RowDescription.
func (r *returned) describe() {
	r.places, r.types, r.binary = map[string][]int{}, nil, nil
	b := r.described
	if len(b) < 2 {
		return
	}
	n := int(binary.BigEndian.Uint16(b))
	b = b[2:]
	found := map[string]map[int]int{}
	twice := map[string]bool{}
	for i := range n {
		end := slices.Index(b, 0)
		if end < 0 || len(b) < end+1+18 {
			return
		}
		field := b[end+1:]
		oid, number := binary.BigEndian.Uint32(field), binary.BigEndian.Uint16(field[4:])
		r.types = append(r.types, binary.BigEndian.Uint32(field[6:]))
		format := int16(binary.BigEndian.Uint16(field[16:]))
		if r.formats != nil {
			switch {
			case len(r.formats) == 0:
				format = 0
			case len(r.formats) == 1:
				format = r.formats[0]
			case i < len(r.formats):
				format = r.formats[i]
			}
		}
		r.binary = append(r.binary, format == 1)
		b = field[18:]
		part, ok := r.columns[oid][number]
		if !ok {
			continue
		}
		if found[part.table] == nil {
			found[part.table] = map[int]int{}
		}
		if _, again := found[part.table][part.part]; again {
			twice[part.table] = true // of two rows of it, nobody can say which part is whose
		}
		found[part.table][part.part] = i
		if len(found[part.table]) == part.of {
			places := make([]int, part.of)
			for p, at := range found[part.table] {
				places[p] = at
			}
			r.places[part.table] = places
		}
	}
	for table := range twice {
		delete(r.places, table)
	}
}

// fields are the values of a DataRow; nil: NULL.
func fields(row []byte) ([][]byte, bool) {
	if len(row) < 2 {
		return nil, false
	}
	n := int(binary.BigEndian.Uint16(row))
	row = row[2:]
	out := make([][]byte, 0, n)
	for range n {
		if len(row) < 4 {
			return nil, false
		}
		size := int32(binary.BigEndian.Uint32(row))
		row = row[4:]
		if size < 0 {
			out = append(out, nil)
			continue
		}
		if int64(len(row)) < int64(size) {
			return nil, false
		}
		out, row = append(out, row[:size:size]), row[size:]
	}
	return out, true
}

// printed is a value as PostgreSQL prints it; false for one of a type whose binary form is not known here.
func printed(value []byte, oid uint32, isBinary bool) (string, bool) {
	if !isBinary {
		return string(value), true
	}
	switch {
	case oid == 20 && len(value) == 8: // int8
		return strconv.FormatInt(int64(binary.BigEndian.Uint64(value)), 10), true
	case oid == 23 && len(value) == 4: // int4
		return strconv.FormatInt(int64(int32(binary.BigEndian.Uint32(value))), 10), true
	case oid == 21 && len(value) == 2: // int2
		return strconv.FormatInt(int64(int16(binary.BigEndian.Uint16(value))), 10), true
	case oid == 2950 && len(value) == 16: // uuid
		h := hex.EncodeToString(value)
		return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:], true
	case oid == 25, oid == 1043: // text, varchar
		return string(value), true
	default:
		return "", false
	}
}

// recorded is what the outcome says of the rows that were relayed.
func (r *returned) recorded(rows int64) []audit.Keys {
	if r == nil {
		return nil
	}
	var out []audit.Keys
	for _, table := range r.tables {
		exact := rows == 0 || r.single && r.seen == rows && !r.incomplete[table]
		out = append(out, audit.Keys{Table: table, Exact: exact, Rows: r.commitments[table]})
	}
	return out
}
