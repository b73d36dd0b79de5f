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

// Outbox sends messages to users to a webhook, at least once each. It repeats a message with the same id, also after a
// crash, until the receiver answers with 2xx. Registry, URL and Secret are required.
type Outbox struct {
	Registry *registry.Registry
	URL      string
	Secret   []byte        // the key with which messages are signed
	Timeout  time.Duration // how long one request may take; 0: 10 s
	Log      *slog.Logger  // nil: nothing is logged

	baseTransport http.RoundTripper // tests replace it
}

// These are the headers of a message. The signature is "v1=" and the hexadecimal HMAC-SHA-256, under Secret, of the
// timestamp, a dot and the body. A receiver that checks timestamp and signature knows that pgconsent sent the message,
// and that nobody repeats an old one.
const (
	HeaderID        = "Pgconsent-Id"
	HeaderTimestamp = "Pgconsent-Timestamp"
	HeaderSignature = "Pgconsent-Signature"
)

// Message is the body of a message: it says what has changed for which subject. Besides the subject's id it has no
// personal data.
type Message struct {
	ID      string    `json:"id"`     // the id of the message; repetitions have the same id
	Record  int64     `json:"record"` // the number of the record in the registry
	Time    time.Time `json:"time"`   // the time of the record
	Subject string    `json:"subject"`
	// what happened: warned, expired, approved, rejected, deferred, lapsed, revoked, deleted or anonymised
	Event      string     `json:"event"`
	State      string     `json:"state"`
	Stream     *string    `json:"stream"`
	Categories []string   `json:"categories"`
	ExpiresAt  *time.Time `json:"expires_at"`

	attempts int
}

// Sign returns the value of the header [HeaderSignature].
func Sign(secret []byte, timestamp string, body []byte) string {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(timestamp + "."))
	h.Write(body)
	return "v1=" + hex.EncodeToString(h.Sum(nil))
}

// A process claims a message for some time before it sends it. If the process dies, another one sends the message after
// that time. The time doubles with each attempt. Messages are claimed one by one, because claims of a whole batch could
// run out while the receiver does not answer the first message.
const (
	firstRetryDelay = 30 * time.Second
	maxRetryDelay   = 6 * time.Hour
	maxUnanswered   = 3 // after this many unanswered messages in a row, Deliver leaves the others for its next call
)

// These are reasons why a message has no answer.
const (
	noAnswerReason     = "no answer in time"
	noConnectionReason = "no connection"
)

// retryDelay returns how long a message waits after this many attempts.
func retryDelay(attempts int) time.Duration {
	if attempts > 10 {
		return maxRetryDelay
	}
	return min(firstRetryDelay<<max(attempts-1, 0), maxRetryDelay)
}

// DeliveryCounts counts the messages that one call of [Outbox.Deliver] has sent, and those that failed.
type DeliveryCounts struct{ Sent, Failed int }

// Deliver sends the due messages. Several processes may call it at the same time; each sends different messages. It
// returns an error only if the database fails.
func (o *Outbox) Deliver(ctx context.Context) (DeliveryCounts, error) {
	var out DeliveryCounts
	c := o.Registry.Connect.Copy()
	c.RuntimeParams["application_name"] = "pgconsent outbox"
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return out, databaseError("deliver messages", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx,
		"DELETE FROM pgconsent.outbox WHERE GREATEST(sent_at, recorded_at) < pg_catalog.clock_timestamp() - "+
			"interval '720 hours' AND sent_at IS NOT NULL"); err != nil {
		return out, databaseError("drop old messages", err)
	}
	unansweredCount := 0
	for ctx.Err() == nil && unansweredCount < maxUnanswered {
		m, err := o.claimMessage(ctx, conn)
		if err != nil || m == nil {
			return out, err
		}
		why := o.send(ctx, *m)
		if ctx.Err() != nil {
			return out, ctx.Err() // the message stays claimed until its time is over, and is sent then
		}
		if why == noAnswerReason || why == noConnectionReason {
			unansweredCount++
		} else {
			unansweredCount = 0
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
			return out, databaseError("note a delivery", err)
		}
	}
	return out, ctx.Err()
}

// claimMessage claims a due message and sets when it is due again. It returns nil if no message is due.
func (o *Outbox) claimMessage(ctx context.Context, conn *pgx.Conn) (*Message, error) {
	var m Message
	err := conn.QueryRow(ctx, `
		WITH next AS (SELECT id FROM pgconsent.outbox WHERE sent_at IS NULL AND next_at <= pg_catalog.clock_timestamp()
			ORDER BY next_at, number LIMIT 1 FOR UPDATE SKIP LOCKED)
		UPDATE pgconsent.outbox AS o SET attempts = o.attempts + 1,
			next_at = pg_catalog.clock_timestamp() + CASE WHEN o.attempts > 9 THEN $2::interval
				ELSE LEAST($1::interval * pg_catalog.power(2, o.attempts), $2::interval) END
		FROM next WHERE o.id = next.id
		RETURNING o.id::text, o.number, o.recorded_at, o.subject, o.event, o.state, o.stream, o.categories, o.expires_at, o.attempts`,
		secondsText(firstRetryDelay), secondsText(maxRetryDelay)).
		Scan(&m.ID, &m.Record, &m.Time, &m.Subject, &m.Event, &m.State, &m.Stream, &m.Categories, &m.ExpiresAt, &m.attempts)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, databaseError("take a message", err)
	}
	return &m, nil
}

func secondsText(d time.Duration) string { return fmt.Sprintf("%d seconds", int64(d/time.Second)) }

// send posts one message. It returns why the message did not arrive, without any part of the receiver's answer, or "".
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
			return noAnswerReason
		}
		return noConnectionReason
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, 4096)
	if response.StatusCode/100 != 2 {
		return "status " + strconv.Itoa(response.StatusCode)
	}
	return ""
}

// client returns an HTTP client that follows no redirect. A redirect would send a signed message to an address that is
// not configured.
func (o *Outbox) client() *http.Client {
	return &http.Client{Transport: o.baseTransport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
}
