package policy

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

func TestAIRNamesAttributes(t *testing.T) {
	const attributes = "version: 1\nattributes: { who: { type: text, source: credential }, where: { type: text, " +
		"source: credential, optional: true }, many: { type: \"text[]\", source: credential } }\ntables: {}\n"
	compile := func(text string) (*Policy, error) {
		doc, err := Parse("policy.yaml", []byte(attributes+text))
		if err != nil {
			return nil, err
		}
		return Compile(doc, &catalog.Snapshot{})
	}
	withoutReminder, err := compile("")
	if err != nil || withoutReminder.ReminderAttributes() != nil {
		t.Fatalf("%v, %v", withoutReminder, err)
	}
	withReminder, err := compile("air: { user: who, channel: where }\n")
	if err != nil || *withReminder.ReminderAttributes() != (ReminderAttributes{User: "who", Channel: "where"}) ||
		withReminder.Version() == withoutReminder.Version() {
		t.Fatalf("%v, %v", withReminder, err)
	}
	for text, want := range map[string]string{
		"air: { user: who }\n":                          `air needs "channel"`,
		"air: { user: who, channel: many }\n":           "is a list",
		"air: { user: who, channel: wher }\n":           `declares no attribute "wher"`,
		"air: { user: who, channel: where, idle: 3 }\n": `unknown key "idle"`,
		"air: [who, where]\n":                           "air must be a mapping",
	} {
		if _, err := compile(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s%v, want %q", text, err, want)
		}
	}
}
