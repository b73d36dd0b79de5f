package rewrite

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// setting describes the values to which agents may set a setting.
type setting struct {
	value         *regexp.Regexp // a pattern that the value in lower case must match; nil: isPinnedValue decides
	isPinnedValue func(value string, searchPath []string) bool
	pinnedValue   string // the only value that agents may set, for the hint of the refusal
	hint          string
}

func allowing(pattern string) setting {
	return setting{value: regexp.MustCompile(`^(?:` + pattern + `)$`)}
}

func (s setting) withHint(hint string) setting {
	s.hint = hint
	return s
}

// setAfterStart is the hint if a session asks for another isolation level in its startup message.
const setAfterStart = "Set it with SET after the session has begun: pgconsent has to know which transactions keep " +
	"their snapshots."

func pinnedSetting(values ...string) setting {
	return setting{pinnedValue: values[0], isPinnedValue: func(value string, _ []string) bool {
		return slices.Contains(values, strings.ToLower(strings.TrimSpace(value)))
	}}
}

const (
	booleanPattern   = `on|off|true|false|yes|no|0|1|t|f|y|n`
	durationPattern  = `-?[0-9]{1,10}(?:\.[0-9]+)? ?(?:us|ms|s|min|h|d)?`
	isolationPattern = `read committed|read uncommitted|repeatable read|serializable`
	fractionPattern  = `[0-9]{1,3}(?:\.[0-9]{1,17})?`
	plainTextPattern = `[^\x00-\x1f\x7f]{0,256}`
)

// settings are the settings that agents may set. All others are refused, also settings with a prefix that no extension
// has defined.
var settings = map[string]setting{
	// settings for how values are shown
	"datestyle":          allowing(`[a-z, ]{0,40}`),
	"intervalstyle":      allowing(`postgres|postgres_verbose|sql_standard|iso_8601`),
	"timezone":           allowing(`[a-z0-9_/+\-:<>,. ]{0,64}`),
	"extra_float_digits": allowing(`-?[0-9]{1,2}`),
	"bytea_output":       allowing(`hex|escape`),
	"xmlbinary":          allowing(`base64|hex`),
	// settings for how long commands may take
	"statement_timeout":                   allowing(durationPattern),
	"lock_timeout":                        allowing(durationPattern),
	"idle_in_transaction_session_timeout": allowing(durationPattern),
	"idle_session_timeout":                allowing(durationPattern),
	// the setting exists since PostgreSQL 17; the proxy enforces the policy's limit of the same name by itself
	"transaction_timeout": allowing(durationPattern),
	// settings for transactions
	"default_transaction_read_only":  allowing(booleanPattern),
	"transaction_read_only":          allowing(booleanPattern),
	"default_transaction_deferrable": allowing(booleanPattern),
	"transaction_deferrable":         allowing(booleanPattern),
	"default_transaction_isolation":  allowing(isolationPattern),
	"transaction_isolation":          allowing(isolationPattern),
	// settings for the session
	// PostgreSQL shortens the name, and replaces characters that are not printable
	"application_name": allowing(`(?s:[^\x00]{0,1000})`),
	"pgconsent.reason": allowing(plainTextPattern), // the reason for which the agent changes grants, for the audit
	"client_min_messages": allowing(`notice|warning|error`).
		withHint("notice, warning or error: lower levels print the rewritten statement and more."),
	// settings for plans and searches
	"jit":                               allowing(booleanPattern),
	"geqo":                              allowing(booleanPattern),
	"plan_cache_mode":                   allowing(`auto|force_generic_plan|force_custom_plan`),
	"default_text_search_config":        allowing(`(?:pg_catalog\.)?[a-z_]{1,40}`),
	"hnsw.ef_search":                    allowing(`[0-9]{1,4}`),
	"ivfflat.probes":                    allowing(`[0-9]{1,5}`),
	"pg_trgm.similarity_threshold":      allowing(fractionPattern),
	"pg_trgm.word_similarity_threshold": allowing(fractionPattern),
	"pg_trgm.strict_word_similarity_threshold": allowing(fractionPattern),
	// pinned: other values would change how PostgreSQL reads the text, what names mean, or who the user is
	clientEncoding: {pinnedValue: "UTF8",
		isPinnedValue: func(value string, _ []string) bool { return isUTF8(value) }},
	"search_path":                 {pinnedValue: "the configured path", isPinnedValue: isSearchPath},
	"standard_conforming_strings": pinnedSetting("on", "true", "yes", "1"),
	"escape_string_warning":       pinnedSetting("on", "true", "yes", "1"),
	"backslash_quote":             pinnedSetting("safe_encoding"),
	"row_security":                pinnedSetting("on", "true", "yes", "1"),
	"transform_null_equals":       pinnedSetting("off", "false", "no", "0"),
	"array_nulls":                 pinnedSetting("on", "true", "yes", "1"),
	// pinned: with other values, searches would end before they have found enough rows, or return rows out of order
	"hnsw.iterative_scan":      pinnedSetting("strict_order"),
	"ivfflat.iterative_scan":   pinnedSetting("relaxed_order"),
	roleSetting:                pinnedSetting(noRole),
	"session_replication_role": pinnedSetting("origin"),
}

