package generalize

import (
	"slices"
	"strings"
	"unicode"

	unidecode "github.com/mozillazg/go-unidecode"
	"golang.org/x/text/unicode/norm"
)

// wordPart is a part of a word: a sequence of letters or of digits. In scripts without spaces between words each
// character is a part.
type wordPart struct {
	start, end      int    // where the part begins and ends in the text
	followsDirectly bool   // no character separates the part from the previous part
	before          string // the text between the previous part and this one, without invisible characters
	startsUpper     bool   // the part begins with a capital letter
	isTag           bool   // the part follows # or @
	// the script is one of India or a neighbouring country, which has no capital letters and writes vowels as marks
	isIndic bool
	script  script

	plainForm  string // the part in lower case, without marks
	noDoubles  string // plainForm with double letters written once
	expanded   string // lower case, with two letters for a letter with marks: ae for ä
	lookalike  string // the Latin letters that the characters look like
	latinForm  string // the part transliterated to Latin letters
	phonetic   string // roughly how latinForm sounds
	consonants string // the consonants of latinForm, with * where vowels are or may be
}

type script int

const (
	latin script = iota
	alphabeticScript
	consonantScript
	unspacedScript
	digitRun
)

func scriptOf(r rune) script {
	switch {
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao,
		unicode.Khmer, unicode.Myanmar, unicode.Bopomofo):
		return unspacedScript
	case unicode.In(r, unicode.Arabic, unicode.Hebrew, unicode.Syriac):
		return consonantScript
	case unicode.IsDigit(r):
		return digitRun
	case unicode.In(r, unicode.Latin):
		return latin
	default:
		return alphabeticScript
	}
}

var indicScripts = []*unicode.RangeTable{
	unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil,
	unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala,
	unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar,
}

// isInvisible reports whether a character is invisible, or only lengthens a sound, so that names are compared without
// it.
func isInvisible(r rune) bool {
	switch {
	case unicode.In(r, unicode.Cf, unicode.Mn, unicode.Me, unicode.Variation_Selector,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Co, unicode.Cs):
		return true
	case r == 'ー' || r == 'ッ' || r == 'っ' || r == 'ـ' || r == 'ｰ': // These characters lengthen a sound.
		return true
	case unicode.In(r, unicode.Mc) && !unicode.In(r, unicode.Myanmar, unicode.Khmer):
		return false
	}
	return unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r'
}

// emblemLetter returns the letter of a boxed or circled letter that Unicode does not decompose; ok is false for others.
func emblemLetter(r rune) (rune, bool) {
	for _, base := range []rune{0x1F1E6, 0x1F150, 0x1F170, 0x1F130} {
		if r >= base && r < base+26 {
			return 'A' + r - base, true
		}
	}
	return r, false
}

// decompose returns the letters of which a character consists according to Unicode, without marks.
func decompose(r rune) []rune {
	if e, ok := emblemLetter(r); ok {
		return []rune{e}
	}
	if unicode.In(r, unicode.Hangul, unicode.Hiragana, unicode.Katakana) {
		return []rune(norm.NFKC.String(string(r)))
	}
	var out []rune
	for _, d := range norm.NFKD.String(string(r)) {
		if !isInvisible(d) {
			out = append(out, d)
		}
	}
	return out
}

