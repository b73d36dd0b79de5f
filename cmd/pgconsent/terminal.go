package main

import (
	"io"
	"os"
	"regexp"
	"sync"
	"unicode"
	"unicode/utf8"
)

// newTerminalWriter returns a writer that protects w if w is a terminal (see plainWriter). Files and pipes, which
// programs read, get the text unchanged.
func newTerminalWriter(w io.Writer) io.Writer {
	if !isDevice(w) {
		return w
	}
	return &plainWriter{writer: w}
}

// isDevice tells whether w is a terminal, even one without colours.
func isDevice(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// plainWriter protects a terminal from names and values in a database, which an agent may have written. It prints
// control characters, and characters that change the direction of text, as \x1b or \u202e. It lets through only those
// escape sequences that are the program's own colours.
type plainWriter struct {
	writer         io.Writer
	mu             sync.Mutex
	incompleteRune []byte // the first bytes of a character whose other bytes come with the next write
}

// colourSequence matches the escape sequences for colours that the program itself writes.
var colourSequence = regexp.MustCompile(`^\x1b\[(?:0|1|2|3[0-7])(?:;1)?m`)

func (p *plainWriter) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := append(p.incompleteRune, b...)
	p.incompleteRune = nil
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		if c := colourSequence.Find(text); c != nil {
			out, text = append(out, c...), text[len(c):]
			continue
		}
		if !utf8.FullRune(text) {
			p.incompleteRune = append([]byte(nil), text...)
			break
		}
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1, isUnsafeOnTerminal(r) && r < 0x80:
			out = append(out, '\\', 'x', hexDigits[text[0]>>4], hexDigits[text[0]&15])
		case isUnsafeOnTerminal(r):
			out = append(out, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
		default:
			out = append(out, text[:size]...)
		}
		text = text[size:]
	}
	if _, err := p.writer.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}

const hexDigits = "0123456789abcdef"

// isUnsafeOnTerminal tells whether a terminal might act on a character instead of showing it.
func isUnsafeOnTerminal(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}
