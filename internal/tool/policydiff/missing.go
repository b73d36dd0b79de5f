package policydiff

import (
	"fmt"
	"slices"
	"strings"
)

// missing gathers which agents have no value for which attribute, so that each attribute has one note, however many
// agents and whether one policy asks for it or both.
type missing struct {
	order []lack
	of    map[lack]*lacking
}

type lack struct {
	attribute  string
	credential bool // is where its value would come from
}

type lacking struct{ agents, paths []string }

func (m *missing) add(path, agent string, l lack) {
	if m.of == nil {
		m.of = map[lack]*lacking{}
	}
	who := m.of[l]
	if who == nil {
		who = &lacking{}
		m.of[l] = who
		m.order = append(m.order, l)
	}
	if !slices.Contains(who.agents, agent) {
		who.agents = append(who.agents, agent)
	}
	if !slices.Contains(who.paths, path) {
		who.paths = append(who.paths, path)
	}
}

// namedAgents is how many agents a note names.
const namedAgents = 6

func (m *missing) notes() []string {
	var out []string
	for _, l := range m.order {
		agents, paths := m.of[l].agents, m.of[l].paths
		who := "agent " + agents[0] + " has"
		if n := len(agents); n > namedAgents {
			who = fmt.Sprintf("agents %s and %d more have", strings.Join(agents[:namedAgents], ", "), n-namedAgents)
		} else if n > 1 {
			who = "agents " + strings.Join(agents, ", ") + " have"
		}
		if len(paths) == 1 {
			who = paths[0] + ": " + who
		}
		if l.credential {
			out = append(out, fmt.Sprintf("%s no attribute %s: what needs it shows nothing", who, l.attribute))
		} else {
			out = append(out, fmt.Sprintf(
				"%s no %s, which is not of the credential: what needs it counts as hidden; --set says what the "+
					"agent has SET, --value %s=… what it is", who, l.attribute, l.attribute))
		}
	}
	return out
}