// isWordRune reports whether a character belongs to a word: a letter, a digit, or a sign that people write for a
// letter.
func isWordRune(r rune) bool {
	// Unicode calls these characters letters, but people read them as apostrophes.
	if r >= 'ʹ' && r <= 'ˁ' || r == 'ˮ' || r == 'Ꞌ' || r == 'ꞌ' {
		return false
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.In(r, unicode.Mc, unicode.Nl) || strings.ContainsRune("@$|", r)
}

// splitParts divides a text into word parts.
func splitParts(text string) []wordPart {
	var out []wordPart
	var runes []rune
	var current wordPart
	inPart := false
	before, joined := strings.Builder{}, false
	flush := func(end int) {
		if inPart {
			current.end = end
			current.computeForms(runes)
			out = append(out, current)
		}
		inPart, runes = false, nil
	}
	for offset, char := range text {
		if isInvisible(char) {
			continue
		}
		for _, r := range decompose(char) {
			if !isWordRune(r) {
				flush(offset)
				before.WriteRune(char)
				joined = false
				break
			}
			s := scriptOf(r)
			if strings.ContainsRune("@$|", r) {
				s = digitRun
			}
			beginsPart := inPart && (s == unspacedScript || current.script == unspacedScript ||
				(s == digitRun) != (current.script == digitRun) ||
				unicode.IsUpper(r) && unicode.IsLower(runes[len(runes)-1]))
			if beginsPart {
				flush(offset)
				joined = true
			}
			if !inPart {
				tag := strings.HasSuffix(before.String(), "#") || strings.HasSuffix(before.String(), "@")
				current = wordPart{isTag: tag, start: offset, followsDirectly: joined && before.Len() == 0 &&
					len(out) > 0, before: before.String(), startsUpper: unicode.IsUpper(r) || unicode.IsTitle(r), script: s}
				before.Reset()
				inPart, joined = true, false
			} else if s != latin && s != digitRun {
				// A word that mixes Latin letters with letters of another script counts as a word of the other script.
				current.script = s
			}
			runes = append(runes, r)
		}
	}
	flush(len(text))
	return out
}

// computeForms sets the forms in which the part is compared with names.
func (p *wordPart) computeForms(runes []rune) {
	var plainText, expandedText, lookalikeText, latinText strings.Builder
	for i, r := range runes {
		low := unicode.ToLower(r)
		switch low {
		case 'ß', 'ẞ':
			plainText.WriteString("ss")
		case 'ς':
			plainText.WriteRune('σ')
		case 'ı':
			plainText.WriteRune('i')
		case 'ø', 'đ', 'ł', 'ħ', 'ŧ', 'ð', 'þ', 'æ', 'œ':
			plainText.WriteString(plainLetters[low])
		default:
			plainText.WriteRune(low)
		}
		if l, ok := expandedLetters[low]; ok {
			expandedText.WriteString(l)
		} else {
			expandedText.WriteRune(low)
		}
		lookalikeText.WriteString(lookalikeOf(r))
		latinText.WriteString(romanisedLetter(runes, i))
	}
	p.isIndic = p.script != latin && p.script != digitRun &&
		slices.ContainsFunc(runes, func(r rune) bool { return unicode.In(r, indicScripts...) })
	p.plainForm = plainText.String()
	p.expanded = expandedText.String()
	p.lookalike = foldLookalikes(lookalikeText.String())
	p.latinForm = keepLetters(latinText.String())
	p.phonetic = phoneticForm(p.latinForm)
	p.consonants = consonantsOf(p.latinForm)
}

// plainLetters says which plain letters people type for letters that Unicode does not decompose, if their keyboard
// lacks them.
var plainLetters = map[rune]string{'ø': "o", 'đ': "d", 'ł': "l", 'ħ': "h", 'ŧ': "t", 'ð': "d", 'þ': "th", 'æ': "ae",
	'œ': "oe"}

// expandedLetters are letters that people also write as two letters.
var expandedLetters = map[rune]string{'ø': "oe", 'ß': "ss", 'þ': "th", 'æ': "ae", 'œ': "oe", 'ð': "dh"}

// umlautExpander replaces umlauts by two letters, as on keyboards without umlauts. It is only applied to names, because
// the forms of a text's words have no umlauts any more.
var umlautExpander = strings.NewReplacer("ä", "ae", "ö", "oe", "ü", "ue", "å", "aa", "Ä", "Ae", "Ö", "Oe", "Ü", "Ue",
	"Å", "Aa")

// keepLetters returns the Latin letters (in lower case), the digits and the * of a text, without its other characters.
func keepLetters(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '*':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return -1
	}, s)
}

// romanisedLetter transliterates the i-th letter of a word to Latin letters.
func romanisedLetter(word []rune, i int) string {
	r := unicode.ToLower(word[i])
	switch {
	case r < 0x80:
		return string(r)
	case unicode.In(r, unicode.Greek):
		if i > 0 {
			if _, ok := greekSounds[string(unicode.ToLower(word[i-1]))+string(r)]; ok {
				return ""
			}
		}
		if i+1 < len(word) {
			if pair, ok := greekSounds[string(r)+string(unicode.ToLower(word[i+1]))]; ok {
				return pair
			}
		}
		if l, ok := greekSounds[string(r)]; ok {
			return l
		}
	case unicode.In(r, unicode.Arabic, unicode.Hebrew):
		if l, ok := semiticLetters[r]; ok {
			return l
		}
	}
	return unidecode.Unidecode(string(r))
}

// greekSounds has the Latin letters for Greek letters and pairs of letters, by modern pronunciation.
var greekSounds = map[string]string{
	"η": "i", "υ": "i", "β": "v", "χ": "kh", "ω": "o", "θ": "th", "φ": "f", "ψ": "ps", "ξ": "x", "σ": "s", "ς": "s",
	"γ": "g", "ου": "u", "μπ": "b", "ντ": "d", "γκ": "g", "ει": "i", "οι": "i", "αι": "e",
}

