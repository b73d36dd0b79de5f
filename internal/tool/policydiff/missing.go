package policydiff

import (
	"fmt"
	"slices"
	"strings"
)

// missingAttributeValues collects which agents lack a value for which attribute. It makes one note for each attribute,
// however many agents lack it and whether one policy needs it or both.
type missingAttributeValues struct {
	sources        []attributeSource
	agentsBySource map[attributeSource]*agentsWithoutValue
}

type attributeSource struct {
	attribute      string
	fromCredential bool // the attribute's value would come from the agent's credential
}

type agentsWithoutValue struct{ agents, paths []string }

func (m *missingAttributeValues) add(path, agent string, l attributeSource) {
	if m.agentsBySource == nil {
		m.agentsBySource = map[attributeSource]*agentsWithoutValue{}
	}
	agents := m.agentsBySource[l]
	if agents == nil {
		agents = &agentsWithoutValue{}
		m.agentsBySource[l] = agents
		m.sources = append(m.sources, l)
	}
	if !slices.Contains(agents.agents, agent) {
		agents.agents = append(agents.agents, agent)
	}
	if !slices.Contains(agents.paths, path) {
		agents.paths = append(agents.paths, path)
	}
}

// maxNamedAgents is how many agents a note lists by name.
const maxNamedAgents = 6

func (m *missingAttributeValues) noteTexts() []string {
	var out []string
	for _, l := range m.sources {
		agents, paths := m.agentsBySource[l].agents, m.agentsBySource[l].paths
		subject := "agent " + agents[0] + " has"
		if n := len(agents); n > maxNamedAgents {
			subject = fmt.Sprintf("agents %s and %d more have", strings.Join(agents[:maxNamedAgents], ", "), n-maxNamedAgents)
		} else if n > 1 {
			subject = "agents " + strings.Join(agents, ", ") + " have"
		}
		if len(paths) == 1 {
			subject = paths[0] + ": " + subject
		}
		if l.fromCredential {
			out = append(out, fmt.Sprintf("%s no attribute %s: what needs it shows nothing", subject, l.attribute))
		} else {
			out = append(out, fmt.Sprintf(
				"%s no %s, which is not of the credential: what needs it counts as hidden; --set says what the "+
					"agent has SET, --value %s=… what it is", subject, l.attribute, l.attribute))
		}
	}
	return out
}
