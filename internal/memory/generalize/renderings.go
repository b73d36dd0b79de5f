package generalize

import (
	"encoding/base64"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

var (
	markupPattern = regexp.MustCompile(`</?[A-Za-z][^<>]{0,200}>`)
	escapePattern = regexp.MustCompile(`\\u\{[0-9A-Fa-f]{1,6}\}|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}|\\x[0-9A-Fa-f]{2}`)
	base64Pattern = regexp.MustCompile(`[A-Za-z0-9+/_-]{6,}={0,2}`)
)

// alternativeReadings returns the text itself, and what a reader gets who decodes HTML, URLs, string escapes or Base64
// in it.
func alternativeReadings(text string) []string {
	out := []string{text}
	addReading := func(form string) {
		if form != text {
			out = append(out, form)
		}
	}
	addReading(html.UnescapeString(text))
	if unescaped, err := url.PathUnescape(text); err == nil {
		addReading(unescaped)
	}
	addReading(markupPattern.ReplaceAllString(text, ""))
	addReading(escapePattern.ReplaceAllStringFunc(text, decodeEscape))
	if found := decodeBase64(text); found != "" {
		addReading(found)
	}
	if strings.Contains(text, "|") { // The sign | may stand for a letter, or separate letters.
		addReading(strings.ReplaceAll(text, "|", " "))
	}
	if strings.ContainsRune(text, rightToLeftOverride) {
		addReading(applyRightToLeft(text))
	}
	if strings.ContainsAny(text, upsideDownOnly) {
		addReading(replaceUpsideDown(text))
	}
	return out
}

// decodeEscape returns the character that an escape sequence such as \u0041 stands for.
func decodeEscape(e string) string {
	n, err := strconv.ParseUint(strings.Trim(e[2:], "{}"), 16, 32)
	if err != nil || !utf8.ValidRune(rune(n)) {
		return e
	}
	return string(rune(n))
}

// decodeBase64 returns the decoded words of a text that are Base64 of readable text.
func decodeBase64(text string) string {
	var out []string
	for _, w := range base64Pattern.FindAllString(text, 200) {
		w = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(w, "="))
		b, err := base64.RawStdEncoding.DecodeString(w)
		if err == nil && utf8.Valid(b) && !slices.ContainsFunc(b, func(c byte) bool { return c < ' ' }) {
			out = append(out, string(b))
		}
	}
	return strings.Join(out, " ; ")
}

// upsideDownOnly has the letters that only upside-down text has. If a text has one of them, all its letters are
// replaced by their upright forms.
const upsideDownOnly = "ɐɔǝɟƃɓɥᴉıɾʞןɯɹʇʌʍʎ∀ƎℲ⅁Ɔ⅄Ԁ⊥"

var upsideDown = map[rune]rune{
	'ɐ': 'a', 'q': 'b', 'ɔ': 'c', 'p': 'd', 'ǝ': 'e', 'ɟ': 'f', 'ƃ': 'g', 'ɓ': 'g', 'ɥ': 'h', 'ᴉ': 'i', 'ı': 'i',
	'ɾ': 'j', 'ʞ': 'k', 'ן': 'l', 'ɯ': 'm', 'u': 'n', 'd': 'p', 'b': 'q', 'ɹ': 'r',
	'ʇ': 't', 'n': 'u', 'ʌ': 'v', 'ʍ': 'w', 'ʎ': 'y', '∀': 'A', 'Ǝ': 'E', 'Ⅎ': 'F', '⅁': 'G', 'Ɔ': 'C', '⅄': 'Y',
	'Ԁ': 'P', '⊥': 'T', 'M': 'W', 'W': 'M',
}

// replaceUpsideDown returns the upright form of a text that is written upside down.
func replaceUpsideDown(text string) string {
	r := []rune(text)
	for i := range r {
		if letter, ok := upsideDown[r[i]]; ok {
			r[i] = letter
		}
	}
	slices.Reverse(r)
	return string(r)
}

// These control characters begin and end text that is displayed from right to left.
const (
	rightToLeftOverride = '\u202e'
	endOfOverride       = '\u202c'
)

// applyRightToLeft returns a text with its characters in the order in which they are displayed.
func applyRightToLeft(text string) string {
	var out strings.Builder
	for i, part := range strings.Split(text, string(rightToLeftOverride)) {
		if i > 0 {
			end := strings.IndexAny(part, string(endOfOverride)+"\n\u2029")
			if end < 0 {
				end = len(part)
			}
			runes := []rune(part[:end])
			slices.Reverse(runes)
			out.WriteString(string(runes))
			part = part[end:]
		}
		out.WriteString(part)
	}
	return out.String()
}