// semiticLetters has the Latin letters for Arabic and Hebrew letters. * stands for a vowel or a letter that may be
// silent.
var semiticLetters = map[rune]string{
	'ا': "*", 'أ': "*", 'إ': "*", 'آ': "*", 'ء': "*", 'ئ': "*", 'ؤ': "*", 'ى': "*", 'ة': "*", 'ع': "*", 'ه': "*",
	'ح': "*", 'و': "*", 'ي': "*", 'ی': "*",
	'ب': "b", 'پ': "b", 'ت': "t", 'ث': "t", 'ج': "j", 'چ': "k", 'خ': "k", 'د': "d", 'ذ': "d", 'ر': "r", 'ز': "s",
	'ژ': "j", 'س': "s", 'ش': "s",
	'ص': "s", 'ض': "d", 'ط': "t", 'ظ': "s", 'غ': "g", 'ف': "f", 'ق': "k", 'ك': "k", 'ک': "k", 'گ': "g", 'ل': "l",
	'م': "m", 'ن': "n",
	'א': "*", 'ה': "*", 'ו': "*", 'ח': "*", 'י': "*", 'ע': "*",
	'ב': "b", 'ג': "g", 'ד': "d", 'ז': "s", 'ט': "t", 'כ': "k", 'ך': "k", 'ל': "l", 'מ': "m", 'ם': "m", 'נ': "n",
	'ן': "n", 'ס': "s",
	'פ': "f", 'ף': "f", 'צ': "s", 'ץ': "s", 'ק': "k", 'ר': "r", 'ש': "s", 'ת': "t",
}

var soundReplacer = strings.NewReplacer("*", "", "shch", "s", "sch", "s", "tch", "k", "dzh", "i", "dj", "i", "zh", "i",
	"kh", "k", "ch", "k", "ck", "k", "ph", "v", "th", "t",
	"sh", "s", "gh", "g", "ts", "s", "tz", "s", "x", "ks", "ee", "i", "oo", "u", "ou", "u", "c", "k", "q", "k",
	"w", "v", "f", "v", "y", "i", "j", "i", "z", "s", "l", "r", "h", "")

// phoneticForm returns roughly how a word in Latin letters sounds, so that different spellings of a name are equal.
func phoneticForm(s string) string { return dropDoubles(soundReplacer.Replace(s)) }

// dropDoubles returns a text with double letters written once: ana for anna.
func dropDoubles(s string) string {
	var b strings.Builder
	var previous rune
	for _, r := range s {
		if r != previous {
			b.WriteRune(r)
		}
		previous = r
	}
	return b.String()
}

var consonantReplacer = strings.NewReplacer("shch", "s", "sch", "s", "sh", "s", "kh", "k", "ch", "k", "ck", "k", "ph",
	"f", "th", "t", "ts", "s", "tz", "s", "x", "ks", "c", "k", "q", "k", "z", "s", "p", "b",
	"a", "*", "e", "*", "i", "*", "o", "*", "u", "*", "y", "*", "v", "*", "w", "*", "h", "*")

// consonantsOf returns the consonants of a word in Latin letters, with * for each sequence of vowels.
func consonantsOf(s string) string {
	return dropDoubles(consonantReplacer.Replace(s))
}

// lookalikeOf returns the Latin letter that a character looks like, or else its transliteration.
func lookalikeOf(r rune) string {
	if l, ok := lookalikes[r]; ok {
		return l
	}
	r = unicode.ToLower(r)
	if l, ok := lookalikes[r]; ok {
		return l
	}
	if r < 0x80 || scriptOf(r) == unspacedScript {
		return string(r)
	}
	return keepLetters(unidecode.Unidecode(string(r)))
}

