package generalize

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/pgconsent/pgconsent/test/property"
	"github.com/pgconsent/pgconsent/test/tier"
)

func judge(subject, alias, text string) Report {
	in := Input{Texts: []string{text}, Subjects: []Subject{{ID: subject}}}
	if alias != "" {
		in.Subjects[0].Aliases = strings.Split(alias, "|")
	}
	return CheckTexts(in)
}

// Names of the source's subjects are found in other forms, too: "Does the text contain names from source's subject_ids?
// → Block". They include forms that try to get past the check.
// seeds/003:87-89.
func TestNamesBlock(t *testing.T) {
	for _, c := range []struct{ subject, alias, text string }{
		{"dog:bella", "", "Bella needs exercise monitoring"},
		{"dog:bella", "", "BELLA needs it"}, {"dog:bella", "", "bElLa needs it"}, {"dog:bella", "", "Bella's heart"}, {"dog:bella", "", "Bella’s heart"},
		{"dog:bella", "", "the Bellas of this world"}, {"dog:bella", "", "Bélla, Bèllà and Bëlla"}, {
			"dog:bella", "", "Be-lla"}, {"dog:bella", "", "B-e-l-l-a"},
		{"dog:bella", "", "B e l l a"}, {"dog:bella", "", "B.e.l.l.a."}, {"dog:bella", "", "Be\u200blla"}, {
			"dog:bella", "", "B\u200de\u2060l\ufeffl\u00ada"},
		{"dog:bella", "", "Be\u0301l\u0332la"}, {"dog:bella", "", "Веllа in other letters"}, {
			"dog:bella", "", "ΒΕLLΑ"}, {"dog:bella", "", "B3lla"}, {"dog:bella", "", "Be11a"}, {"dog:bella", "", "8e||@"},
		{"dog:bella", "", "Ｂｅｌｌａ"}, {"dog:bella", "", "𝓑𝓮𝓵𝓵𝓪"}, {"dog:bella", "", "𝔹𝕖𝕝𝕝𝕒"}, {
			"dog:bella", "", "ⓑⓔⓛⓛⓐ"}, {"dog:bella", "", "🅱🅴🅻🅻🅰"}, {"dog:bella", "", "🇧🇪🇱🇱🇦"}, {"dog:bella", "", "ʙᴇʟʟᴀ"},
		{"dog:bella", "", "Белла"}, {"dog:bella", "", "у Беллы и о Белле, с Беллой"}, {"dog:bella", "", "Μπέλλα"}, {
			"dog:bella", "", "ベラ"}, {"dog:bella", "", "ベッラちゃん"}, {"dog:bella", "", "بيلا"}, {"dog:bella", "", "לבלה יש"}, {"dog:bella", "", "벨라는"},
		{"dog:bella", "", "bella_2019"}, {"dog:bella", "", "Bella2019"}, {"dog:bella", "", "@bella"}, {
			"dog:bella", "", "#TeamBella"}, {"dog:bella", "", "dog:bella"}, {"dog:bella", "", "B&#101;lla"},
		{"dog:bella", "", "B%65lla"}, {"dog:bella", "", "Be-\nlla"},
		{"dog:bella", "", "Beeellla"}, {"dog:bella", "", "Be/lla"}, {"dog:bella", "", "Be_lla"}, {
			"dog:bella", "", "Be lla"}, {"dog:bella", "", "\u202eBella\u202c"},
		{"human:sean", "", "Sean's son struggled"}, {"human:sean", "", "SEAN’S son"}, {"human:sean", "", "Seán"}, {
			"human:sean", "", "S3an"}, {"human:sean", "", "$ean"}, {"human:sean", "", "a Sean-like person"},
		{"human:sean_o_neil", "", "the O'Neils"}, {"human:1", "Sean O'Neil", "Oneil said"}, {"human:1", "Sean O’Neil", "Mr. O'Neil"},
		{"human:dr_smith", "", "as Smith says"}, {"human:student_123", "", "student_123"}, {
			"human:student_123", "", "Student 123 struggles"}, {"human:parent_456", "", "parent-456"},
		{"human:1", "Jürgen Müller", "Herr Mueller"}, {"human:1", "Jürgen Müller", "jurgen"}, {
			"human:1", "Jürgen Müller", "Juergens Hund"}, {"human:1", "Mueller", "Müllers Haus"},
		{"human:1", "Weiß", "Frau Weiss"}, {"human:1", "Sørensen", "Sorensen"}, {"human:1", "Sørensen", "Soerensens"},
		{"human:1", "Łukasz", "Lukasza"}, {"human:1", "Anna", "Annie, Annę and Anny"}, {
			"human:1", "José", "a Jose"}, {"human:1", "Zoë", "Zoe's"}, {"human:1", "Matti", "Matille ja Matin"},
		{"human:1", "Ayşe", "Ayse'nin"}, {"human:1", "Işık", "ISIK"},
		{"human:1", "Юлия", "Yulia"}, {"human:1", "Юлия", "Julia"}, {"human:1", "Юлия", "Юлии"}, {
			"human:1", "Юлия", "юлией"}, {"human:1", "Сергей", "Sergey"}, {"human:1", "Сергей", "Sergei's"},
		{"human:1", "Сергей", "Сергея"}, {"human:1", "Павел", "Павла"}, {"human:1", "Михаил", "Mikhail"}, {"human:1", "Mikhail", "Михаилу"},
		{"human:1", "Ivanov", "Иванова"}, {"human:1", "Γιώργος", "Giorgos"}, {"human:1", "Μαρία", "Maria"}, {"human:1", "Maria", "της Μαρίας"},
		{"human:1", "محمد", "Mohammed"}, {"human:1", "محمد", "Muhammad"}, {"human:1", "Mohamed", "قال محمد"}, {
			"human:1", "محمد", "ومحمد"}, {"human:1", "פatima", "פatima"}, {"human:1", "דוד", "David"},
		{"human:1", "David", "לדוד"}, {"human:1", "Sarah", "שרה"},
		{"human:1", "王小明", "王小明去了"}, {"human:1", "王小明", "小明"}, {"human:1", "王小明", "Wang Xiaoming"}, {
			"human:1", "王小明", "Xiao Ming"}, {"human:1", "Wang Xiaoming", "昨天王小明去了"}, {"human:1", "山田太郎", "太郎さん"}, {"human:1", "山田太郎", "山田さん"},
		{"human:1", "김민수", "김민수가"}, {"human:1", "김민수", "민수는"}, {"human:1", "김민수", "Kim Minsu"}, {
			"human:1", "สมชาย", "คุณสมชายไป"}, {"human:1", "प्रिया", "प्रिया ने"}, {"human:1", "Նարեկ", "Narek"}, {"human:1", "ნინო", "Nino"},
		{"human:1", "Al", "Al's"}, {"human:1", "Bo", "and Bo"}, {"human:1", "李", "李先生"},
	} {
		r := judge(c.subject, c.alias, c.text)
		if r.Verdict != VerdictBlocked {
			t.Errorf("%s %q in %q: %s %+v", c.subject, c.alias, c.text, r.Verdict, r.Findings)
		}
	}
}

