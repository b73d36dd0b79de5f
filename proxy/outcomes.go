package proxy

import "time"

// outcomes collects the entries whose answers end in the current chunk. The proxy records them once the chunk was
// written to the client, or the client has closed its connection.
type outcomes struct {
	entries      []entry
	requestTimes []time.Duration // how long the proxy worked on each request
	timeOfRead   time.Time       // when the chunk was read
}

func (o *outcomes) add(entries ...entry) { o.entries = append(o.entries, entries...) }

func (o *outcomes) addRequest(d time.Duration) { o.requestTimes = append(o.requestTimes, d) }

// reportReturned tells enforcement how many rows each of the entries returns, before the client gets them.
func (o *outcomes) reportReturned() {
	for _, e := range o.entries {
		if t := e.base().ticket; t != nil {
			rows := int64(0)
			if x := e.asExecution(); x != nil {
				rows = x.rows
			}
			t.RowsReturned(rows)
		}
	}
}

// record updates the metrics and writes the outcomes of the entries to the audit.
func (o *outcomes) record(m Metrics) {
	if len(o.requestTimes) == 0 && len(o.entries) == 0 {
		return
	}
	now := time.Now()
	if len(o.requestTimes) > 0 {
		elapsed := now.Sub(o.timeOfRead)
		for _, d := range o.requestTimes {
			m.RecordAddedTime(d + elapsed)
		}
		o.requestTimes = o.requestTimes[:0]
	}
	var rows, bytes int64
	for _, e := range o.entries {
		if x := e.asExecution(); x != nil && !x.fromProxy {
			rows, bytes = rows+x.rows, bytes+x.bytes
		}
		recordOutcome(e, now)
	}
	if bytes > 0 {
		m.CountRows(rows, bytes)
	}
	clear(o.entries)
	o.entries = o.entries[:0]
}
