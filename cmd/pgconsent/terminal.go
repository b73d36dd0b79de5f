package main

import (
	"io"
	"os"
	"regexp"
	"sync"
	"unicode"
	"unicode/utf8"
)

// onTerminal returns a writer for what may be a terminal. Files and pipes, which programs read, are written unchanged.
func onTerminal(w io.Writer) io.Writer {
	if !isDevice(w) {
		return w
	}
	return &plainWriter{to: w}
}

// isDevice reports whether w is a terminal, also one without colours.
func isDevice(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// plainWriter protects a terminal from names and values of a database, which an agent may have written: control
// characters, and those that change the direction of text, are printed as \x1b or \u202e. Of escape sequences only the
// program's own colours pass.
type plainWriter struct {
	to   io.Writer
	mu   sync.Mutex
	rest []byte // the first bytes of a character whose rest comes with the next write
}

// ownColour matches the colours that the paint functions write.
var ownColour = regexp.MustCompile(`^\x1b\[(?:0|1|2|3[0-7])(?:;1)?m`)

func (p *plainWriter) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := append(p.rest, b...)
	p.rest = nil
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		if c := ownColour.Find(text); c != nil {
			out, text = append(out, c...), text[len(c):]
			continue
		}
		if !utf8.FullRune(text) {
			p.rest = append([]byte(nil), text...)
			break
		}
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1, isUnsafeOnTerminal(r) && r < 0x80:
			out = append(out, '\\', 'x', hex[text[0]>>4], hex[text[0]&15])
		case isUnsafeOnTerminal(r):
			out = append(out, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
		default:
			out = append(out, text[:size]...)
		}
		text = text[size:]
	}
	if _, err := p.to.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}

const hex = "0123456789abcdef"

// isUnsafeOnTerminal reports whether a terminal would act on a character instead of showing it.
func isUnsafeOnTerminal(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}
