package generalize

import (
	"regexp"
	"strings"
)

// datePatterns match dates and times, in numbers and in words of several languages.
var datePatterns = compilePatterns(
	`\d{4}[-/.]\d{1,2}[-/.]\d{1,2}`, `\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}`, `\b(?:1[89]|20)\d{2}\b`,
	`\b\d{1,2}[:.]\d{2}(?:[:.]\d{2})?\s?(?:am|pm|uhr|h)\b`, `\b\d{1,2}:\d{2}\b`, `\b\d{1,2}\s?(?:am|pm|uhr|o'clock)\b`,
	`\d{2,4}\s?年`, `\d{1,2}\s?月(?:\s?\d{1,2}\s?[日号])?`, `\d{1,4}\s?년`, `\d{1,2}\s?월`,
	wholeWord(`january|february|march|april|june|july|august|september|october|november|december|jan|feb|apr|aug|sept|oct|nov|dec|`+
		`monday|tuesday|wednesday|thursday|friday|saturday|sunday|yesterday|tomorrow|tonight|easter|`+
		`christmas|halloween|thanksgiving|ramadan|hanukkah|diwali|`+
		`januar|februar|märz|mai|juni|juli|oktober|dezember|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonnabend|sonntag|`+
		`gestern|vorgestern|übermorgen|weihnachten|ostern|`+
		`janvier|février|mars|avril|juin|juillet|août|septembre|octobre|novembre|décembre|lundi|mardi|mercredi|jeudi|`+
		`vendredi|samedi|dimanche|hier|demain|noël|pâques|`+
		`enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre|lunes|martes|miércoles|`+
		`jueves|viernes|sábado|domingo|ayer|mañana|navidad|`+
		`gennaio|febbraio|aprile|maggio|giugno|luglio|settembre|ottobre|dicembre|lunedì|martedì|mercoledì|giovedì|`+
		`venerdì|sabato|domenica|ieri|domani|natale|pasqua|`+
		`janeiro|fevereiro|março|maio|junho|julho|setembro|outubro|novembro|dezembro|ontem|amanhã|natal|`+
		`januari|februari|maart|mei|augustus|maandag|dinsdag|woensdag|donderdag|vrijdag|zaterdag|zondag|gisteren|`+
		`январ[ьея]|феврал[ьея]|март[ае]?|апрел[ьея]|ма[йея]|июн[ьея]|июл[ьея]|август[ае]?|сентябр[ьея]|октябр[ьея]|ноябр[ьея]|декабр[ьея]|`+
		`понедельник|вторник|сред[ауы]|четверг|пятниц[ауы]|суббот[ауы]|воскресень[ея]|вчера|позавчера|завтра|`+
		`stycznia|lutego|marca|kwietnia|maja|czerwca|lipca|sierpnia|września|października|listopada|grudnia|poniedziałek|wtorek|`+
		`środa|czwartek|piątek|sobota|niedziela|wczoraj|jutro|`+
		`ocak|şubat|nisan|haziran|temmuz|ağustos|eylül|ekim|kasım|aralık|pazartesi|salı|çarşamba|perşembe|cuma|cumartesi|pazar|dün`),
	wholeWord(
		`(?:last|next|this past)\s+(?:week|weekend|month|year|spring|summer|autumn|fall|winter|night|monday|`+
			`tuesday|wednesday|thursday|friday|saturday|sunday)`),
	wholeWord(`(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|a few)\s+(?:days?|weeks?|months?|years?)\s+ago`),
	wholeWord(`in\s+(?:may|march)`), `\b(?:may|mar)\s+\d{1,2}\b`, `\b\d{1,2}(?:st|nd|rd|th)\b`,
	`昨天|前天|明天|去年|上周|上个月|星期[一二三四五六日天]|周[一二三四五六日]|昨日|先週|先月|[月火水木金土日]曜日|어제|지난주|[월화수목금토일]요일|أمس|الأحد|الاثنين|الثلاثاء|الأربعاء|الخميس|الجمعة|`+
		`السبت|אתמול|יום (?:ראשון|שני|שלישי|רביעי|חמישי|שישי)|שבת`,
)

// wholeWord returns a pattern that matches one of the alternatives as a whole word.
func wholeWord(alternatives string) string {
	return `(?:^|[^\p{L}\p{N}])(?:` + alternatives + `)(?:$|[^\p{L}\p{N}])`
}

func compilePatterns(patterns ...string) []*regexp.Regexp {
	var out []*regexp.Regexp
	for _, p := range patterns {
		out = append(out, regexp.MustCompile(`(?i)`+p))
	}
	return out
}

// findDates finds dates and times.
func findDates(text string) []Finding {
	return findMatches(text, datePatterns, "date", "it says when: consider whether that tells the source")
}

func findMatches(text string, patterns []*regexp.Regexp, kind, message string) []Finding {
	var out []Finding
	for _, p := range patterns {
		for _, bounds := range p.FindAllStringIndex(text, -1) {
			match := strings.TrimFunc(text[bounds[0]:bounds[1]], func(r rune) bool { return strings.ContainsRune(" \t\n,.;:!?()\"“”'’", r) })
			out = append(out, Finding{Check: CheckSpecificity, Level: LevelWarn, Kind: kind, Text: match, Message: message,
				start: bounds[0]})
		}
	}
	return out
}
