package privacy

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Context is a context in which the caller participates, or that is in a store of the caller.
type Context struct {
	Name         string   `json:"context"`
	Store        string   `json:"store"`
	Participants []string `json:"participants"`
	Access       []string `json:"default_access_grants"` // the ids to which new memories in this context are granted
	Owner        bool     `json:"owner"`                 // the caller owns the store of the context
	MayEnter     bool     `json:"enters"`                // the caller may enter the context
}

// ContextRequest says which context to enter or to make.
type ContextRequest struct {
	Context      string
	Store        string   // store of the context; "": the caller's only store
	Participants []string // the participants of a new context, or those that the owner adds
	// the ids to which new memories in a new context are granted; nil: the context and its participants
	Access []string
	Role   string // a role that the caller names; it counts only if the caller's credential has it
	Reason string
}

// EnteredContext is a context that the caller can enter, and how to do so.
type EnteredContext struct {
	Context
	Created bool     `json:"created"`
	Added   []string `json:"added"` // the participants that this call has added
	Role    string   `json:"role,omitempty"`
	// false: the caller's credential does not have Role, so Role gives no right
	CredentialHasRole *bool  `json:"role_held,omitempty"`
	Setting           string `json:"sql"` // the SQL statement with which a connection enters the context
}

func intText(n int) string { return strconv.Itoa(n) }

// Contexts returns the contexts that the caller may enter, and all contexts in its own stores.
func (d *Service) Contexts(ctx context.Context, c identity.Caller) ([]Context, error) {
	s, err := d.openSession(ctx, c, "", "")
	if err != nil {
		return nil, err
	}
	defer s.close(ctx)
	return s.readContexts(ctx, "")
}

// ContextsNamed returns those contexts of [Service.Contexts] that have this name.
func (d *Service) ContextsNamed(ctx context.Context, caller identity.Caller, name string) ([]Context, error) {
	if err := checkID("the context", name); err != nil {
		return nil, err
	}
	s, err := d.openSession(ctx, caller, "", "")
	if err != nil {
		return nil, err
	}
	defer s.close(ctx)
	out, err := s.readContexts(ctx, name)
	if err == nil && len(out) == 0 {
		err = newNotFoundError("context")
	}
	return out, err
}

// readContexts returns the contexts with this name that the caller sees. If the name is "", it returns all that it
// sees.
func (s *callerSession) readContexts(ctx context.Context, name string) ([]Context, error) {
	x := s.section.Contexts
	if x == nil {
		return nil, newError(NameNotFound, "The DBA writes contexts: under privacy in the policy.",
			"this database has no contexts")
	}
	stores, err := s.ownStores(ctx)
	if err != nil {
		return nil, err
	}
	defaults := "NULL::pg_catalog.text"
	if x.Defaults.Column != "" {
		defaults = catalog.QuoteIdent(x.Defaults.Column) + "::pg_catalog.text"
	}
	sql := "SELECT " + catalog.QuoteIdent(x.Name) + "::pg_catalog.text, " + catalog.QuoteIdent(x.Store) +
		"::pg_catalog.text, " + catalog.QuoteIdent(x.Participants.Column) + "::pg_catalog.text, " + defaults +
		" FROM " + x.Relation.Name.SQL()
	var args []any
	if name != "" {
		sql, args = sql+" WHERE "+catalog.QuoteIdent(x.Name)+" = $1", append(args, name)
	}
	rows, err := s.conn.Query(ctx, sql+" ORDER BY 1, 2 LIMIT 1000", args...)
	if err != nil {
		return nil, translateDatabaseError(err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Context, error) {
		var c Context
		var participants, access *string
		if err := row.Scan(&c.Name, &c.Store, &participants, &access); err != nil {
			return c, err
		}
		c.Participants, _ = decodeList(x.Participants, participants)
		if x.Defaults.Column != "" {
			c.Access, _ = decodeList(x.Defaults, access)
		}
		if len(c.Access) == 0 { // The context has no grants of its own for new memories.
			c.Access = append(slices.Clone(c.Participants), c.Name)
		}
		if c.Participants == nil {
			c.Participants = []string{}
		}
		c.Owner = slices.Contains(stores, c.Store)
		c.MayEnter = c.Owner || slices.ContainsFunc(s.ids,
			func(id string) bool { return slices.Contains(c.Participants, id) })
		return c, nil
	})
	if out == nil {
		out = []Context{}
	}
	return out, translateDatabaseError(err)
}

// EnterContext says how to enter a context; each connection must enter it itself. If the context does not exist and the
// caller owns a store, EnterContext makes it. Only the owner can add participants.
func (d *Service) EnterContext(ctx context.Context, c identity.Caller, e ContextRequest) (*EnteredContext, error) {
	return d.findOrMakeContext(ctx, c, e, false)
}

// MakeContext makes a context. It returns an error if the caller can enter one of this name already.
func (d *Service) MakeContext(ctx context.Context, c identity.Caller, e ContextRequest) (*EnteredContext, error) {
	return d.findOrMakeContext(ctx, c, e, true)
}

