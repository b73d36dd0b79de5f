package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pgconsent/pgconsent/internal/services/api"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// apiClient has the flags of commands that call the HTTP API of a running serve. The token identifies the agent.
type apiClient struct{ serverFlags }

// apiProblem is an error of the HTTP API in the form of problem JSON.
type apiProblem struct {
	Status int                   `json:"status"`
	Code   string                `json:"code"`
	Called string                `json:"name"`
	Detail string                `json:"detail"`
	Hint   string                `json:"hint"`
	Report *api.GeneralizeReport `json:"report"`
	Errors []struct {
		Location string `json:"location"`
		Message  string `json:"message"`
	} `json:"errors"`
}

// call sends a request to the API and decodes the answer into out.
func (f apiClient) call(s *session, method, path string, query url.Values, in, out any) error {
	server, err := f.resolve(s)
	if err != nil {
		return err
	}
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	ctx, cancel := context.WithTimeout(s.ctx, 60*time.Second)
	defer cancel()
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, method, server.baseURL+path, body)
	if err != nil {
		return usageError{err}
	}
	r.Header.Set("Authorization", "Bearer "+server.token)
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	response, err := server.http.Do(r)
	if err != nil {
		return sqlstate.New(sqlstate.ConnectionFailure, sqlstate.ReasonInternal, "%s does not answer", server.baseURL).
			WithHint("Start pgconsent serve, or say where it is with --url.").WithCause(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 64<<20))
	if err != nil {
		return sqlstate.New(sqlstate.ConnectionFailure, sqlstate.ReasonInternal, "%s has not sent a whole answer",
			server.baseURL).WithCause(err)
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		var problem apiProblem
		if json.Unmarshal(text, &problem) != nil || problem.Code == "" || problem.Detail == "" {
			return sqlstate.New(sqlstate.ConnectionFailure, sqlstate.ReasonInternal, "%s answers %s", server.baseURL,
				response.Status).WithHint("Is this the HTTP listener of pgconsent serve, and has the configuration http.tokens?")
		}
		hint := problem.Hint
		for _, e := range problem.Errors {
			hint = strings.TrimSpace(hint + " " + e.Location + ": " + e.Message + ".")
		}
		refusal := sqlstate.New(sqlstate.Code(problem.Code), sqlstate.ReasonConsent, "%s", problem.Detail).WithHint("%s",
			hint)
		if problem.Called == "" {
			return refusal
		}
		return &apiError{problem.Called, refusal, problem.Report}
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(text, out)
}

// apiError is an error of the HTTP API, with the API's name for the error.
type apiError struct {
	name   string
	err    *sqlstate.Error
	report *api.GeneralizeReport // for a refused generalization, what the checks found
}

func (e *apiError) Error() string { return e.err.Message }

func (e *apiError) Unwrap() error { return e.err }

// Name returns the API's name for the error. It implements consent.Named.
func (e *apiError) Name() string { return e.name }
