// Package console serves web pages without scripts. A data subject sees who may see and who has seen their data, and
// withdraws consent. An admin sees people and their consents, and why an agent sees a row or not. An operator sees the
// state of the sidecar.
//
// Guarantee: the console decides nothing itself: it reads and changes data through package operations, as the caller
// whose token opened the session. Each call is recorded before a byte of its answer is sent. No address contains
// personal data. A page runs no script, and loads nothing from another server. A session ends when its token becomes
// invalid, when the user signs out, and by a timeout.
package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/services/operations"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Base is the path below which the console serves its pages.
const Base = "/console/"

// Config has the settings of a console. Service and Verifier are required.
type Config struct {
	Service       *operations.AdminService
	Verifier      identity.Verifier
	ServedOverTLS bool             // the console is served over TLS, and browsers must send its cookies over TLS only
	Log           *slog.Logger     // nil: nothing is logged
	Now           func() time.Time // the clock; nil: time.Now
}

// Console is the HTTP handler of the pages.
type Console struct {
	Config
	mux           *http.ServeMux
	sessions      *sessionStore
	loginAttempts *loginLimiter
	crossOrigin   *http.CrossOriginProtection
}

// New makes a console.
func New(c Config) (*Console, error) {
	if c.Service == nil || c.Verifier == nil {
		return nil, errors.New("console: a service and a verifier are required")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	o := &Console{Config: c, mux: http.NewServeMux(), sessions: newSessions(c.Now),
		loginAttempts: &loginLimiter{now: c.Now},
		crossOrigin:   http.NewCrossOriginProtection()}
	o.addRoutes()
	return o, nil
}

func (o *Console) addRoutes() {
	handleFunc := func(pattern string, h http.HandlerFunc) {
		method, path, _ := strings.Cut(pattern, " ")
		o.mux.HandleFunc(method+" "+Base+path, h)
	}
	handleFunc("GET console.css", o.serveStyle)
	handleFunc("GET icon.svg", o.serveIcon)
	handleFunc("GET login", o.loginForm)
	handleFunc("POST login", o.login)
	handleFunc("POST logout", o.logout)
	handleFunc("GET {$}", o.readHandler("console.home", consoleRoles, o.showHome))

	handleFunc("GET me", o.readHandler("consent.status", subjectRole, o.showOwnData))
	handleFunc("GET me/seen", o.readHandler("dsar.retrievals", subjectRole, o.showRetrievals))
	handleFunc("GET me/history", o.readHandler("consent.history", subjectRole, o.showHistory))
	handleFunc("POST me/withdraw", o.writeHandler("consent.revoke", subjectRole, o.withdrawConsent))
	handleFunc("POST me/give", o.writeHandler("consent.grant", subjectRole, o.giveConsentAgain))
	handleFunc("POST me/less", o.writeHandler("consent.degrade", subjectRole, o.reduceConsent))
	handleFunc("POST me/partnership", o.writeHandler("consent.upgrade", subjectRole, o.askForPartnership))
	handleFunc("POST me/consent", o.writeHandler("consent.grant", subjectRole, o.giveConsentTo))
	handleFunc("GET me/for/{handle}", o.readHandler("consent.status", subjectRole, o.showWard))
	handleFunc("POST me/for/{handle}/withdraw", o.writeHandler("consent.revoke", subjectRole, o.withdrawForWard))
	handleFunc("POST me/report", o.writeHandler("dsar.report", subjectRole, o.sendReport))

	handleFunc("GET me/memories", o.readHandler("privacy.audit", subjectRole, o.showMemories))
	handleFunc("GET me/memories/{handle}", o.readHandler("privacy.audit", subjectRole, o.showMemories))
	handleFunc("POST me/memories", o.readHandler("privacy.audit", subjectRole, o.showMemoriesAbout))
	handleFunc("GET me/general", o.readHandler("privacy.drawn", subjectRole, o.showBeliefs))
	handleFunc("GET me/general/{handle}", o.readHandler("privacy.drawn", subjectRole, o.showBeliefs))

	handleFunc("GET people", o.readHandler("consent.people", adminRole, o.showPeople))
	handleFunc("GET people/after/{handle}", o.readHandler("consent.people", adminRole, o.showPeople))
	handleFunc("POST people", o.readHandler("consent.people", adminRole, o.setFilter))
	handleFunc("GET pending", o.readHandler("consent.pending", adminRole, o.showPending))
	handleFunc("GET person/{handle}", o.readHandler("consent.person", adminRole, o.showPerson))
	handleFunc("GET why", o.readHandler("policy.why", adminRole, o.showWhyForm))
	handleFunc("POST why", o.readHandler("policy.why", adminRole, o.answerWhy))

	handleFunc("GET operations", o.readHandler("operations.overview", operatorRole, o.showOperations))
}

var (
	subjectRole  = []identity.Role{identity.Subject}
	adminRole    = []identity.Role{identity.Admin}
	operatorRole = []identity.Role{identity.Operator}
	consoleRoles = []identity.Role{identity.Subject, identity.Admin, identity.Operator}
)

// maxFormBytes is the size of the largest accepted form.
const maxFormBytes = 64 << 10

// ServeHTTP implements http.Handler, for paths that begin with [Base].
func (o *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy",
		"default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	r.Body = http.MaxBytesReader(w, r.Body, maxFormBytes)
	if err := o.crossOrigin.Check(r); err != nil {
		o.writeProblem(w, nil, http.StatusForbidden, foreignFormProblem)
		return
	}
	handler, pattern := o.mux.Handler(r)
	if pattern == "" { // The mux would answer with status 404 or 405; the console sends a page instead.
		status := &statusRecorder{header: http.Header{}}
		handler.ServeHTTP(status, r)
		if allow := status.header.Get("Allow"); allow != "" {
			h.Set("Allow", allow)
		}
		if status.code == http.StatusMethodNotAllowed {
			o.writeProblem(w, nil, status.code, problemText{"That cannot be done here",
				"The page does not take this kind of request.", ""})
		} else {
			o.writeProblem(w, nil, http.StatusNotFound, problemText{"There is no such page",
				"The address is not one of the console's.", ""})
		}
		return
	}
	o.mux.ServeHTTP(w, r)
}

// statusRecorder records the status and the headers of an answer, and discards its body.
type statusRecorder struct {
	header http.Header
	code   int
}

func (s *statusRecorder) Header() http.Header         { return s.header }
func (s *statusRecorder) Write(b []byte) (int, error) { return len(b), nil }
func (s *statusRecorder) WriteHeader(code int)        { s.code = code }

// request is a request in a signed-in user's session.
type request struct {
	context.Context
	httpRequest    *http.Request
	form           url.Values // fields of the form, for a POST
	session        *session
	caller         identity.Caller
	auditSubjects  []string // ids of the persons that the answer is about, for the audit record
	aboutEverybody bool     // the answer is about all data subjects of the database
	skipsAudit     bool     // the audit does not record the request, whose page shows no data
}

// answer is what a handler returns: a page, a file or a redirect.
type answer struct {
	template     string
	title        string
	data         any
	status       int    // HTTP status; 0: 200
	redirectPath string // path below Base; if it is set, the answer is a redirect
	file         *attachment
}

type attachment struct {
	name, kind string
	body       []byte
}

// readHandler returns the HTTP handler of an operation that changes nothing.
func (o *Console) readHandler(operation string, roles []identity.Role, f func(*request) (answer,
	error)) http.HandlerFunc {
	return o.newHandler(operation, roles, false, f)
}

// writeHandler returns the HTTP handler of an operation that may change something.
func (o *Console) writeHandler(operation string, roles []identity.Role,
	f func(*request) (answer, error)) http.HandlerFunc {
	return o.newHandler(operation, roles, true, f)
}

func (o *Console) newHandler(operation string, roles []identity.Role, writes bool,
	f func(*request) (answer, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s, secret := o.sessionOf(r)
		if s == nil {
			o.redirectToLogin(w, r, secret)
			return
		}
		caller, err := s.verifyCaller(r.Context(), o.Verifier, secret)
		if err != nil {
			o.sessions.end(s)
			o.redirectToLogin(w, r, secret)
			return
		}
		c := &request{Context: r.Context(), httpRequest: r, session: s, caller: caller}
		changes := r.Method != http.MethodGet && r.Method != http.MethodHead
		a, err := o.authorizeAndRun(c, roles, changes, f)
		record := audit.Call{
			Interface: "console", CallerName: caller.Name, Role: string(caller.Role), Agent: caller.Agent,
			Database: caller.Database, Operation: operation,
			MayChangeData: writes, Subjects: c.auditSubjects, AboutEverybody: c.aboutEverybody, Outcome: audit.OutcomeDone,
		}
		if caller.Role == identity.Subject {
			record.CallerName = caller.Subject
		}
		status, problem := http.StatusOK, problemText{}
		if err != nil {
			status, problem, record.Outcome, record.Code = describeError(err)
			if status >= 500 {
				o.Log.Error("console", "operation", operation, "error", err)
			}
		}
		if !c.skipsAudit || err != nil {
			if e := o.Service.Record(context.WithoutCancel(r.Context()), record); e != nil {
				o.Log.Error("console: the call cannot be recorded", "operation", operation, "error", e)
				o.writeProblem(w, c, http.StatusServiceUnavailable, unrecordedProblem)
				return
			}
		}
		if err != nil {
			o.writeProblem(w, c, status, problem)
			return
		}
		o.writeAnswer(w, r, c, a)
	}
}

// authorizeAndRun runs an operation if the caller has one of the roles, and, if the operation changes something, if the
// form is from the caller's session.
func (o *Console) authorizeAndRun(c *request, roles []identity.Role, changes bool, f func(*request) (answer,
	error)) (answer, error) {
	if err := operations.RequireRole(c.caller, roles...); err != nil {
		return answer{}, err
	}
	if c.caller.Role == identity.Subject {
		c.auditSubjects = []string{c.caller.Subject}
	}
	if changes {
		if err := parseForm(c.httpRequest); err != nil {
			return answer{}, err
		}
		c.form = c.httpRequest.PostForm
		if !c.session.hasCSRFToken(c.form.Get("csrf")) {
			return answer{}, errForeignForm
		}
	}
	return f(c)
}

// parseForm parses a form. It refuses forms that no page of the console would send, because of their type, size or
// text.
func parseForm(r *http.Request) error {
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"),
		";"); strings.TrimSpace(kind) != "application/x-www-form-urlencoded" {
		return errUnreadableForm
	}
	if err := r.ParseForm(); err != nil {
		var tooLargeError *http.MaxBytesError
		if errors.As(err, &tooLargeError) {
			return errLongForm
		}
		return errUnreadableForm
	}
	for _, values := range r.PostForm {
		for _, v := range values {
			if !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
				return errUnreadableForm
			}
		}
		if len(values) > 1 {
			return errUnreadableForm
		}
	}
	return nil
}