// Ordinary words are not taken for names. A check that blocks too much would be switched off.
func TestOrdinaryWordsPass(t *testing.T) {
	for _, c := range []struct{ subject, alias, text string }{
		{"dog:bella", "", "Heart murmurs in small breeds need exercise monitoring"},                          // seeds/003:77
		{"human:seans_son", "Sean|Sean's son", "Visual fraction models help kids who are concrete thinkers"}, // seeds/003:102
		{"human:mark", "", "The market was remarkably busy"}, {"human:sean", "", "a seance by the ocean"}, {
			"human:ina", "", "It was in a box"}, {"human:isa", "", "This is a test"}, {"human:tom", "", "He went to market"},
		{"human:al", "", "This is also all right, although small"}, {
			"human:1", "Will Rose", "She was willing to arrange it"},
		{"human:parent_456", "", "Each parent of a student may help"}, {"human:student_123", "", "A student learned 124 words"},
		{"human:1", "Юлия", "в июле было тепло"}, {"human:1", "王小明", "明天我想去公园"}, {"human:1", "Wang Wei", "我忘了这件事"}, {
			"human:1", "김민수", "오늘 날씨가 좋다"}, {"human:1", "Ana de la Cruz", "la casa de mi madre"},
		{"dog:rex", "", "complex reflexes"}, {"human:ian", "", "He and I and all of them ran"}, {
			"si:bella_agent", "", "An agent learns from experience"}, {"human:1", "Maria", "Marine life and Mariners"},
	} {
		for _, f := range judge(c.subject, c.alias, c.text).Findings {
			if f.Check == CheckEntityName && f.Level == LevelBlock {
				t.Errorf("%s %q in %q: %q is taken for the name", c.subject, c.alias, c.text, f.Text)
			}
		}
	}
}

