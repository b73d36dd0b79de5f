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

// alternativeReadings returns a text as it is, and as HTML, a URL, a string literal or Base64 would show it.
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
	if strings.Contains(text, "|") { // The sign | may look like a letter, or separate letters.
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

// decodeEscape returns the character of an escape sequence.
func decodeEscape(e string) string {
	n, err := strconv.ParseUint(strings.Trim(e[2:], "{}"), 16, 32)
	if err != nil || !utf8.ValidRune(rune(n)) {
		return e
	}
	return string(rune(n))
}

// decodeBase64 decodes the words of a text that are texts in Base64.
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

// upsideDownOnly gives the upright letter of letters that are turned upside down. Turned letters that are ordinary
// letters as well only count in a text with one that is not.
const upsideDownOnly = "ɐɔǝɟƃɓɥᴉıɾʞןɯɹʇʌʍʎ∀ƎℲ⅁Ɔ⅄Ԁ⊥"

var upsideDown = map[rune]rune{
	'ɐ': 'a', 'q': 'b', 'ɔ': 'c', 'p': 'd', 'ǝ': 'e', 'ɟ': 'f', 'ƃ': 'g', 'ɓ': 'g', 'ɥ': 'h', 'ᴉ': 'i', 'ı': 'i',
	'ɾ': 'j', 'ʞ': 'k', 'ן': 'l', 'ɯ': 'm', 'u': 'n', 'd': 'p', 'b': 'q', 'ɹ': 'r',
	'ʇ': 't', 'n': 'u', 'ʌ': 'v', 'ʍ': 'w', 'ʎ': 'y', '∀': 'A', 'Ǝ': 'E', 'Ⅎ': 'F', '⅁': 'G', 'Ɔ': 'C', '⅄': 'Y',
	'Ԁ': 'P', '⊥': 'T', 'M': 'W', 'W': 'M',
}

// replaceUpsideDown returns a text turned by 180 degrees.
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

// The control characters that begin and end text in right-to-left order.
const (
	rightToLeftOverride = '\u202e'
	endOfOverride       = '\u202c'
)

// applyRightToLeft returns a text in the order in which its characters are displayed.
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
