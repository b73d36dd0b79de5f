package mcp

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Limits of the notices of PostgreSQL and the proxy, such as a reminder to the user, that are added to the answer of a
// call.
const (
	maxNotices     = 20 // number of notices of one call
	maxNoticeBytes = 4 << 10
)

// addNotice stores a notice that the call's connection has received.
func (c *Call) addNotice(n *pgconn.Notice) {
	c.noticesLock.Lock()
	defer c.noticesLock.Unlock()
	if len(c.notices) == maxNotices {
		return
	}
	text := fmt.Sprintf("%s %s: %s", n.Severity, n.Code, n.Message)
	if n.Detail != "" {
		text += "\nDETAIL: " + n.Detail
	}
	if n.Hint != "" {
		text += "\nHINT: " + n.Hint
	}
	if len(text) > maxNoticeBytes {
		text = text[:maxNoticeBytes]
		for !utf8.ValidString(text) {
			text = text[:len(text)-1]
		}
		text += "…"
	}
	c.notices = append(c.notices, strings.ToValidUTF8(text, "?"))
}

// noticeContent returns the stored notices as content of the call's result.
func (c *Call) noticeContent() (out []sdk.Content) {
	c.noticesLock.Lock()
	defer c.noticesLock.Unlock()
	for _, text := range c.notices {
		out = append(out, &sdk.TextContent{Text: text})
	}
	return out
}
