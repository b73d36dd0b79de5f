package proxy

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// A malformed Bind fails with another error than a Bind with values of the wrong form.
func TestValuesOfABind(t *testing.T) {
	build := func(formats []uint16, values ...[]byte) []byte {
		b := binary.BigEndian.AppendUint16(nil, uint16(len(formats)))
		for _, f := range formats {
			b = binary.BigEndian.AppendUint16(b, f)
		}
		b = binary.BigEndian.AppendUint16(b, uint16(len(values)))
		for _, v := range values {
			if v == nil {
				b = binary.BigEndian.AppendUint32(b, ^uint32(0))
				continue
			}
			b = append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
		}
		return append(b, 0, 1, 0, 1)
	}
	v := &verdict.Verdict{Rewritten: verdict.Rewritten{Forms: map[int32]verdict.ValueForm{2: verdict.Pattern, 3: verdict.SearchWords}}}
	for _, c := range []struct {
		rest          []byte
		valuesFit, ok bool
	}{
		{build(nil), true, true},
		{build(nil, []byte(`\`), []byte("%x%"), []byte("a b")), true, true},
		{build([]uint16{1}, []byte("x"), nil, nil), true, true},
		{build([]uint16{0, 1, 0}, nil, []byte(`x\`), nil), false, true},
		{build([]uint16{0, 1, 0}, nil, nil, bytes.Repeat([]byte("x"), 3000)), false, true},
		{build([]uint16{0, 1, 0}, nil, []byte(`x\y`), bytes.Repeat([]byte("x "), 500)), true, true},
		{build([]uint16{0, 1, 0}, nil, nil, bytes.Repeat([]byte("x "), 3000)), false, true},
		{nil, false, false},
		{[]byte{0}, false, false},
		{[]byte{0, 9, 0, 1}, false, false},
		{[]byte{0, 0, 0}, false, false},
		{[]byte{0, 0, 0, 1, 0, 0}, false, false},
		{[]byte{0, 0, 0, 1, 0x7f, 0xff, 0xff, 0xff, 'x'}, false, false},
	} {
		if valuesFit, ok := valuesFit(v, c.rest); valuesFit != c.valuesFit || ok != c.ok {
			t.Errorf("%.40q: fits %t, ok %t", c.rest, valuesFit, ok)
		}
		if valuesFit, ok := valuesFit(&verdict.Verdict{}, c.rest); !valuesFit || !ok {
			t.Errorf("%.40q: a text that counts on nothing is looked at", c.rest)
		}
	}
}
