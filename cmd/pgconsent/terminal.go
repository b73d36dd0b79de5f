package main

import (
	"io"
	"os"
	"regexp"
	"sync"
	"unicode"
	"unicode/utf8"
)

// onTerminal is how to write to what may be a terminal; files and pipes, whose readers are programs, get what is written.
func onTerminal(w io.Writer) io.Writer {
	if !isDevice(w) {
		return w
	}
	return &plainWriter{to: w}
}

// isDevice tells whether it is a terminal, one without colours too.
func isDevice(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// plainWriter writes to a terminal, and lets no name or value of a database act on it: control characters, and those
// that turn the direction of text, are shown as \x1b or \u202e. The program's own colours pass, and nothing else that
// begins with an escape: what it prints may have been written by an agent.
type plainWriter struct {
	to   io.Writer
	mu   sync.Mutex
	rest []byte // the begin of a character whose end is in the next write
}

// ownColour is what the paint functions of the commands write.
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
		case r == utf8.RuneError && size == 1, acts(r) && r < 0x80:
			out = append(out, '\\', 'x', hex[text[0]>>4], hex[text[0]&15])
		case acts(r):
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

// acts tells whether a terminal does something else with a character than to show it.
func acts(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}