// Ordinary sentences are checked against names that people and dogs have, and few of them are blocked.
func TestFewFalseAlarms(t *testing.T) {
	tier.All(t)
	page, err := os.ReadFile("../../../docs/explanation/life-of-a-statement.md")
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Fields("Anna Ben Bella Bob Carla Charlie Clara David Emma Eva Felix Finn Hannah Ian Jack " +
		"James John Julia Kate Laura Leo Lisa Luca Lucy Luna Maria Mia Milo Nina Noah Oliver Oscar Paul Peter Rex " +
		"Rocky Sam Sara Sean Sophie Tom Юлия Сергей 王小明 محمد")
	alarmCount := 0
	for _, name := range names {
		for _, f := range judge("human:1", name, string(page)).Findings {
			if f.Check == CheckEntityName {
				alarmCount++
				t.Logf("%s: %s %q", name, f.Level, f.Text)
			}
		}
	}
	if alarmCount > 2 {
		t.Errorf("%d alarms for %d names in %d words", alarmCount, len(names), len(strings.Fields(string(page))))
	}
}

// changes are ways to disguise a name. The check must find the name after each of them.
var changes = []struct {
	name  string
	apply func(r *rand.Rand, s string) string
}{
	{"upper case", func(_ *rand.Rand, s string) string { return strings.ToUpper(s) }},
	{"lower case", func(_ *rand.Rand, s string) string { return strings.ToLower(s) }},
	{"mixed case", func(r *rand.Rand, s string) string {
		return each(s, func(c rune) string {
			if r.IntN(2) == 0 {
				return string(unicode.ToUpper(c))
			}
			return string(unicode.ToLower(c))
		})
	}},
	{"possessive", func(r *rand.Rand, s string) string { return s + []string{"'s", "’s", "s", "s'", "ʼs"}[r.IntN(5)] }},
	{"between", func(r *rand.Rand, s string) string {
		sep := []string{"-", "‐", "–", ".", "_", "/", "*", "·", "\u00ad", "\u200b", "\u200c", "\u200d", "\u2060",
			"\ufeff", "\u034f", "\u180e", "\ufe0f", "\U000e0061", "\u3164", " ", "\u2009", "\n"}[r.IntN(22)]
		return strings.Join(strings.Split(s, ""), sep)
	}},
	{"one break", func(r *rand.Rand, s string) string {
		runes := []rune(s)
		index := 1 + r.IntN(len(runes)-1)
		return string(runes[:index]) + []string{"-", "\u00ad", "\u200b", "\u200d", "-\n", "·", "_", "'"}[r.IntN(8)] + string(runes[index:])
	}},
	{"marks", func(r *rand.Rand, s string) string {
		return each(s, func(c rune) string { return string(c) + string(rune(0x300+r.IntN(0x28))) })
	}},
	{"zalgo", func(r *rand.Rand, s string) string {
		return each(s, func(c rune) string { return string(c) + strings.Repeat(string(rune(0x316+r.IntN(0x20))), r.IntN(9)) })
	}},
	{"look-alikes", func(r *rand.Rand, s string) string {
		lookalikes := map[rune]string{'a': "аαａ@4", 'b': "bｂ𝐛", 'c': "сｃϲ", 'e': "еε3ｅ", 'h': "һｈ", 'i': "і1ｉι", 'j': "јｊ",
			'k': "кκｋ", 'l': "1|ⅼｌ", 'm': "мｍ", 'n': "ｎ𝗇", 'o': "оο0ｏ", 'p': "рρｐ", 'r': "ｒ𝓻", 's': "ѕ5$ｓ",
			't': "тτ7ｔ", 'u': "ｕ𝕦", 'v': "νｖ", 'x': "хχｘ", 'y': "уｙ"}
		return each(s, func(c rune) string {
			if l := []rune(lookalikes[unicode.ToLower(c)]); len(l) > 0 && r.IntN(2) == 0 {
				return string(l[r.IntN(len(l))])
			}
			return string(c)
		})
	}},
	{"full width", func(_ *rand.Rand, s string) string {
		return each(s, func(c rune) string { return shift(c, 0xFF21, 0xFF41) })
	}},
	{"mathematical", func(_ *rand.Rand, s string) string {
		return each(s, func(c rune) string { return shift(c, 0x1D400, 0x1D41A) })
	}},
	{"emblems", func(_ *rand.Rand, s string) string {
		return each(s, func(c rune) string { return shift(c, 0x1F170, 0x1F170) })
	}},
	{"Cyrillic", func(_ *rand.Rand, s string) string {
		return each(s, func(c rune) string { return cyrillic[unicode.ToLower(c)] })
	}},
	{"entities", func(_ *rand.Rand, s string) string {
		return each(s, func(c rune) string { return fmt.Sprintf("&#%d;", c) })
	}},
	{"stretched", func(r *rand.Rand, s string) string {
		return each(s, func(c rune) string { return strings.Repeat(string(c), 1+r.IntN(3)) })
	}},
	{"with figures", func(r *rand.Rand, s string) string { return s + fmt.Sprint(r.IntN(3000)) }},
	{"in a tag", func(_ *rand.Rand, s string) string { return "#team" + s }},
}

