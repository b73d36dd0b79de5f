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

// readings are a text as it stands, and what a page, an address or a program would make of it.
func renderings(text string) []string {
	out := []string{text}
	other := func(form string) {
		if form != text {
			out = append(out, form)
		}
	}
	other(html.UnescapeString(text))
	if plain, err := url.PathUnescape(text); err == nil {
		other(plain)
	}
	other(markupPattern.ReplaceAllString(text, ""))
	other(escapePattern.ReplaceAllStringFunc(text, unescape))
	if found := decodeBase64(text); found != "" {
		other(found)
	}
	if strings.Contains(text, "|") { // a letter's look, or a line between letters
		other(strings.ReplaceAll(text, "|", " "))
	}
	if strings.ContainsRune(text, rightToLeft) {
		other(visualOrder(text))
	}
	if strings.ContainsAny(text, upsideDownOnly) {
		other(turnUpright(text))
	}
	return out
}

// unescaped is the character that an escape of a program's text stands for.
func unescape(e string) string {
	n, err := strconv.ParseUint(strings.Trim(e[2:], "{}"), 16, 32)
	if err != nil || !utf8.ValidRune(rune(n)) {
		return e
	}
	return string(rune(n))
}

// decoded are the words of a text that are texts in base 64.
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

// The letters that are turned upside down, and what they are: those that are letters of their own as well only count
// beside one that is not.
const upsideDownOnly = "ɐɔǝɟƃɓɥᴉıɾʞןɯɹʇʌʍʎ∀ƎℲ⅁Ɔ⅄Ԁ⊥"

var upsideDown = map[rune]rune{
	'ɐ': 'a', 'q': 'b', 'ɔ': 'c', 'p': 'd', 'ǝ': 'e', 'ɟ': 'f', 'ƃ': 'g', 'ɓ': 'g', 'ɥ': 'h', 'ᴉ': 'i', 'ı': 'i',
	'ɾ': 'j', 'ʞ': 'k', 'ן': 'l', 'ɯ': 'm', 'u': 'n', 'd': 'p', 'b': 'q', 'ɹ': 'r',
	'ʇ': 't', 'n': 'u', 'ʌ': 'v', 'ʍ': 'w', 'ʎ': 'y', '∀': 'A', 'Ǝ': 'E', 'Ⅎ': 'F', '⅁': 'G', 'Ɔ': 'C', '⅄': 'Y',
	'Ԁ': 'P', '⊥': 'T', 'M': 'W', 'W': 'M',
}

// upright is a text as somebody reads it who stands on their head.
func turnUpright(text string) string {
	r := []rune(text)
	for i := range r {
		if letter, ok := upsideDown[r[i]]; ok {
			r[i] = letter
		}
	}
	slices.Reverse(r)
	return string(r)
}

// The marks that turn the direction of what follows, and end it.
const (
	rightToLeft = '\u202e'
	endOfTurn   = '\u202c'
)

// turned is a text in the order in which it is seen.
func visualOrder(text string) string {
	var out strings.Builder
	for i, part := range strings.Split(text, string(rightToLeft)) {
		if i > 0 {
			end := strings.IndexAny(part, string(endOfTurn)+"\n\u2029")
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
