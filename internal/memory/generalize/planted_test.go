package generalize

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pgconsent/pgconsent/test/property"
)

// These names are disguised so that a person can read them and a check might not. Each is found: most block, and
// uncertain ones get a warning. seeds/003:87-93.
func TestPlantedNamesAreNeverClear(t *testing.T) {
	for _, c := range []struct{ subject, alias, text string }{
		// Marks that change the writing direction, and invisible letters.
		{"dog:bella", "", "\u202dBella\u202c rests"}, {"dog:bella", "", "B\u202ee\u202cl\u2066l\u2069a rests"}, {
			"dog:bella", "", "\u061cBel\u200fla"}, {"dog:bella", "", "Be\u180el\u2063la"}, {"dog:bella", "", "B\U000e0020ella"},
		{"dog:bella", "", "\u202ealleB\u202c rests"}, // read from right to left
		// A name that is split by punctuation, a line break, a tab or brackets.
		{"dog:bella", "", "Bel\nla rests"}, {"dog:bella", "", "Bel\r\nla rests"}, {"dog:bella", "", "Bel\tla"}, {
			"dog:bella", "", "Bel(l)a"}, {"dog:bella", "", "[B]ella"}, {"dog:bella", "", "Be«ll»a"}, {"dog:bella", "", "Be…lla"}, {"dog:bella", "", "Be~lla"},
		{"dog:bella", "", "B, e, l, l, a"}, {"dog:bella", "", "B | e | l | l | a"}, {"dog:bella", "", "Be+lla"}, {
			"dog:bella", "", "Be\u2028lla"}, {"dog:bella", "", "<b>B</b>ella"}, {"dog:bella", "", "**B**ella"}, {"dog:bella", "", "`Be`lla"},
		// Similar letters of other alphabets.
		{"dog:bella", "", "Bеllа"}, {"dog:bella", "", "ВеIIа"}, {"dog:bella", "", "ßella"}, {
			"dog:bella", "", "Ᏼella"}, {"dog:bella", "", "Βɛlla"}, {"dog:bella", "", "Bellɑ"}, {"dog:bella", "", "Beⅼⅼa"}, {"dog:bella", "", "ꓐella"},
		{"human:sean", "", "Ѕеаn"}, {"human:sean", "", "Seаn’s"}, {"human:sean", "", "Шон"}, {
			"human:1", "Peter", "Петр"}, {"human:1", "Alexander", "Александру"}, {"human:1", "Natasha", "Наташи"}, {"human:1", "Eleni", "Ελένη"},
		// Letters with combining marks, upside down, superscript or small capitals.
		{"dog:bella", "", "B̶e̶l̶l̶a̶"}, {"dog:bella", "", "B⃝e⃝l⃝l⃝a⃝"}, {"dog:bella", "", "ᴮᵉˡˡᵃ"}, {
			"dog:bella", "", "ₑB" + "ella"}, {"dog:bella", "", "ⒷⒺⓁⓁⒶ"},
		// Possessives and hyphens of several languages.
		{"human:sean", "", "Seans’"}, {"human:sean", "", "Sean`s"}, {"human:sean", "", "Sean´s"}, {
			"human:sean", "", "Sean-mama"}, {"human:1", "Mehmet", "Mehmet'in"},
		{"human:1", "Anne-Marie", "Annemarie"}, {"human:1", "Anne-Marie", "Anne Marie"}, {"human:1", "Annemarie", "Anne-Marie"},
		{"human:1", "Anne‑Marie", "Anne-Marie"}, {"human:1", "Jean-Luc", "Jeanluc's"},
		// Initials and nicknames that are recorded.
		{"human:1", "Sean O'Neil|Shaz", "Shaz struggled"}, {"human:1", "Sean O'Neil|SON", "S.O.N. struggled"}, {
			"human:1", "Robert Miller|Bob|RM", "r.m. said so"}, {"human:1", "Elisabeth|Lisl|Lizzy", "Lizzie sleeps"}, {"human:1", "Bo|B.", "B. sleeps"},
		// Other cases that change a name within: vowels that come and go, consonants that soften or weaken; small forms.
		{"human:1", "Павел", "с Павлом"}, {"human:1", "Лев", "у Льва"}, {"human:1", "Marek", "Markowi"}, {
			"human:1", "Karel", "Karlovi"}, {"human:1", "Zdeněk", "Zdeňkovi"}, {"human:1", "Jiří", "Jiřímu"},
		{"human:1", "Agnieszka", "Agnieszce"}, {"human:1", "Достоевский", "о Достоевского"}, {
			"human:1", "Анна", "Аннушка"}, {"human:1", "Ольга", "Ользі"}, {"human:1", "Virtanen", "Virtasen"}, {"human:1", "Lahti", "Lahden"},
		{"human:1", "Mehmet", "Mehmed'in"}, {"human:1", "Antoni", "Antoniego"}, {"human:1", "Heikki", "Heikiltä"}, {
			"human:1", "Piotr", "Piotrze"}, {"human:1", "Ayşe", "AYŞENİN"}, {"human:1", "Ilkka Koskinen", "Koskiselta"},
		// Scripts of India and its neighbours, and Chinese, where the vowels are other ones.
		{"dog:bella", "", "बेला को"}, {"dog:bella", "", "বেলার"}, {"dog:bella", "", "เบลล่า"}, {
			"dog:bella", "", "贝拉喜欢散步"}, {"human:1", "यश", "यशने"}, {"human:1", "राम", "रामको"}, {"human:1", "সুমন", "সুমনকে"}, {"human:1", "田中太郎", "田中さんは"},
		{"human:1", "김민수", "민수가"}, {"human:1", "Nguyễn Văn An", "Nguyen Van An"}, {"human:1", "محمد", "بمحمد"}, {"human:1", "יוסף", "ליוסף"},
		// As a page, a program or somebody on their head would read it; in addresses, tags and names of programs.
		{"dog:bella", "", "Bel<b>la</b>"}, {"dog:bella", "", `\u0042ella`}, {"dog:bella", "", `\x42ella`}, {
			"dog:bella", "", `\u{42}ella`}, {"dog:bella", "", "QmVsbGEgc2xlZXBz"}, {"dog:bella", "", "ɐllǝq"}, {"dog:bella", "", "alleB"},
		{"dog:bella", "", "ᗷᗴᒪᒪᗩ"}, {"dog:bella", "", "𐌁elꓡa"}, {"dog:bella", "", "the myBellaNotes table"}, {
			"dog:bella", "", "MY_BELLA_NOTES"}, {"human:1", "Sean Murphy", "smurphy@example.com"}, {"dog:bella", "", "🇧🇪🇱🇱🇦"},
	} {
		if r := judge(c.subject, c.alias, c.text); r.Verdict == VerdictClear {
			t.Errorf("%s %q in %q: %s", c.subject, c.alias, c.text, r.Verdict)
		}
	}
}