var cyrillic = map[rune]string{'a': "а", 'b': "б", 'd': "д", 'e': "е", 'f': "ф", 'g': "г", 'i': "и", 'k': "к",
	'l': "л", 'm': "м", 'n': "н", 'o': "о", 'p': "п", 'r': "р", 's': "с", 't': "т", 'u': "у", 'v': "в", 'z': "з"}

func each(s string, f func(rune) string) string {
	var b strings.Builder
	for _, c := range s {
		b.WriteString(f(c))
	}
	return b.String()
}

func shift(c, firstUpper, firstLower rune) string {
	switch {
	case c >= 'a' && c <= 'z':
		return string(firstLower + c - 'a')
	case c >= 'A' && c <= 'Z':
		return string(firstUpper + c - 'A')
	}
	return string(c)
}

// A name that is inserted into a text is found after any of these changes, and after two of them.
func TestPlantedNames(t *testing.T) {
	names := strings.Fields("Bella Sean Marta Boris Dmitri Ronaldo Viktor Nestor Gloria Leonid Marvin Roberta " +
		"Simon Tatiana Vera Zora Alma Otto Petra Gustav")
	sentences := []string{"%s", "It was %s who said so.", "Models help (%s) who learn", "ask “%s”, or another",
		"说%s了", "Das ist %s gewesen", "Это %s сказал", "x\t%s\ny", "%s: a belief", "the team of %s/others"}
	property.Check(t, func(r *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "a"), rapid.Uint64().Draw(r, "b")))
		name := rapid.SampledFrom(names).Draw(r, "name")
		change := rapid.SampledFrom(changes).Draw(r, "change")
		changedName := change.apply(rng, name)
		if rapid.Bool().Draw(r, "case too") {
			changedName = change.apply(rng, strings.ToLower(name))
		}
		text := fmt.Sprintf(rapid.SampledFrom(sentences).Draw(r, "frame"), changedName)
		subject := Subject{ID: "human:" + strings.ToLower(name)}
		if rapid.Bool().Draw(r, "alias") {
			subject = Subject{ID: "human:kid_7", Aliases: []string{name + " Mayer"}}
		}
		if got := CheckTexts(Input{Subjects: []Subject{subject}, Texts: []string{text}}); got.Verdict == VerdictClear {
			r.Fatalf("%s by %s: %q is clear", name, change.name, text)
		}
	})
}

// A text that contains the id of the source memory is blocked.
func TestSourceID(t *testing.T) {
	in := Input{SourceID: "episode:private_health_incident", Texts: []string{"as in episode private-health-incident"}}
	if r := CheckTexts(in); r.Verdict != VerdictBlocked {
		t.Errorf("%+v", r)
	}
}