func (d *Service) findOrMakeContext(ctx context.Context, caller identity.Caller, e ContextRequest,
	mustBeNew bool) (*EnteredContext,
	error) {
	participants, err := checkIDs("participants", e.Participants)
	if err != nil {
		return nil, err
	}
	access, err := checkIDs("access", e.Access)
	if err != nil {
		return nil, err
	}
	if err := firstError(checkID("the context", e.Context), checkOptionalID("the store", e.Store),
		checkOptionalID("the role", e.Role)); err != nil {
		return nil, err
	}
	s, err := d.openSession(ctx, caller, "", e.Reason)
	if err != nil {
		return nil, err
	}
	defer s.close(ctx)
	found, err := s.readContexts(ctx, e.Context)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(x Context) bool { return e.Store != "" && x.Store != e.Store || !x.MayEnter })
	if ownContexts := slices.DeleteFunc(slices.Clone(found), func(x Context) bool { return !x.Owner }); len(found) > 1 &&
		len(ownContexts) == 1 && e.Store == "" && len(participants) > 0 {
		found = ownContexts
	}
	out := &EnteredContext{Added: []string{}}
	switch {
	case len(found) == 0:
		if out.Context, err = s.insertContext(ctx, e, participants, access); err != nil {
			return nil, err
		}
		out.Created, out.Added = true, participants
	case mustBeNew:
		return nil, newError(NameConflict, "Enter it, or take another name.", "there is such a context already")
	default:
		out.Context = found[0]
		if e.Access != nil {
			return nil, newError(NameConflict, "Leave it out. Its owner changes it by SQL.",
				"the context is there already, and says what new memories are granted to")
		}
		if newParticipants := idsNotIn(participants, out.Participants); len(newParticipants) > 0 {
			if len(found) > 1 {
				return nil, newError(NameValidation, "Say which with --store.", "there are %d contexts of this name", len(found))
			}
			if err := s.addParticipants(ctx, &out.Context, newParticipants); err != nil {
				return nil, err
			}
			out.Added = newParticipants
		}
	}
	if err := s.enterContext(ctx, e.Context); err != nil { // The proxy decides whether the caller may enter.
		return nil, err
	}
	if e.Role != "" {
		hasRole := slices.Contains(s.ids, e.Role) || slices.Contains(s.ids, "role:"+e.Role)
		out.Role, out.CredentialHasRole = e.Role, &hasRole
	}
	out.Setting = "SET " + s.section.ContextSetting + " = " + catalog.QuoteLiteral(e.Context)
	return out, nil
}

// insertContext inserts a context into a store of the caller. It does not reveal whether another store has a context of
// this name, because names are unique only within a store.
func (s *callerSession) insertContext(ctx context.Context, e ContextRequest, participants, access []string) (Context,
	error) {
	x := s.section.Contexts
	stores, err := s.ownStores(ctx)
	if err != nil {
		return Context{}, err
	}
	switch {
	case len(stores) == 0 || e.Store != "" && !slices.Contains(stores, e.Store):
		return Context{}, newNotFoundError("context")
	case e.Store == "" && len(stores) > 1:
		return Context{}, newError(NameValidation, "Say which with --store.", "you have %d stores", len(stores))
	case e.Store != "":
		stores = []string{e.Store}
	}
	columns, values := []string{x.Store, x.Name, x.Participants.Column}, []any{
		stores[0], e.Context, encodeList(x.Participants, participants)}
	if e.Access != nil {
		if x.Defaults.Column == "" {
			return Context{}, newError(NameValidation, "Leave it out.", "contexts have no grants of their own here")
		}
		columns, values = append(columns, x.Defaults.Column), append(values, encodeList(x.Defaults, access))
	}
	if _, err := s.conn.Exec(ctx, "INSERT INTO "+x.Relation.Name.SQL()+" ("+quotedList(columns)+") VALUES ("+
		parameterList(len(columns))+")", values...); err != nil {
		return Context{}, translateDatabaseError(err)
	}
	if len(access) == 0 {
		access = append(slices.Clone(participants), e.Context)
	}
	return Context{Name: e.Context, Store: stores[0], Participants: participants, Access: access, Owner: true,
		MayEnter: true}, nil
}

// addParticipants adds participants to a context. It returns an error unless the caller owns the context.
func (s *callerSession) addParticipants(ctx context.Context, c *Context, newParticipants []string) error {
	if !c.Owner {
		return newError(NameForbidden, "Enter it without --participants, or ask its owner.",
			"who takes part in a context is for its owner to say")
	}
	x := s.section.Contexts
	list := append(slices.Clone(c.Participants), newParticipants...)
	tag, err := s.conn.Exec(ctx, "UPDATE "+x.Relation.Name.SQL()+" SET "+catalog.QuoteIdent(x.Participants.Column)+
		" = $1 WHERE "+catalog.QuoteIdent(x.Name)+" = $2 AND "+catalog.QuoteIdent(x.Store)+" = $3",
		encodeList(x.Participants, list), c.Name, c.Store)
	switch {
	case err != nil:
		return translateDatabaseError(err)
	case tag.RowsAffected() == 0:
		return newNotFoundError("context")
	}
	if x.Defaults.Column == "" || slices.Equal(c.Access, append(slices.Clone(c.Participants), c.Name)) {
		c.Access = append(slices.Clone(list), c.Name)
	}
	c.Participants = list
	return nil
}

// RoleNote returns a note if the caller's credential does not have the role, or else "".
func (e *EnteredContext) RoleNote() string {
	if e.CredentialHasRole != nil && !*e.CredentialHasRole {
		return strings.TrimPrefix(e.Role, "role:") + " is no role of your credential's: it gives nothing"
	}
	return ""
}
