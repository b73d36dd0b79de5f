package privacy

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
)

// Service offers the operations on the memories of one database. It is safe for concurrent use.
type Service struct {
	Policy        func() *policy.Policy                                     // returns the active policy or nil
	ConnectCaller func(context.Context, identity.Caller) (*pgx.Conn, error) // connects as the caller, through the proxy
	// returns the attributes of this database's agents, by the agents' names
	AgentAttributes func() map[string]map[string]string
	ConnectControl  func(context.Context) (*pgx.Conn, error) // connects as the control role, for [Service.Audit]
	// connects as the agent role directly to PostgreSQL, for [Service.Audit]
	ConnectAgentRole func(context.Context) (*pgx.Conn, error)

	// how long a call waits for a row that another transaction has locked; 0: 5 s. It must be less than the timeout of the
	// API, after which nobody would learn the result.
	LockTimeout time.Duration
}

// callerSession is a connection of a caller through the proxy, with the policy that was active when it was opened.
type callerSession struct {
	conn    *pgx.Conn
	policy  *policy.Policy
	section *policy.Privacy
	entity  string
	ids     []string // the entity and its roles
}

// privacySection returns the active policy and its section privacy, or an error if it has none.
func (d *Service) privacySection() (*policy.Policy, *policy.Privacy, error) {
	p := d.Policy()
	if p == nil || p.Privacy() == nil {
		return nil, nil, newError(NameNotFound,
			"The DBA writes privacy: in the policy, which says where memories and grants stand.",
			"this database has no memories that are granted")
	}
	return p, p.Privacy(), nil
}

// attributesOf returns a caller's attributes: those of the agent's login, and those of the token.
func (d *Service) attributesOf(c identity.Caller) map[string]string {
	out := map[string]string{}
	for name, value := range d.AgentAttributes()[c.Agent] {
		out[name] = value
	}
	for name, value := range c.Claims {
		out[name] = value
	}
	return out
}

// entityAndRoles returns which entity a session with these attributes is, and the ids of the entity and its roles.
func entityAndRoles(p *policy.Privacy, attributes map[string]string) (entity string, ids []string) {
	entity = attributes[p.CallerAttribute]
	if entity != "" {
		ids = append(ids, entity)
	}
	for _, name := range p.RoleAttributes {
		value, ok := attributes[name]
		if !ok {
			continue
		}
		if list, isList := predicate.ParseArray(value); isList {
			for _, e := range list {
				if e != nil {
					ids = append(ids, *e)
				}
			}
		} else if value != "" {
			ids = append(ids, value)
		}
	}
	return entity, ids
}

// openSession connects as the caller, and enters a context if inContext is not "".
func (d *Service) openSession(ctx context.Context, caller identity.Caller, inContext, reason string) (*callerSession,
	error) {
	p, section, err := d.privacySection()
	if err != nil {
		return nil, err
	}
	if caller.Role != identity.Agent || caller.Agent == "" {
		return nil, newError(NameForbidden, "Use the token of an agent: pgconsent token add --role agent.",
			"only an agent has memories: this token is that of a %s", caller.Role)
	}
	if err := firstError(checkOptionalID("the context", inContext), checkReason(reason)); err != nil {
		return nil, err
	}
	entity, entityWithRoles := entityAndRoles(section, d.attributesOf(caller))
	if entity == "" {
		return nil, newError(NameForbidden, "The configuration gives each agent its attributes.",
			"nothing says who this agent is")
	}
	conn, err := d.ConnectCaller(ctx, caller)
	if err != nil {
		return nil, translateDatabaseError(err)
	}
	s := &callerSession{conn: conn, policy: p, section: section, entity: entity, ids: entityWithRoles}
	timeout := d.LockTimeout
	if timeout == 0 {
		timeout = 5 * time.Second
	}
	setStatement := "SET lock_timeout = " + strconv.FormatInt(timeout.Milliseconds(), 10)
	if reason != "" {
		setStatement += "; SET pgconsent.reason = " + catalog.QuoteLiteral(reason)
	}
	if _, err := conn.Exec(ctx, setStatement); err != nil {
		s.close(ctx)
		return nil, translateDatabaseError(err)
	}
	if inContext != "" {
		if err := s.enterContext(ctx, inContext); err != nil {
			s.close(ctx)
			return nil, err
		}
	}
	return s, nil
}

func (s *callerSession) close(ctx context.Context) { _ = s.conn.Close(context.WithoutCancel(ctx)) }

// enterContext enters a context. The error is the same if the context does not exist and if the caller does not
// participate in it.
func (s *callerSession) enterContext(ctx context.Context, name string) error {
	if s.section.ContextSetting == "" {
		return newError(NameNotFound, "The DBA writes context: under privacy in the policy.", "this database has no contexts")
	}
	before, after, _ := strings.Cut(s.section.ContextSetting, ".")
	_, err := s.conn.Exec(ctx, "SET "+catalog.QuoteIdent(before)+"."+catalog.QuoteIdent(after)+" = "+
		catalog.QuoteLiteral(name))
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == string(sqlstate.InsufficientPrivilege) {
		return newNotFoundError("context")
	}
	return translateDatabaseError(err)
}

// decodeList reads a list in the format of its column. It returns false if the value is not a list.
func decodeList(l predicate.List, value *string) ([]string, bool) {
	if value == nil {
		return nil, false
	}
	out := []string{}
	if l.Form == predicate.GrantText {
		elements, ok := predicate.ParseArray(*value)
		for _, e := range elements {
			if e == nil {
				return nil, false
			}
			out = append(out, *e)
		}
		return out, ok
	}
	var elements []any
	if json.Unmarshal([]byte(*value), &elements) != nil || elements == nil {
		return nil, false
	}
	for _, e := range elements {
		s, ok := e.(string)
		if !ok {
			return nil, false
		}
		out = append(out, s)
	}
	return out, true
}

// encodeList returns a list as text in the format of its column.
func encodeList(l predicate.List, list []string) string {
	if l.Form == predicate.GrantText {
		quotedItems := make([]string, len(list))
		for i, e := range list {
			quotedItems[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(e) + `"`
		}
		return "{" + strings.Join(quotedItems, ",") + "}"
	}
	if list == nil {
		list = []string{}
	}
	out, err := json.Marshal(list)
	if err != nil {
		panic("privacy: texts are plain data: " + err.Error())
	}
	return string(out)
}
