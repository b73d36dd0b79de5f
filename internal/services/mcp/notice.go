package mcp

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Limits of the notices that come with an answer, such as a reminder to the user. Other clients of the agent get
// notices, too.
const (
	maxNotices     = 20 // how many notices of a call are kept
	maxNoticeBytes = 4 << 10
)

// addNotice adds a notice of the call's connection.
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

// noticeContent returns each notice as content.
func (c *Call) noticeContent() (out []sdk.Content) {
	c.noticesLock.Lock()
	defer c.noticesLock.Unlock()
	for _, text := range c.notices {
		out = append(out, &sdk.TextContent{Text: text})
	}
	return out
}