// A name anywhere in a text, dressed in one or two ways: the text is never clear.
func TestAnyPlantedNameIsFound(t *testing.T) {
	names := []string{"Bella", "Sean", "Tobias", "Юлия", "Сергей", "Γιώργος", "محمد", "王小明", "김민수", "Jürgen", "Łukasz", "Anne-Marie", "O'Neil"}
	sentences := []string{"Heart murmurs in %s need rest", "%s", "(%s)", "“%s”, said the vet", "what %s,\nwas told", "x:%s;y"}
	disguises := []func(string) string{
		strings.ToUpper, strings.ToLower,
		func(s string) string { return "\u202e" + s + "\u202c" }, func(s string) string { return "\u2067" + s + "\u2069" },
		func(s string) string { return s + "'s" }, func(s string) string { return s + "’s" }, func(s string) string {
			return s + "-like"
		}, func(s string) string { return "#" + s }, func(s string) string { return s + "2019" },
		func(s string) string { return strings.Join(strings.Split(s, ""), "\u200b") }, func(s string) string {
			return strings.Join(strings.Split(s, ""), "\u00ad")
		},
		func(s string) string { return strings.Join(strings.Split(s, ""), "\u2060") }, func(s string) string {
			return strings.Join(strings.Split(s, ""), "\u0301")
		},
	}
	property.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(names).Draw(t, "name")
		text := rapid.SampledFrom(disguises).Draw(t, "dress")(name)
		if rapid.Bool().Draw(t, "twice") {
			text = rapid.SampledFrom(disguises).Draw(t, "again")(text)
		}
		text = strings.ReplaceAll(rapid.SampledFrom(sentences).Draw(t, "around"), "%s", text)
		if r := judge("human:1", name, text); r.Verdict != VerdictBlocked {
			t.Fatalf("%s in %q: %s", name, text, r.Verdict)
		}
	})
}
