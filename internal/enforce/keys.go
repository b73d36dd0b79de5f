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

// A report about a person says who got which rows about them, but the audit log must hold no data. So the outcome
// record of an execution has commitments (keyed hashes) to the primary keys of the returned rows. This is done for the
// tables that the policy names. If the result lacks the key, the record says that any row may have been returned.

// maxKeys is how many keys of a table one outcome record lists.
const maxKeys = 1000

// keyColumn says which part of which table's primary key a column is.
type keyColumn struct {
	table     string
	position  int
	keyLength int // number of columns of the key
}

// keyColumns has the columns of primary keys, by the OID of the relation and the number of the column.
type keyColumns map[uint32]map[uint16]keyColumn

// keyRecordedTables returns the tables of a text for which the audit records the keys of returned rows. single is true
// if there is exactly one, and each row of the result is one of its rows.
func (st *state) keyRecordedTables(statements []policy.Statement) (tables []string, single bool) {
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

// returnedKeys are the keys of the rows that an execution has returned.
type returnedKeys struct {
	session     *session
	tables      []string
	singleTable bool
	columns     keyColumns

	rowCount         int64 // number of rows returned so far
	description      []byte
	formats          []int16
	isDescribed      bool
	positions        map[string][]int // the positions of each table's key columns in a row
	columnTypes      []uint32
	binaryFormat     []bool
	commitments      map[string][]string
	incompleteTables map[string]bool
}

// newReturnedKeys returns nil if the execution reads no table whose keys the audit records.
func (s *session) newReturnedKeys(v *verdict.Verdict, executed []*verdict.Verdict) *returnedKeys {
	var tables []string
	single := false
	addTables := func(v *verdict.Verdict) {
		j, ok := v.EnforcerDetail.(*judgement)
		if !ok || !v.IsAllowed() {
			return
		}
		for _, t := range j.keyRecordedTables {
			if !slices.Contains(tables, t) {
				tables = append(tables, t)
			}
		}
		single = j.singleTable && len(executed) == 0
	}
	addTables(v)
	for _, run := range executed {
		addTables(run)
	}
	if len(tables) == 0 {
		return nil
	}
	r := &returnedKeys{session: s, tables: tables, singleTable: single, commitments: map[string][]string{},
		incompleteTables: map[string]bool{}}
	if columns := s.db.keyColumns.Load(); columns != nil {
		r.columns = *columns
	}
	return r
}

var _ verdict.KeyReader = (*execution)(nil)

// ReadsKeys implements [verdict.KeyReader].
func (t *execution) ReadsKeys() bool { return t.keys != nil }

// Row implements [verdict.KeyReader].
func (t *execution) Row(description []byte, formats []int16, row []byte) {
	t.keys.addRow(description, formats, row)
}

func (r *returnedKeys) addRow(description []byte, formats []int16, row []byte) {
	r.rowCount++
	if !r.isDescribed || len(description) != len(r.description) || len(description) > 0 &&
		&description[0] != &r.description[0] {
		r.isDescribed, r.description, r.formats = true, description, formats
		r.locateKeyColumns()
	}
	values, ok := dataRowValues(row)
	for _, table := range r.tables {
		places := r.positions[table]
		list := r.commitments[table]
		if !ok || len(places) == 0 || len(list) >= maxKeys {
			r.incompleteTables[table] = true
			continue
		}
		key := make([]string, len(places))
		complete := true
		for i, position := range places {
			if position >= len(values) || values[position] == nil {
				complete = false
				break
			}
			if key[i], complete = valueAsText(values[position], r.columnTypes[position], r.binaryFormat[position]); !complete {
				break
			}
		}
		commitment := ""
		if complete {
			commitment = r.session.enforcer.cfg.Audit.Key().Commit(r.session.info.ID, table, key...)
		}
		switch {
		case commitment == "":
			r.incompleteTables[table] = true
		case !slices.Contains(list, commitment):
			r.commitments[table] = append(list, commitment)
		}
	}
}

// locateKeyColumns finds the positions of key columns in the RowDescription.
func (r *returnedKeys) locateKeyColumns() {
	r.positions, r.columnTypes, r.binaryFormat = map[string][]int{}, nil, nil
	b := r.description
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
		r.columnTypes = append(r.columnTypes, binary.BigEndian.Uint32(field[6:]))
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
		r.binaryFormat = append(r.binaryFormat, format == 1)
		b = field[18:]
		column, ok := r.columns[oid][number]
		if !ok {
			continue
		}
		if found[column.table] == nil {
			found[column.table] = map[int]int{}
		}
		if _, isDuplicate := found[column.table][column.position]; isDuplicate {
			twice[column.table] = true // The two columns may come from two rows of the table.
		}
		found[column.table][column.position] = i
		if len(found[column.table]) == column.keyLength {
			places := make([]int, column.keyLength)
			for p, at := range found[column.table] {
				places[p] = at
			}
			r.positions[column.table] = places
		}
	}
	for table := range twice {
		delete(r.positions, table)
	}
}

// dataRowValues returns the column values of a DataRow message; nil stands for NULL.
func dataRowValues(row []byte) ([][]byte, bool) {
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

// valueAsText returns a value as PostgreSQL prints it. It returns false for a value in binary format of a type that
// this function does not know.
func valueAsText(value []byte, oid uint32, isBinary bool) (string, bool) {
	if !isBinary {
		return string(value), true
	}
	switch {
	case oid == 20 && len(value) == 8: // the type int8
		return strconv.FormatInt(int64(binary.BigEndian.Uint64(value)), 10), true
	case oid == 23 && len(value) == 4: // the type int4
		return strconv.FormatInt(int64(int32(binary.BigEndian.Uint32(value))), 10), true
	case oid == 21 && len(value) == 2: // the type int2
		return strconv.FormatInt(int64(int16(binary.BigEndian.Uint16(value))), 10), true
	case oid == 2950 && len(value) == 16: // the type uuid
		h := hex.EncodeToString(value)
		return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:], true
	case oid == 25, oid == 1043: // the types text and varchar
		return string(value), true
	default:
		return "", false
	}
}

// auditKeys returns the part of the outcome record about the keys of the relayed rows.
func (r *returnedKeys) auditKeys(rows int64) []audit.Keys {
	if r == nil {
		return nil
	}
	var out []audit.Keys
	for _, table := range r.tables {
		exact := rows == 0 || r.singleTable && r.rowCount == rows && !r.incompleteTables[table]
		out = append(out, audit.Keys{Table: table, AreComplete: exact, Commitments: r.commitments[table]})
	}
	return out
}
