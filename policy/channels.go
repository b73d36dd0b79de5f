package policy

import (
	"slices"
	"strings"
)

// HasChannel tells whether agents may use a channel in LISTEN and NOTIFY.
func (p *Policy) HasChannel(name string) bool { return slices.Contains(p.channels, name) }

// maxChannelBytes is the largest length of a channel's name in bytes, by PostgreSQL's NAMEDATALEN.
const maxChannelBytes = 63

// compileChannels compiles the channels of LISTEN and NOTIFY. It refuses pgconsent's own channels, which carry messages
// between its processes.
func (c *compiler) compileChannels(decls []wordDecl) []string {
	var out []string
	for _, d := range decls {
		switch {
		case strings.HasPrefix(d.text, "pgconsent"):
			c.fail(d.place, "give the channel another name", "channel %q is pgconsent's own", d.text)
		case len(d.text) > maxChannelBytes:
			c.fail(d.place, "give the channel a shorter name", "channel %q is longer than %d bytes", d.text, maxChannelBytes)
		}
		out = append(out, d.text)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
