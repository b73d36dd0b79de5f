package audit

import (
	"testing"
	"time"
)

// Every waiting statement is released when its record is durable, and refused while the disk does not answer. No
// statement is answered without a durable record.
func TestReleasedRecordsAreDurable(t *testing.T) {
	for name, c := range map[string]struct {
		mode Mode
		add  func(*Log) *Ticket
	}{
		"a decision":                  {ModeStrict, func(l *Log) *Ticket { return l.Decision(decision("s")) }},
		"a refusal":                   {ModeStrict, func(l *Log) *Ticket { return l.Decision(Decision{Session: "s", Verdict: "deny"}) }},
		"a session":                   {ModeStrict, func(l *Log) *Ticket { return l.Session(Session{Session: "s", Event: "open"}) }},
		"a call":                      {ModeStrict, func(l *Log) *Ticket { return l.Call(Call{}) }},
		"a report":                    {ModeStrict, func(l *Log) *Ticket { return l.SubjectReport(SubjectReport{}) }},
		"a report, whatever the mode": {ModeBuffered, func(l *Log) *Ticket { return l.SubjectReport(SubjectReport{}) }},
	} {
		t.Run(name, func(t *testing.T) {
			disk := &failingDisk{}
			l := open(t, Config{Mode: c.mode, Dir: t.TempDir(), ReleaseTimeout: 100 * time.Millisecond, openFile: disk.file})
			hang := make(chan struct{})
			disk.mu.Lock()
			disk.hanging = hang
			disk.mu.Unlock()
			wantRefusal(t, c.add(l).Release())
			disk.mu.Lock()
			disk.hanging = nil
			disk.mu.Unlock()
			close(hang)
			eventually(t, l, "after")
			closeLog(t, l)
		})
	}
}
