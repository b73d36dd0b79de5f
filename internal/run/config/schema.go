package config

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// keyDocumentation is what the JSON Schema says about a key besides its type.
type keyDocumentation struct {
	doc          string
	requiredKeys []string // keys that the mapping must have
	values       []string // values that the key may have; nil: any
}

// keyDocs describes the keys by their paths. NAME stands for a name that the user chooses.
var keyDocs = map[string]keyDocumentation{
	"":        {"A configuration of pgconsent.", []string{"version", "databases"}, nil},
	"version": {doc: "1"},
	"stale_after": {
		doc: "How long agents are served by the last known state of a database that does not answer: 5s to 1h. Default: 60s."},
	"max_statement": {
		doc: "How long the text of an agent's statement may be: 1 MiB to 64 MiB. Default: 1 MiB."},
	"max_sessions": {
		doc: "How many sessions all agents together may have at a time. Default: what max_connections of the " +
			"server leaves, less a fifth (5 to 50) for owners and pgconsent."},
	"listen": {
		doc: "Where clients connect: host:port, or the path of a unix socket; several as a list. Default: 127.0.0.1:7432."},
	"tls": {"The listener's certificate; without it loopback and unix sockets only.",
		[]string{"cert", "key"}, nil},
	"tls.cert": {doc: "Certificate chain, PEM."},
	"tls.key":  {doc: "Its key, PEM."},
	"tls.client_ca": {
		doc: "The authorities that sign the certificates of agents with auth: cert, PEM."},
	"proxy_protocol": {doc: "Load balancers that tell the addresses of clients by the PROXY protocol. Without it there are none."},
	"proxy_protocol.from": {
		doc: "Their networks, as 10.0.0.0/8: connections from there must begin with a PROXY header."},
	"admin": {doc: "The admin console: psql and the database name pgconsent, at listen. Without users it is off."},
	"admin.users": {
		doc: "The operators who may use it. pgconsent operator add gives each a password."},
	"admin.credentials": {doc: "The file that pgconsent operator add writes. Default: operators.scram."},
	"http":              {doc: "The listener of the API, /metrics, /healthz and /readyz."},
	"http.listen": {
		doc: "host:port, elsewhere than on loopback with tls; or off. Default: 127.0.0.1:7433."},
	"http.tokens": {
		doc: "The file of the tokens that callers of the API show; pgconsent token add writes it."},
	"upstream":      {doc: "The PostgreSQL server."},
	"upstream.host": {doc: "A name, an address, or the folder of its unix socket."},
	"upstream.port": {doc: "Its port. Default: 5432."},
	"upstream.tls":  {"How it is reached.", nil, []string{"disable", "require", "verify-full"}},
	"upstream.ca":   {doc: "Certificates that verify-full trusts, PEM."},
	"upstream.statement_cache": {
		doc: "How many statements of each agent's session the server keeps prepared for pgconsent; 0: none. Default: 100."},
	"upstream.keep_heap": {
		doc: "How much memory the server's process of an agent's session keeps once it had it: 1 MiB to 32 MiB; 0: none. Default: 4 MiB."},
	"databases":                    {doc: "The protected databases, as clients ask for them."},
	"databases.NAME":               {"A protected database.", []string{"policy", "owners"}, nil},
	"databases.NAME.name":          {doc: "Its name on the server, if clients ask for it by another."},
	"databases.NAME.policy":        {doc: "The policy: a file or a folder."},
	"databases.NAME.owners":        {doc: "Database roles whose connections pass unparsed."},
	"databases.NAME.search_path":   {doc: "Pinned for agents, after pg_catalog. Default: [public]."},
	"databases.NAME.roles":         {doc: "The database roles that pgconsent uses."},
	"databases.NAME.roles.agent":   {doc: "Agents' statements run as it. Default: pgconsent_agent."},
	"databases.NAME.roles.control": {doc: "Reads the catalog and the keys. Default: pgconsent_control."},
	"databases.NAME.roles.reader":  {doc: "Owns the lookup views. Default: pgconsent_reader."},
	"databases.NAME.roles.rows":    {doc: "Owns the views of tables with hidden columns. Default: pgconsent_rows."},
	"databases.NAME.roles.migrate": {doc: "migrate and doctor log in as it. Default: the first owner."},
	"databases.NAME.secrets": {
		doc: "Where passwords are: files that only their owner can read, or the names of variables PGCONSENT_… of " +
			"the environment."},
	"databases.NAME.secrets.agent":   {doc: "Of the agent role."},
	"databases.NAME.secrets.control": {doc: "Of the control role."},
	"databases.NAME.secrets.migrate": {doc: "For migrate and doctor; serve does not need it."},
	"databases.NAME.pool":            {doc: "How sessions of its agents get connections to the server."},
	"databases.NAME.pool.mode": {"Whether sessions share connections to the server. Default: session.",
		nil, []string{string(PoolSession), string(PoolTransaction)}},
	"databases.NAME.pool.size": {doc: "How many connections the sessions of one agent share. Default: 20."},
	"databases.NAME.pool.wait": {doc: "How long a session waits for one of them. Default: 5s."},
	"agents":                   {doc: "The logins of agents."},
	"agents.NAME":              {"A login.", []string{"database"}, nil},
	"agents.NAME.database":     {doc: "One of databases."},
	"agents.NAME.auth":         {"How it logs in. Default: scram.", nil, []string{AuthPassword, AuthToken, AuthCertificate}},
	"agents.NAME.cert_name": {
		doc: "With auth: cert, the DNS name or URI in its certificate's subject alternative names. " +
			"Default: the Common Name is the agent's."},
	"agents.NAME.limits":          {doc: "The agent's limits."},
	"agents.NAME.limits.sessions": {doc: "Sessions. Default: as many as the server has room for."},
	"agents.NAME.pool":            {doc: "How sessions of this agent get connections to the server."},
	"agents.NAME.pool.mode": {"Whether sessions share connections to the server. Default: as the database has it.",
		nil, []string{string(PoolSession), string(PoolTransaction)}},
	"agents.NAME.pool.size": {doc: "How many connections the sessions of one agent share. Default: as the database has it."},
	"agents.NAME.pool.wait": {doc: "How long a session waits for one of them. Default: as the database has it."},
	"agents.NAME.attributes": {
		doc: "A value for each attribute of the policy with source: credential."},
	"agents.NAME.acts_for": {"For whom its sessions act: one user after the other, each with rows of its own.",
		[]string{"attributes", "by"}, nil},
	"agents.NAME.acts_for.attributes": {doc: "The attributes of the policy with source: credential that the user gives."},
	"agents.NAME.acts_for.by": {
		"How a session says for whom: jwt, by a token of the user that is verified; trusted, by a setting that is believed.",
		nil, []string{ByJWT, ByTrusted}},
	"agents.NAME.acts_for.setting": {
		doc: "With by: trusted, the setting. Default: pgconsent. and the attribute, or request.jwt.claims with claims."},
	"agents.NAME.acts_for.claims": {
		doc: "The claim of the token, or the member of the JSON object in the setting, for each attribute. Default for jwt: " +
			"jwt.claims.attributes."},
	"agents.NAME.acts_for.claims.NAME": {doc: "A claim."},
	"agents.NAME.acts_for.actor": {
		doc: "With by: jwt, the name by which the provider knows this agent: the sub of act or may_act (RFC 8693), which tokens must have."},
	"credentials": {doc: "The file that pgconsent agent add writes. Default: agents.scram."},
	"enforcement": {
		"How rewriting and row security are used together. Default: auto, which was called doors.", nil, []string{
			string(EnforceAuto), string(EnforceBoth), string(oldAutoValue)}},
	"audit": {doc: "Where decisions are recorded."},
	"audit.mode": {"Whether the record is on disk before the answer leaves. Default: strict.",
		nil, []string{"strict", "buffered", "off"}},
	"audit.sink":     {"Where records are kept. Default: file.", nil, []string{"file", "database"}},
	"audit.database": {doc: "With sink: database, whose table has the records. Default: the only one."},
	"audit.chain": {
		doc: "With sink: database, the name of this proxy's records; each has its own. Default: pgconsent."},
	"audit.file": {doc: "The folder of the records. Default: audit."},
	"audit.key": {
		doc: "The file of the key that records are authenticated with; serve makes it. Default: the folder's name with .key."},
	"audit.anchor": {
		doc: "The file that has the newest record's hash. Default: the folder's name with .anchor."},
	"audit.rotate":      {doc: "When the next segment begins."},
	"audit.rotate.size": {doc: "When it is larger than this. Default: 64MiB."},
	"audit.rotate.age":  {doc: "When its first record is older than this, as 24h. Default: at any age."},
	"audit.retention":   {doc: "How long records are kept, as 400d. Default: forever."},
	"jwt": {"Which tokens of an identity provider are accepted.",
		[]string{"issuer", "audience", "jwks"}, nil},
	"jwt.issuer":          {doc: "Their claim iss."},
	"jwt.audience":        {doc: "A value that their claim aud must have."},
	"jwt.jwks":            {doc: "The provider's keys: a file, or an https address."},
	"jwt.algorithms":      {doc: "How they may be signed. Default: [RS256, ES256, EdDSA]."},
	"jwt.skew":            {doc: "How far the clocks may be apart. Default: 60s."},
	"jwt.roles":           {doc: "The roles that they may give. Default: [subject, agent]."},
	"jwt.claims":          {doc: "The names of claims."},
	"jwt.claims.role":     {doc: "The role. Default: role."},
	"jwt.claims.subject":  {doc: "The person whose consents these are, for the role subject. Default: sub."},
	"jwt.claims.agent":    {doc: "The agent, for the role agent. Default: agent."},
	"jwt.claims.database": {doc: "The database, where there are several. Default: database."},
	"jwt.claims.attributes": {
		doc: "For an attribute of the policy the claim that has its value, for agents with auth: jwt."},
	"jwt.claims.attributes.NAME": {doc: "A claim."},
	"consent":                    {doc: "The consent registry. Without it no consents are recorded."},
	"consent.key": {
		doc: "The file with the key that signs consent records; migrate makes it. Default: consent.key."},
	"consent.anchor":                {doc: "The file that remembers the last consent record. Default: consent.anchor."},
	"consent.controller":            {doc: "The controller of the data, as records name it."},
	"consent.default_duration_days": {doc: "How long TEMPORARY lasts. Default: 14."},
	"consent.warning_days": {doc: "How long before expiry the subject is warned. Default: 3, or default_duration_days if that " +
		"is less."},
	"consent.review_timeout":   {doc: "How long the agent's side may take to decide about a partnership. Default: 48h."},
	"consent.auto_renewal":     {doc: "Whether an interaction renews TEMPORARY. Default: true."},
	"consent.require_explicit": {doc: "Whether a first interaction gives nothing. Default: false."},
	"consent.decay": {
		doc: "Whether data that becomes ANONYMOUS decays over 90 days, instead of at once. Default: true."},
	"consent.sweep_every": {doc: "The time between two sweeps. Default: 6h."},
	"consent.webhook":     {"The address that gets warnings and decisions.", []string{"url", "secret"}, nil},
	"consent.webhook.url": {doc: "Where they are posted."},
	"air": {
		doc: "The reminder for people who have talked to an AI for long. Without it the defaults apply."},
	"air.time_threshold":     {doc: "How long after its first interaction a session is reminded. Default: 30m."},
	"air.message_threshold":  {doc: "With how many messages within the window. Default: 20."},
	"air.window":             {doc: "The window. Default: 30m."},
	"air.idle":               {doc: "A longer pause begins a new session. Default: 30m."},
	"air.keep":               {doc: "When a session without any interaction is forgotten. Default: 1h."},
	"air.sessions":           {doc: "How many sessions are held at most. Default: 1000000."},
	"air.reminder":           {doc: "The reminder's text; {messages} and {minutes} are its figures."},
	"consent.webhook.secret": {doc: "Signs what is posted: a file, or the name of a variable PGCONSENT_…"},
}

