package verdict

import "testing"

// A number of rows is looked at in text and in binary: none that is negative passes, whichever it is.
func TestNaturalNumbers(t *testing.T) {
	for value, want := range map[string]bool{
		"0": true, "20": true, "007": true, "99999999999999999999": true,
		"\x00\x00\x00\x14": true, "\x00\x14": true, "\x00\x00\x00\x00\x00\x00\x00\x14": true,
		"": false, "-1": false, "-123": false, " -5 ": false, "\t-5\n": false, "+5": false, " 20 ": false, "1e3": false, "2.5": false, "0x10": false,
		"\xff\xff\xff\xff": false, "\xff\xff": false, "\xff\xff\xff\xff\xff\xff\xff\xfe": false, "\x00": false, "\x00\x00\x01": false,
	} {
		if Natural.Holds([]byte(value)) != want {
			t.Errorf("%q: %t, want %t", value, !want, want)
		}
	}
	if !Natural.Holds(nil) {
		t.Error("NULL is no limit")
	}
}