// writeAnswer sends an answer. The caller of writeAnswer has written the audit record before.
func (o *Console) writeAnswer(w http.ResponseWriter, r *http.Request, c *request, a answer) {
	switch {
	case a.redirectPath != "":
		http.Redirect(w, r, Base+strings.TrimPrefix(a.redirectPath, "/"), http.StatusSeeOther)
	case a.file != nil:
		w.Header().Set("Content-Type", a.file.kind)
		w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", a.file.name))
		w.Header().Set("Content-Length", fmt.Sprint(len(a.file.body)))
		_, _ = w.Write(a.file.body)
	default:
		o.renderPage(w, c, a)
	}
}

// renderPage renders a whole page and then sends it.
func (o *Console) renderPage(w http.ResponseWriter, c *request, a answer) {
	v := pageData{Title: a.title, Data: a.data, Base: Base}
	if c != nil {
		v.SignedIn, v.Role, v.CSRF, v.Nav = c.caller.Name, roleWords[c.caller.Role], c.session.csrf, o.navigationLinks(c)
		if c.caller.Role == identity.Subject {
			v.SignedIn = c.caller.Subject
		}
		v.Flash = c.session.takeFlash()
	}
	var b bytes.Buffer
	if err := pages[a.template].ExecuteTemplate(&b, "page", v); err != nil {
		o.Log.Error("console: a page cannot be made", "page", a.template, "error", err)
		http.Error(w, "this page cannot be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if a.status != 0 {
		w.WriteHeader(a.status)
	}
	_, _ = w.Write(b.Bytes())
}

// problemText is an error in the words in which a page shows it.
type problemText struct{ Title, Text, Hint string }

var (
	errForeignForm    = errors.New("the form is not one of this session's")
	errUnreadableForm = errors.New("the form cannot be read")
	errLongForm       = errors.New("the form is too long")

	foreignFormProblem = problemText{"This form was not sent",
		"It does not belong to your session: it may be too old, or come from another site. Nothing was changed.",
		"Go back to the page, load it again, and send it from there."}
	unrecordedProblem = problemText{"This cannot be answered now",
		"The page must be recorded before it is shown, and the record cannot be written.",
		"Try again in a moment. If it does not help, the operator of pgconsent has to check the audit."}
)

// describeError returns an error in words for the user, with the HTTP status. outcome and code are for the audit
// record.
func describeError(err error) (status int, p problemText, outcome, code string) {
	switch {
	case errors.Is(err, errForeignForm):
		return http.StatusForbidden, foreignFormProblem, audit.OutcomeRefused, "csrf"
	case errors.Is(err, errLongForm):
		return http.StatusRequestEntityTooLarge, problemText{
			"This is too long", "A form may have 64 KiB. Nothing was changed.", ""}, audit.OutcomeRefused, "bounds"
	case errors.Is(err, errUnreadableForm):
		return http.StatusBadRequest, problemText{"This form cannot be read",
			"It is not what the page would have sent. Nothing was changed.", ""}, audit.OutcomeRefused, "bounds"
	}
	var sqlError *sqlstate.Error
	if !errors.As(err, &sqlError) && errors.Is(err, context.DeadlineExceeded) {
		return http.StatusGatewayTimeout, problemText{
				"This took too long", "The database has not answered in time.", "Try again in a minute."}, audit.OutcomeFailed,
			string(sqlstate.QueryCanceled)
	}
	if sqlError == nil {
		return http.StatusInternalServerError, problemText{
				"Something went wrong", "The log of pgconsent has the cause. Nothing was changed.", ""}, audit.OutcomeFailed,
			string(sqlstate.InternalError)
	}
	p = problemText{"This cannot be done", asSentence(sqlError.Message), asSentence(sqlError.Hint)}
	code = string(sqlError.Code)
	var namedError consent.Named
	if errors.As(err, &namedError) {
		code = namedError.Name()
	}
	status, outcome = http.StatusInternalServerError, audit.OutcomeFailed
	switch sqlError.Code {
	case sqlstate.InsufficientPrivilege:
		return http.StatusForbidden, problemText{"This is not yours to see",
			"Your sign-in gives no access to it, whether it exists or not.", ""}, audit.OutcomeRefused, code
	case sqlstate.ConsentNotFound:
		status, outcome, p.Title = http.StatusNotFound, audit.OutcomeRefused, "Nothing is recorded"
	case sqlstate.UndefinedObject, sqlstate.UndefinedTable:
		status, outcome, p.Title = http.StatusNotFound, audit.OutcomeRefused, "There is no such thing"
	case sqlstate.ConsentConflict:
		status, outcome = http.StatusConflict, audit.OutcomeRefused
	case sqlstate.ConsentExpired:
		status, outcome, p.Title = http.StatusGone, audit.OutcomeRefused, "This is over"
	case sqlstate.ConsentValidation, sqlstate.InvalidParameterValue, sqlstate.SyntaxError:
		status, outcome = http.StatusUnprocessableEntity, audit.OutcomeRefused
	case sqlstate.LimitExceeded:
		status, outcome, p.Title = http.StatusTooManyRequests, audit.OutcomeRefused, "Too much at once"
	case sqlstate.CannotConnectNow, sqlstate.ConnectionFailure, sqlstate.IOError, sqlstate.ConsentClock:
		status = http.StatusServiceUnavailable
	case sqlstate.ConfigFileError:
		status, p.Title = http.StatusNotImplemented, "This is not set up"
	case sqlstate.ConsentTampered:
	default:
		p = problemText{"Something went wrong", "The log of pgconsent has the cause.", ""}
	}
	return status, p, outcome, code
}

// writeProblem sends the page that describes a problem.
func (o *Console) writeProblem(w http.ResponseWriter, c *request, status int, p problemText) {
	o.renderPage(w, c, answer{template: "problem", title: p.Title, data: p, status: status})
}