// Schema returns the JSON Schema (draft 2020-12) of a configuration, for editors. It is generated from [Config].
func Schema() []byte {
	root := schemaOf("", reflect.TypeFor[Config]())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$comment"] = "Code generated by pgconsent policy schema configuration; DO NOT EDIT."
	root["title"] = "pgconsent configuration"
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(root); err != nil {
		panic("config: a schema is plain data: " + err.Error())
	}
	return b.Bytes()
}

func schemaOf(path string, t reflect.Type) map[string]any {
	d := keyDocs[path]
	out := map[string]any{}
	if d.doc != "" && path != "version" {
		out["description"] = d.doc
	}
	value := []string{"string", "number", "boolean"}
	switch {
	case path == "version":
		out["const"] = 1
	case t.Kind() == reflect.Pointer:
		return schemaOf(path, t.Elem())
	case t == attributesType:
		itemSchema := map[string]any{"type": value}
		out["type"], out["additionalProperties"] = "object", map[string]any{
			"anyOf": []any{itemSchema, map[string]any{"type": "array", "items": itemSchema}}}
	case t == addressesType:
		itemSchema := map[string]any{"type": value}
		out["anyOf"] = []any{itemSchema, map[string]any{"type": "array", "items": itemSchema, "minItems": 1}}
	case t.Kind() == reflect.Struct:
		properties := map[string]any{}
		for i := range t.NumField() {
			if key := t.Field(i).Tag.Get("yaml"); key != "-" {
				properties[key] = schemaOf(joinPath(path, key), t.Field(i).Type)
			}
		}
		out["type"], out["properties"], out["additionalProperties"] = "object", properties, false
		if d.requiredKeys != nil {
			out["required"] = d.requiredKeys
		}
	case t.Kind() == reflect.Map:
		out["type"], out["additionalProperties"] = "object", schemaOf(joinPath(path, "NAME"), t.Elem())
	case t.Kind() == reflect.Slice:
		out["type"], out["items"] = "array", map[string]any{"type": value}
	case t.Kind() == reflect.Int:
		out["type"] = "integer"
	case t.Kind() == reflect.Bool:
		out["type"] = "boolean"
	case d.values != nil:
		out["enum"] = d.values
	default:
		out["type"] = value
	}
	return out
}
