package sweep

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/registry"
)

// Outbox delivers to a webhook what users are to be told: each message at least once, in spite of crashes, and again with
// the same id until the receiver says 2xx. Registry, URL and Secret are required.
type Outbox struct {
	Registry *registry.Registry
	URL      string
	Secret   []byte        // of the signature
	Timeout  time.Duration // of one request; 0: 10 s
	Log      *slog.Logger  // nil: none

	base http.RoundTripper // tests
}

// The headers of a message. The signature is "v1=" and the hexadecimal HMAC-SHA-256, under the secret, of the
// timestamp, a dot, and the body: a receiver that checks both knows who sent it, and that it is not an old one sent
// again.
const (
	HeaderID        = "Pgconsent-Id"
	HeaderTimestamp = "Pgconsent-Timestamp"
	HeaderSignature = "Pgconsent-Signature"
)

// Message is the body. It says what changed, and nothing of anybody's data.
type Message struct {
	ID         string     `json:"id"`     // of the message: one that comes again has the same
	Record     int64      `json:"record"` // number of the record in the registry
	Time       time.Time  `json:"time"`   // of the record
	Subject    string     `json:"subject"`
	Event      string     `json:"event"` // warned, expired, approved, rejected, deferred, lapsed, revoked, deleted, anonymised
	State      string     `json:"state"`
	Stream     *string    `json:"stream"`
	Categories []string   `json:"categories"`
	ExpiresAt  *time.Time `json:"expires_at"`

	attempts int
}

// Sign is the value of the header.
func Sign(secret []byte, timestamp string, body []byte) string {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(timestamp + "."))
	h.Write(body)
	return "v1=" + hex.EncodeToString(h.Sum(nil))
}

// A message is taken for a time before it is sent: whoever dies with it leaves it to the next after that. The wait
// doubles with each attempt. One is taken at a time: those behind one that is not answered would be due again before it
// was their turn.
const (
	firstWait     = 30 * time.Second
	longestWait   = 6 * time.Hour
	maxUnanswered = 3 // messages in a row that nobody answers: the others wait for the next delivery
)

// The reasons for which a receiver has said nothing.
const (
	noAnswer     = "no answer in time"
	noConnection = "no connection"
)

// wait before a message is sent again, after so many attempts.
func wait(attempts int) time.Duration {
	if attempts > 10 {
		return longestWait
	}
	return min(firstWait<<max(attempts-1, 0), longestWait)
}

// Delivery counts what Deliver did.
type Delivery struct{ Sent, Failed int }

// Deliver sends what is due. Several may run side by side: each takes other messages. An error is one of the database.
func (o *Outbox) Deliver(ctx context.Context) (Delivery, error) {
	var out Delivery
	c := o.Registry.Connect.Copy()
	c.RuntimeParams["application_name"] = "pgconsent outbox"
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return out, dbError("deliver messages", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx,
		"DELETE FROM pgconsent.outbox WHERE GREATEST(sent_at, recorded_at) < pg_catalog.clock_timestamp() - "+
			"interval '720 hours' AND sent_at IS NOT NULL"); err != nil {
		return out, dbError("drop old messages", err)
	}
	silent := 0
	for ctx.Err() == nil && silent < maxUnanswered {
		m, err := o.take(ctx, conn)
		if err != nil || m == nil {
			return out, err
		}
		why := o.send(ctx, *m)
		if ctx.Err() != nil {
			return out, ctx.Err() // it is taken, and comes again
		}
		if why == noAnswer || why == noConnection {
			silent++
		} else {
			silent = 0
		}
		if why == "" {
			out.Sent++
			_, err = conn.Exec(ctx,
				"UPDATE pgconsent.outbox SET sent_at = pg_catalog.clock_timestamp(), error = NULL WHERE id = $1::text::uuid", m.ID)
		} else {
			out.Failed++
			if o.Log != nil {
				o.Log.Warn("webhook", "message", m.ID, "attempt", m.attempts, "failure", why)
			}
			_, err = conn.Exec(ctx, "UPDATE pgconsent.outbox SET error = $2 WHERE id = $1::text::uuid", m.ID, why)
		}
		if err != nil {
			return out, dbError("take a message off", err)
		}
	}
	return out, ctx.Err()
}

// take claims a message, nil if none is due, and says when it is due again if nobody takes it off.
func (o *Outbox) take(ctx context.Context, conn *pgx.Conn) (*Message, error) {
	var m Message
	err := conn.QueryRow(ctx, `
		WITH next AS (SELECT id FROM pgconsent.outbox WHERE sent_at IS NULL AND next_at <= pg_catalog.clock_timestamp() ORDER BY next_at, number LIMIT 1 FOR UPDATE SKIP LOCKED)
		UPDATE pgconsent.outbox AS o SET attempts = o.attempts + 1,
			next_at = pg_catalog.clock_timestamp() + CASE WHEN o.attempts > 9 THEN $2::interval ELSE LEAST($1::interval * pg_catalog.power(2, o.attempts), $2::interval) END
		FROM next WHERE o.id = next.id
		RETURNING o.id::text, o.number, o.recorded_at, o.subject, o.event, o.state, o.stream, o.categories, o.expires_at, o.attempts`,
		seconds(firstWait), seconds(longestWait)).
		Scan(&m.ID, &m.Record, &m.Time, &m.Subject, &m.Event, &m.State, &m.Stream, &m.Categories, &m.ExpiresAt, &m.attempts)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, dbError("take a message", err)
	}
	return &m, nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%d seconds", int64(d/time.Second)) }

// send posts one message and returns why it did not arrive, without anything that the receiver said: "" if it did.
func (o *Outbox) send(ctx context.Context, m Message) string {
	timeout := o.Timeout
	if timeout == 0 {
		timeout = 10 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	m.Time = m.Time.UTC()
	if m.ExpiresAt != nil {
		utc := m.ExpiresAt.UTC()
		m.ExpiresAt = &utc
	}
	body, err := json.Marshal(m)
	if err != nil {
		return "the message cannot be written"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, o.URL, bytes.NewReader(body))
	if err != nil {
		return "the URL cannot be used"
	}
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "pgconsent")
	request.Header.Set(HeaderID, m.ID)
	request.Header.Set(HeaderTimestamp, timestamp)
	request.Header.Set(HeaderSignature, Sign(o.Secret, timestamp, body))
	response, err := o.client().Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return noAnswer
		}
		return noConnection
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, 4096)
	if response.StatusCode/100 != 2 {
		return "status " + strconv.Itoa(response.StatusCode)
	}
	return ""
}

// client follows no redirect: it would carry a message, signed, to whom nobody has named.
func (o *Outbox) client() *http.Client {
	return &http.Client{Transport: o.base, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
}