// lookalikes are characters that look like a Latin letter but have another sound, or are not letters.
var lookalikes = map[rune]string{
	'а': "a", 'б': "b", 'в': "b", 'г': "r", 'е': "e", 'з': "e", 'и': "u", 'к': "k", 'м': "m", 'н': "h", 'о': "o",
	'п': "n", 'р': "p", 'с': "c", 'т': "t", 'у': "y", 'х': "x",
	'ц': "u", 'ш': "w", 'щ': "w", 'ь': "b", 'ъ': "b", 'э': "e", 'я': "r", 'і': "i", 'ј': "j", 'ѕ': "s", 'ԁ': "d",
	'һ': "h", 'ԛ': "q", 'ԝ': "w", 'є': "e", 'ӏ': "l", 'ѵ': "v", 'ԍ': "g", 'ү': "y",
	'α': "a", 'β': "b", 'γ': "y", 'δ': "d", 'ε': "e", 'η': "n", 'ι': "i", 'κ': "k", 'ν': "v", 'ο': "o", 'ρ': "p",
	'σ': "o", 'τ': "t", 'υ': "u", 'χ': "x", 'ω': "w", 'μ': "u", 'λ': "l", 'θ': "o",
	'Α': "a", 'Β': "b", 'Ε': "e", 'Ζ': "z", 'Η': "h", 'Ι': "i", 'Κ': "k", 'Μ': "m", 'Ν': "n", 'Ο': "o", 'Ρ': "p",
	'Τ': "t", 'Υ': "y", 'Χ': "x", 'Λ': "a", 'Σ': "e",
	'օ': "o", 'ո': "n", 'ս': "u", 'ց': "g", 'հ': "h", 'զ': "q", 'ա': "w", 'ե': "t", 'լ': "l", 'ѡ': "w",
	'Ꭺ': "a", 'Ᏼ': "b", 'Ꮯ': "c", 'Ꭰ': "d", 'Ꭼ': "e", 'Ꮐ': "g", 'Ꮋ': "h", 'Ꭵ': "i", 'Ꭻ': "j", 'Ꮶ': "k", 'Ꮮ': "l",
	'Ꮇ': "m", 'Ꮲ': "p", 'Ꮢ': "r", 'Ꮪ': "s", 'Ꭲ': "t", 'Ꮩ': "v", 'Ꮃ': "w", 'Ꮓ': "z",
	'ᴀ': "a", 'ʙ': "b", 'ᴄ': "c", 'ᴅ': "d", 'ᴇ': "e", 'ꜰ': "f", 'ɢ': "g", 'ʜ': "h", 'ɪ': "i", 'ᴊ': "j", 'ᴋ': "k",
	'ʟ': "l", 'ᴍ': "m", 'ɴ': "n", 'ᴏ': "o", 'ᴘ': "p", 'ʀ': "r", 'ꜱ': "s", 'ᴛ': "t",
	'ᴜ': "u", 'ᴠ': "v", 'ᴡ': "w", 'ʏ': "y", 'ᴢ': "z", 'ɑ': "a", 'ɡ': "g", 'ℓ': "l", 'ɩ': "i", 'ʋ': "v", 'ɐ': "a",
	'ǝ': "e", 'ə': "e", 'ɔ': "c", 'ɛ': "e", 'ɾ': "r", 'ɹ': "r", 'ʌ': "v", 'ƅ': "b",
	'ß': "b", 'ẞ': "b",
	'ꓐ': "b", 'ꓑ': "p", 'ꓓ': "d", 'ꓔ': "t", 'ꓖ': "g", 'ꓗ': "k", 'ꓙ': "j", 'ꓚ': "c", 'ꓜ': "z", 'ꓝ': "f", 'ꓟ': "m",
	'ꓠ': "n", 'ꓡ': "l", 'ꓢ': "s", 'ꓣ': "r", 'ꓦ': "v", 'ꓧ': "h", 'ꓪ': "w", 'ꓫ': "x", 'ꓬ': "y",
	'ꓮ': "a", 'ꓯ': "a", 'ꓰ': "e", 'ꓱ': "e", 'ꓲ': "i", 'ꓳ': "o", 'ꓴ': "u",
	'ᗩ': "a", 'ᗷ': "b", 'ᑕ': "c", 'ᗪ': "d", 'ᗴ': "e", 'ᖴ': "f", 'ᕼ': "h", 'ᒍ': "j", 'ᛕ': "k", 'ᒪ': "l", 'ᗰ': "m",
	'ᑎ': "n", 'ᑭ': "p", 'ᖇ': "r", 'ᔕ': "s", 'ᑌ': "u", 'ᐯ': "v", 'ᗯ': "w", '᙭': "x",
	'𐌀': "a", '𐌁': "b", '𐌂': "c", '𐌄': "e", '𐌉': "i", '𐌊': "k", '𐌋': "l", '𐌌': "m", '𐌍': "n", '𐌏': "o", '𐌓': "p",
	'𐌔': "s", '𐌕': "t", '𐌖': "v", '𐌗': "x",
	'0': "o", '1': "l", '3': "e", '4': "a", '5': "s", '7': "t", '8': "b", '9': "g", '6': "b", '2': "z", '@': "a",
	'$': "s", '|': "l", 'ǀ': "l",
}

var shapeReplacer = strings.NewReplacer("i", "l", "j", "l", "m", "rn", "w", "vv", "u", "v")

// foldLookalikes replaces Latin letters that look like each other by the same letters.
func foldLookalikes(s string) string { return shapeReplacer.Replace(s) }