// "dates, locations, or unique details? → Warn".
// seeds/003:91-93.
func TestSpecificity(t *testing.T) {
	for text, kind := range map[string]string{
		"It was last Tuesday": "date", "On 2024-03-05 it began": "date", "am 5.3.2024": "date", "in March": "date",
		"since 1987": "date", "at 3:30 pm": "date", "vorgestern": "date", "le 3 août": "date",
		"el miércoles": "date", "во вторник": "date", "昨天": "date", "2019年": "date", "три дня назад, вчера": "date",
		"three weeks ago": "date", "지난주": "date", "prošle, wczoraj": "date", "أمس": "date",
		"They live in Berlin": "place", "aus München": "place", "в Москве": "place", "在北京": "place", "東京で": "place",
		"at 12 Baker Street": "place", "Hauptstraße 5": "place", "rue Lepic": "place", "room 12": "place",
		"the Willow Creek School": "place", "48.8584, 2.2945": "place", "write to a@example.org": "contact",
		"https://a.example": "contact", "+49 30 1234567": "contact",
	} {
		r := CheckTexts(Input{Texts: []string{text}})
		if r.Verdict != VerdictWarned || !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Check == CheckSpecificity && f.Kind == kind }) {
			t.Errorf("%q: %s %+v", text, r.Verdict, r.Findings)
		}
	}
	corpus := map[string]int{"murmurs": 1, "heart": 40, "breeds": 12, "exercise": 50, "monitoring": 9}
	in := Input{
		Source: "The terrier had heart murmurs at 137 bpm, exercise monitoring", CorpusSize: 100, TextsWithWord: func(w string) int { return corpus[w] },
		Texts: []string{"Heart murmurs in small breeds at 137 bpm need exercise monitoring"},
	}
	got := ""
	for _, f := range CheckTexts(in).Findings {
		got += f.Kind + " " + f.Text + "; "
	}
	if want := "detail murmurs; number 137 bpm; overlap ; "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// "Could someone reverse-engineer the source? → Advisory".
// seeds/003:95-97.
func TestReversibility(t *testing.T) {
	source := "she struggled with fractions all week until the drawings made sense to her"
	for text, want := range map[string]bool{
		"she struggled with fractions until drawings made sense": true, "people learn in many ways": false, "until the drawings made sense": true,
	} {
		r := CheckTexts(Input{Source: source, Texts: []string{text}, CorpusSize: 10, TextsWithWord: func(string) int { return 9 }})
		got := slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Check == CheckReversibility && f.Level == LevelAdvisory })
		if got != want || r.Verdict != VerdictClear {
			t.Errorf("%q: %+v", text, r)
		}
	}
}

// The seed's example: the words of the private text are found, and the general text passes.
// seeds/003:99-103.
func TestSeedExample(t *testing.T) {
	in := Input{
		Source: "Sean’s son struggled with fractions last Tuesday", Subjects: []Subject{
			{ID: "human:sean"}, {ID: "human:sean_jr", Aliases: []string{"Sean's son"}}},
		Texts: []string{"Visual fraction models help kids who are concrete thinkers"},
	}
	if r := CheckTexts(in); r.Verdict != VerdictClear || len(r.Findings) != 0 {
		t.Errorf("%+v", r)
	}
	in.Texts = []string{in.Source}
	r := CheckTexts(in)
	kinds := map[string]bool{}
	for _, f := range r.Findings {
		kinds[f.Kind] = true
	}
	if r.Verdict != VerdictBlocked || !kinds["name"] || !kinds["date"] || !kinds["overlap"] || r.Overlap != 1 {
		t.Errorf("%+v", r)
	}
}

func TestNothingPanics(t *testing.T) {
	property.Check(t, func(r *rapid.T) {
		CheckTexts(Input{SourceID: rapid.String().Draw(r, "id"), Source: rapid.String().Draw(r, "source"),
			Subjects: []Subject{{ID: rapid.String().Draw(r, "subject"),
				Aliases: []string{rapid.String().Draw(r, "alias")}}}, Texts: []string{rapid.String().Draw(r, "text")}})
	})
}
