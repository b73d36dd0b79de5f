package starter

import (
	"fmt"
	"slices"
	"strings"
)

// Connection describes how pgconsent init reached the server and the database.
type Connection struct {
	Database   string   // name of the database
	Host       string   // host name, address, or folder of a socket
	Port       int      // port number
	TLS        string   // sslmode: disable, require or verify-full
	CA         string   // file with CA certificates; "": those of the operating system
	Role       string   // role that read the catalogs, and as which migrate logs in
	Owners     []string // roles that own the tables
	SearchPath []string // the search path

	HasPassword  bool // the role has a password, which init writes to the file migrate.pw
	ServesOthers bool // pgconsent already serves another database of this server, with the default role names
}

// Configuration returns the configuration file for the proposal. It names files beside it for the secrets.
func (p *Proposal) Configuration(s Connection) string {
	var b strings.Builder
	w := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	w("# A starter configuration, written by pgconsent init. docs/reference/configuration.md lists every key.")
	w("version: 1")
	w("listen: 127.0.0.1:7432   # where agents and owners connect instead of to the server")
	upstream := fmt.Sprintf("host: %s, port: %d, tls: %s", yamlFlow(s.Host), s.Port, s.TLS)
	if s.CA != "" {
		upstream += ", ca: " + yamlFlow(s.CA)
	}
	w("upstream: { %s }", upstream)
	w("databases:")
	w("  %s:", yamlFlow(s.Database))
	w("    policy: policy.yaml")
	w("    # Their connections pass unparsed. These roles own tables; add those that your application logs in as.")
	var owners []string
	for _, o := range s.Owners {
		owners = append(owners, yamlFlow(o))
	}
	w("    owners: [%s]", strings.Join(owners, ", "))
	var path []string
	for _, schema := range s.SearchPath {
		path = append(path, yamlFlow(schema))
	}
	if otherSchemas := p.schemasOutsidePath(s.SearchPath); len(otherSchemas) > 0 {
		w("    # The server's for %s. Tables of %s are listed as well: agents write these with their schema, "+
			"unless you add it here.", commentText(s.Role), commentText(strings.Join(otherSchemas, ", ")))
	}
	w("    search_path: [%s]", strings.Join(path, ", "))
	w("    # migrate makes the roles pgconsent_agent, pgconsent_control, pgconsent_reader and pgconsent_rows. It works as the")
	w("    # owner of the tables, or as a superuser.")
	roles := "migrate: " + yamlFlow(s.Role)
	if s.ServesOthers {
		w("    # Roles are the whole server's, and another database has the first two already: these are this one's own.")
		roles = fmt.Sprintf("agent: %s, control: %s, ", yamlFlow(roleNameFor("pgconsent_agent_", s.Database)),
			yamlFlow(roleNameFor("pgconsent_control_", s.Database))) + roles
	}
	w("    roles: { %s }", roles)
	w("    # Files that only you can read; serve needs no migrate.pw.")
	secrets := "agent: agent.pw, control: control.pw"
	if s.HasPassword {
		secrets += ", migrate: migrate.pw"
	}
	w("    secrets: { %s }", secrets)
	w("")
	w("# Who logs in, and what it is worth. Put in real values, take out the #, and run: pgconsent agent add assistant")
	w("agents: {}")
	w("# agents:")
	var values []string
	for _, a := range p.Attributes {
		values = append(values, a.Name+": "+map[string]string{
			"uuid": "00000000-0000-4000-8000-000000000000", "bigint": "0", "integer": "0", "text": "…"}[a.Type])
	}
	attributes := ""
	if len(values) > 0 {
		attributes = ", attributes: { " + strings.Join(values, ", ") + " }"
	}
	w("#   assistant: { database: %s%s }", yamlFlow(s.Database), attributes)
	w("audit: { mode: strict, file: audit/ }")
	return b.String()
}

// schemasOutsidePath returns the schemas of tables that are not in the search path.
func (p *Proposal) schemasOutsidePath(path []string) []string {
	found := map[string]bool{}
	for _, t := range p.Tables {
		if !slices.Contains(path, t.Relation.Name.Schema) {
			found[yamlFlow(t.Relation.Name.Schema)] = true
		}
	}
	return sortedKeys(found)
}

// roleNameFor returns a role name for a database, cut to the 63 bytes that PostgreSQL stores.
func roleNameFor(prefix, database string) string {
	name := prefix + database
	return strings.ToValidUTF8(name[:min(len(name), 63)], "")
}
