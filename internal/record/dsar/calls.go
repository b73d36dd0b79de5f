package dsar

import (
	"slices"
	"strings"
	"time"
)

// Calls are the calls by HTTP, MCP and the console that were about the subject.
type Calls struct {
	Number uint64          `json:"number"`
	Left   uint64          `json:"left_out"` // the number of calls that are left out, the oldest ones
	List   []InterfaceCall `json:"list"`     // the calls, oldest first
}

// InterfaceCall is one call by HTTP, MCP or a console that concerned the data subject, as the audit log records it.
type InterfaceCall struct {
	At        time.Time `json:"at"`
	Face      string    `json:"face"`
	By        string    `json:"by,omitempty"` // the name of the caller's token; left out: the caller is a person
	Role      string    `json:"role"`
	You       bool      `json:"by_subject"` // the subject was the caller
	Operation string    `json:"operation"`
	Written   bool      `json:"changes"`
	Everybody bool      `json:"everybody"` // the call was about all persons
	Outcome   string    `json:"outcome"`
	Log       string    `json:"log"`
	Record    uint64    `json:"record"`
}

// AddCall adds a call; [LogScan] calls this method. A caller is named by the name of a token; one person is not named
// to another.
func (c *Collector) AddCall(call InterfaceCall) {
	call.Log, call.You = c.Log, call.By != "" && slices.Contains(c.OnBehalfOf, call.By)
	if strings.HasPrefix(call.By, "ref:") {
		call.By = ""
	}
	c.callCount++
	c.calls = append(c.calls, call)
	if c.MaxPossible > 0 && len(c.calls) >= 2*c.MaxPossible+1024 {
		c.trimCalls()
	}
}

// trimCalls keeps only the newest calls.
func (c *Collector) trimCalls() {
	slices.SortStableFunc(c.calls, func(a, b InterfaceCall) int { return a.At.Compare(b.At) })
	if c.MaxPossible > 0 && len(c.calls) > c.MaxPossible {
		c.calls = slices.Clone(c.calls[len(c.calls)-c.MaxPossible:])
	}
}
