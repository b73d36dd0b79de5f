package policy

import (
	"slices"
	"strings"
)

// HasChannel tells whether agents may listen to a channel and notify it.
func (p *Policy) HasChannel(name string) bool { return slices.Contains(p.channels, name) }

// maxChannel is PostgreSQL's bound of the name of a channel, in bytes: NAMEDATALEN.
const maxChannel = 63

// channels compiles the channels of LISTEN and NOTIFY. Those of pgconsent tell of its own work.
func (c *compiler) channels(decls []wordDecl) []string {
	var out []string
	for _, d := range decls {
		switch {
		case strings.HasPrefix(d.text, "pgconsent"):
			c.fail(d.place, "give the channel another name", "channel %q is pgconsent's own", d.text)
		case len(d.text) > maxChannel:
			c.fail(d.place, "give the channel a shorter name", "channel %q is longer than %d bytes", d.text, maxChannel)
		}
		out = append(out, d.text)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
