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

// Service has the operations on the memories of one database. It is safe for concurrent use.
type Service struct {
	Policy        func() *policy.Policy                                     // the active policy; nil: there is none
	ConnectCaller func(context.Context, identity.Caller) (*pgx.Conn, error) // connects as the caller, through the proxy
	// the attributes of the agents of this database
	AgentAttributes func() map[string]map[string]string
	ConnectControl  func(context.Context) (*pgx.Conn, error) // connects as the control role, for Audit
	// connects as the agent's role, past the proxy, for Audit
	ConnectAgentRole func(context.Context) (*pgx.Conn, error)

	// how long a call waits for a row that another transaction has locked; 0: 5 s, less than the timeout of the API,
	// which could not tell the result
	LockTimeout time.Duration
}

// callerSession is a caller's connection, with the caller and policy for which it was opened.
type callerSession struct {
	conn    *pgx.Conn
	policy  *policy.Policy
	section *policy.Privacy
	entity  string
	ids     []string // the entity and its roles
}

// privacySection returns the policy and its section privacy.
func (d *Service) privacySection() (*policy.Policy, *policy.Privacy, error) {
	p := d.Policy()
	if p == nil || p.Privacy() == nil {
		return nil, nil, newError(NameNotFound,
			"The DBA writes privacy: in the policy, which says where memories and grants stand.",
			"this database has no memories that are granted")
	}
	return p, p.Privacy(), nil
}

// attributesOf returns a caller's attributes: those of its login, and those of its token.
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

// entityAndRoles returns the ids of a session with these attributes: the entity, then its roles.
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

// openSession connects as the caller, in a context or in none.
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

// enterContext sets the context. The error is the same for a context that does not exist and one in which the caller
// does not participate.
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

// decodeList reads a list as its column has it. It returns false if the value is no list.
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

// encodeList writes a list as the text that its column has.
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
