package policydiff

import (
	"slices"
	"testing"
)

func TestNotesOfMissingAttributes(t *testing.T) {
	var m missingAttributeValues
	for _, agent := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		for _, path := range []string{"old.yaml", "new.yaml"} {
			m.add(path, agent, attributeSource{"context", false})
		}
	}
	m.add("new.yaml", "a", attributeSource{"team", true})
	m.add("new.yaml", "b", attributeSource{"team", true})
	m.add("old.yaml", "b", attributeSource{"user", true})
	want := []string{
		"agents a, b, c, d, e, f and 2 more have no context, which is not of the credential: what needs it counts " +
			"as hidden; --set says what the agent has SET, --value context=… what it is",
		"new.yaml: agents a, b have no attribute team: what needs it shows nothing",
		"old.yaml: agent b has no attribute user: what needs it shows nothing",
	}
	if got := m.noteTexts(); !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}
