package dsar

import (
	"slices"
	"strings"
	"time"
)

// Calls lists the calls by HTTP, MCP and the consoles that were about the subject.
type Calls struct {
	Number uint64          `json:"number"`
	Left   uint64          `json:"left_out"` // how many calls the list leaves out; these are the oldest
	List   []InterfaceCall `json:"list"`     // the calls, oldest first
}

// InterfaceCall is one call by HTTP, MCP or a console that was about the subject, as the audit log records it.
type InterfaceCall struct {
	At        time.Time `json:"at"`
	Face      string    `json:"face"`
	By        string    `json:"by,omitempty"` // the name of the caller's token; left out if the caller is a person
	Role      string    `json:"role"`
	You       bool      `json:"by_subject"` // the caller was the subject
	Operation string    `json:"operation"`
	Written   bool      `json:"changes"`
	Everybody bool      `json:"everybody"` // the call was about all persons
	Outcome   string    `json:"outcome"`
	Log       string    `json:"log"`
	Record    uint64    `json:"record"`
}

// AddCall adds a call; [LogScan] calls this method. It leaves out who the caller was if that is a person, because the
// report must not name one person to another.
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

// trimCalls drops all but the newest MaxPossible calls.
func (c *Collector) trimCalls() {
	slices.SortStableFunc(c.calls, func(a, b InterfaceCall) int { return a.At.Compare(b.At) })
	if c.MaxPossible > 0 && len(c.calls) > c.MaxPossible {
		c.calls = slices.Clone(c.calls[len(c.calls)-c.MaxPossible:])
	}
}
