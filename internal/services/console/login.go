package console

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/services/identity"
)

// loginCookie holds the random value of the login form. It shows that the form was sent to this browser, so that an
// attacker cannot sign in a victim with the attacker's token.
const loginCookie = "pgconsent_form"

type loginPage struct {
	Form    string
	Problem string
	Ended   bool
}

func (o *Console) loginForm(w http.ResponseWriter, r *http.Request) {
	_, err := r.Cookie(o.cookieName())
	o.loginPage(w, http.StatusOK, loginPage{Ended: err == nil})
}

func (o *Console) loginPage(w http.ResponseWriter, status int, p loginPage) {
	random := make([]byte, 24)
	if _, err := rand.Read(random); err != nil {
		http.Error(w, "no random numbers", http.StatusInternalServerError)
		return
	}
	p.Form = base64.RawURLEncoding.EncodeToString(random)
	http.SetCookie(w, &http.Cookie{Name: loginCookie, Value: p.Form, Path: Base + "login", HttpOnly: true,
		Secure: o.ServedOverTLS, SameSite: http.SameSiteStrictMode, MaxAge: 3600})
	if p.Ended {
		http.SetCookie(w, o.sessionCookie(""))
	}
	o.renderPage(w, nil, answer{template: "login", title: "Sign in", data: p, status: status})
}

// login begins a session with the token that the user has entered in the form.
func (o *Console) login(w http.ResponseWriter, r *http.Request) {
	if err := parseForm(r); err != nil {
		status, p, _, _ := describeError(err)
		o.writeProblem(w, nil, status, p)
		return
	}
	c, err := r.Cookie(loginCookie)
	if err != nil || c.Value == "" || subtle.ConstantTimeCompare([]byte(c.Value), []byte(r.PostForm.Get("form"))) != 1 {
		o.loginPage(w, http.StatusForbidden, loginPage{
			Problem: "That form was too old, or not one of this browser's. Please try once more."})
		return
	}
	token := strings.TrimSpace(r.PostForm.Get("token"))
	caller, err := o.Verifier.Verify(r.Context(), token)
	if err != nil || !isPerson(caller) {
		// The answer is the same whatever is wrong with the token. A valid token is accepted even after many failures.
		if !o.loginAttempts.countFailure() {
			w.Header().Set("Retry-After", "10")
			o.loginPage(w, http.StatusTooManyRequests,
				loginPage{Problem: "There were too many tries that failed. Please wait for ten seconds."})
			return
		}
		o.Log.Warn("console: a sign-in was refused")
		o.loginPage(w, http.StatusUnauthorized, loginPage{Problem: "This is not a token that opens the console."})
		return
	}
	record := audit.Call{Interface: "console", CallerName: caller.Name, Role: string(caller.Role),
		Database:  caller.Database,
		Operation: "console.login", Outcome: audit.OutcomeDone}
	if caller.Role == identity.Subject {
		record.CallerName, record.Subjects = caller.Subject, []string{caller.Subject}
	}
	if err := o.Service.Record(context.WithoutCancel(r.Context()), record); err != nil {
		o.Log.Error("console: a sign-in cannot be recorded", "error", err)
		o.writeProblem(w, nil, http.StatusServiceUnavailable, unrecordedProblem)
		return
	}
	if previous, _ := o.sessionOf(r); previous != nil {
		o.sessions.end(previous)
	}
	_, value, err := o.sessions.begin(token)
	if err != nil {
		o.Log.Error("console: no session", "error", err)
		o.writeProblem(w, nil, http.StatusInternalServerError, problemText{"Something went wrong",
			"The log of pgconsent says what.", ""})
		return
	}
	http.SetCookie(w, o.sessionCookie(value))
	http.SetCookie(w, &http.Cookie{Name: loginCookie, Path: Base + "login", MaxAge: -1, HttpOnly: true,
		Secure: o.ServedOverTLS, SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, Base+homePath(caller.Role), http.StatusSeeOther)
}

// logout ends the session.
func (o *Console) logout(w http.ResponseWriter, r *http.Request) {
	s, _ := o.sessionOf(r)
	if s != nil {
		if err := parseForm(r); err != nil || !s.hasCSRFToken(r.PostForm.Get("csrf")) {
			o.writeProblem(w, nil, http.StatusForbidden, foreignFormProblem)
			return
		}
		o.sessions.end(s)
	}
	http.SetCookie(w, o.sessionCookie(""))
	http.Redirect(w, r, Base+"login", http.StatusSeeOther)
}

// redirectToLogin redirects to the login page. It is called when there is no session, or the session has ended.
func (o *Console) redirectToLogin(w http.ResponseWriter, r *http.Request, _ []byte) {
	http.Redirect(w, r, Base+"login", http.StatusSeeOther)
}

// homePath returns the path of the first page of a role.
func homePath(r identity.Role) string {
	switch r {
	case identity.Subject:
		return "me"
	case identity.Admin:
		return "people"
	default:
		return "operations"
	}
}

func (o *Console) showHome(c *request) (answer, error) {
	c.skipsAudit = true
	return answer{redirectPath: homePath(c.caller.Role)}, nil
}

// loginLimiter slows down the guessing of tokens: after 20 failed logins, it allows one more failure per second.
type loginLimiter struct {
	now          func() time.Time
	mu           sync.Mutex
	failuresLeft float64
	refilledAt   time.Time
}

const freeAttempts = 20

// refill adds the failures that have become allowed since the last call.
func (t *loginLimiter) refill() {
	now := t.now()
	if t.refilledAt.IsZero() {
		t.failuresLeft = freeAttempts
	} else {
		t.failuresLeft = min(freeAttempts, t.failuresLeft+now.Sub(t.refilledAt).Seconds())
	}
	t.refilledAt = now
}

// countFailure counts a failed login, and returns false if there were too many.
func (t *loginLimiter) countFailure() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refill()
	if t.failuresLeft < 1 {
		return false
	}
	t.failuresLeft--
	return true
}