// SettingsOfAgents returns the names of the settings that agents may change for longer than a transaction. Settings
// that a policy maps to attributes are not among them.
func SettingsOfAgents() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if settings[name].value != nil && !strings.HasPrefix(name, "transaction_") {
			names = append(names, name)
		}
	}
	for _, name := range clientSettings {
		names = append(names, clientPrefix+name)
	}
	return append(names, "transaction_timeout")
}

// visibleSettings are settings that agents may read by SHOW, but not set.
var visibleSettings = map[string]bool{
	"server_version": true, "server_version_num": true, "server_encoding": true, "integer_datetimes": true,
	"is_superuser":   true,
	"in_hot_standby": true, "max_identifier_length": true, "max_index_keys": true, "max_function_args": true,
	"block_size": true,
	"lc_collate": true, "lc_ctype": true, "lc_messages": true, "lc_monetary": true, "lc_numeric": true, "lc_time": true,
	"session_authorization": true, "default_tablespace": true, "debug_assertions": true,
	// drivers read these settings to find out which server they have
	"max_connections": true, "password_encryption": true, "ssl": true, "crdb_version": true,
}

// CheckSetting checks a value for a setting and returns the value to forward. where says from where the value comes:
// "startup", "options" or "set". mustForward is false for a pinned setting that gets its pinned value. The value is
// accepted, and the proxy need not send it to PostgreSQL. A refusal is 42501, or 22023 if only the value is wrong.
//
// claims are the settings that the policy maps to attributes. They may have any value that is not too long: the
// database decides whether it is valid.
func CheckSetting(name, value string, where string, searchPath []string, claims map[string]string) (normalised string,
	mustForward bool, err *sqlstate.Error) {
	name = strings.ToLower(name)
	if _, mapped := claims[name]; mapped {
		if len(value) > predicate.MaxClaimBytes || !claimPattern.MatchString(value) {
			return "", false, badValueError(name)
		}
		return value, true, nil
	}
	s, isKnown := settings[name]
	switch {
	case !isKnown || s.value == nil && s.isPinnedValue == nil:
		return "", false, notSettableError(name)
	case s.isPinnedValue != nil:
		if s.isPinnedValue(value, searchPath) || name == clientEncoding && where != "set" && isSQLASCII(value) {
			return value, false, nil
		}
		if name == clientEncoding {
			return "", false, encodingError()
		}
		is := s.pinnedValue
		// the hint to a startup message does not show the path, because the user has not logged in yet
		if name == "search_path" && where == "set" {
			is = pathText(searchPath)
		}
		return "", false, sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonSetting,
			"parameter %q is fixed for agents", name).
			WithHint("It is pinned to %s: it decides how statements are read, or who asks.", is)
	case where != "set" && strings.HasSuffix(name, "transaction_isolation") && !isReadCommitted(value):
		return "", false, badValueError(name).WithHint("%s", setAfterStart)
	case !s.value.MatchString(strings.ToLower(value)):
		refusal := badValueError(name)
		if s.hint != "" {
			refusal = refusal.WithHint("%s", s.hint)
		}
		return "", false, refusal
	}
	return value, true, nil
}

// claimPattern matches the values that a claim may have: texts without control characters.
var claimPattern = regexp.MustCompile(`^[^\x00-\x1f\x7f]*$`)

func notSettableError(name string) *sqlstate.Error {
	return sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonSetting,
		"parameter %q cannot be changed by agents", name).
		WithHint("Agents may set how values are shown (DateStyle, TimeZone, extra_float_digits …), timeouts, " +
			"application_name and client_min_messages (notice, warning, error).")
}

// checkReset refuses RESET name and SET name TO DEFAULT for settings that agents may not set.
func checkReset(name string, claims map[string]string) *sqlstate.Error {
	name = strings.ToLower(name)
	if _, mapped := claims[name]; mapped {
		return nil
	}
	if s := settings[name]; s.value == nil && s.isPinnedValue == nil && name != "session_authorization" {
		return notSettableError(name)
	}
	return nil
}

// checkShow refuses SHOW name and current_setting('name') for settings that agents may not read.
func checkShow(name string, claims map[string]string) *sqlstate.Error {
	name = strings.ToLower(name)
	if _, mapped := claims[name]; mapped {
		return nil
	}
	if slices.Contains(verdict.HardenedPlanSettings, name) {
		return sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonSetting,
			"parameter %q is not available to agents", name).
			WithHint("Agents may set plan_cache_mode, and not see it: pgconsent sets it, too, for some statements.")
	}
	if s := settings[name]; s.value == nil && s.isPinnedValue == nil && !visibleSettings[name] {
		return sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonSetting,
			"parameter %q is not available to agents", name).
			WithHint("Agents may see the settings they can set, and what drivers ask for: server_version, " +
				"server_encoding, max_identifier_length …")
	}
	return nil
}

// isListSetting tells whether the value of a setting is a list, of which PostgreSQL quotes each item in a SET.
func isListSetting(name string) bool { return strings.EqualFold(name, "search_path") }

// clientEncoding is the setting for the encoding in which a client sends and receives texts. It is UTF8 for all agents:
// see docs/decisions/0101.
const clientEncoding = "client_encoding"

// isUTF8 tells whether a value is a spelling of UTF8 that PostgreSQL accepts, also with the quotes that some drivers
// add.
func isUTF8(value string) bool {
	name := encodingName(value)
	return name == "utf8" || name == "unicode"
}

// isSQLASCII tells whether a value is a spelling of SQL_ASCII, which psql requests in the C locale. With SQL_ASCII, a
// client of a UTF8 database sends and receives UTF8 bytes. So the proxy accepts the value and gives the client UTF8.
func isSQLASCII(value string) bool { return encodingName(value) == "sqlascii" }

// encodingName returns the name of an encoding in lower case, without the quotes, hyphens, underscores and spaces that
// PostgreSQL ignores.
func encodingName(value string) string {
	name := strings.ToLower(strings.Trim(strings.TrimSpace(value), `'"`))
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(name)
}

func encodingError() *sqlstate.Error {
	return sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonSetting, "parameter %q is fixed for agents", clientEncoding).
		WithHint("Agents send and get texts in UTF8. Connect with client_encoding=UTF8 (PGCLIENTENCODING=UTF8 in the environment) and " +
			"convert in the program; in a Windows console run chcp 65001 first. Files in another encoding go through COPY with its option ENCODING.")
}

func isBoolean(value string) bool { return settings["jit"].value.MatchString(value) }

// isSearchPath tells whether a value is the pinned search path, with or without pg_catalog in front. A schema may be
// named twice, which changes nothing.
func isSearchPath(value string, searchPath []string) bool {
	path, ok := splitIdentifiers(value)
	if !ok {
		return false
	}
	if len(path) > 0 && path[0] == "pg_catalog" && !(len(searchPath) > 0 && searchPath[0] == "pg_catalog") {
		path = path[1:]
	}
	var once []string
	for _, schema := range path {
		if !slices.Contains(once, schema) {
			once = append(once, schema)
		}
	}
	return slices.Equal(once, searchPath)
}

// pathText returns a search path as SQL writes the value in a SET.
func pathText(path []string) string {
	if len(path) == 0 {
		return "''"
	}
	var quoted []string
	for _, schema := range path {
		quoted = append(quoted, catalog.QuoteIdent(schema))
	}
	return strings.Join(quoted, ", ")
}

// splitIdentifiers splits a list of names as PostgreSQL does, with unquoted names in lower case.
func splitIdentifiers(list string) ([]string, bool) {
	var out []string
	rest := strings.TrimSpace(list)
	for rest != "" {
		var name string
		if rest[0] == '"' {
			var b strings.Builder
			rest = rest[1:]
			for {
				i := strings.IndexByte(rest, '"')
				if i < 0 {
					return nil, false
				}
				b.WriteString(rest[:i])
				rest = rest[i+1:]
				if rest == "" || rest[0] != '"' {
					break
				}
				b.WriteByte('"')
				rest = rest[1:]
			}
			name = b.String()
		} else {
			i := strings.IndexAny(rest, ", \t\n\"")
			if i < 0 {
				i = len(rest)
			}
			name, rest = strings.ToLower(rest[:i]), rest[i:]
		}
		if name == "" {
			return nil, false
		}
		out = append(out, name)
		rest = strings.TrimSpace(rest)
		if rest == "" {
			return out, true
		}
		if rest[0] != ',' {
			return nil, false
		}
		if rest = strings.TrimSpace(rest[1:]); rest == "" {
			return nil, false
		}
	}
	return out, true
}
